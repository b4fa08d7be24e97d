"""Chains of generation: what counts, through regions, calls and loops; and that they reach the engine as priorities."""

from random import Random

import networkx
import pytest

from lmc.ir.core import walk_ops
from lmc.ir.graph import dependence_graph
from lmc.ir.ops import Call, Gen, Score, Select
from lmc.ir.reader import read_module
from lmc.passes.schedule import schedule
from tests.differential.runs import lowered
from tests.runtime.programs import dry_session, program_of, run


def chains(text: str, function: str = "main") -> list[int]:
    """Of each call of the model in a function, in program order."""
    found = schedule(lowered(text)).function(function)
    return [op.chain for op in walk_ops(found.body) if isinstance(op, (Gen, Select, Score, Call))]


def test_generations_after_one_another_add_up():
    assert chains('''
def main() -> str:
    raw: "${a := gen(max_tokens=5)} ${b := gen(1..5)} ${c := gen()}"
    return a + c
''') == [32 + 256, 256, 0]


def test_a_branch_waits_for_nothing_in_its_siblings_and_all_for_what_comes_after():
    assert chains('''
def main() -> str:
    user: "Hi"
    fork i in range(3):
        assistant: a = gen(max_tokens=7)
        user: "On."
        assistant: b = gen(max_tokens=9)
    join b as bs
    user: "${lines(bs)}"
    assistant: c = gen(max_tokens=4)
    return c
''') == [9 + 4, 4, 0]


def test_calls_count_with_what_they_do_and_a_known_loop_as_often_as_it_runs():
    text = '''
def ask(q: str) -> str:
    raw: "${q}${a := gen(max_tokens=10)}"
    return a

def deep(n: int) -> str:
    if n == 0:
        return ask("end")
    return deep(n - 1)

def main(q: str) -> str:
    first = ask(q)
    for i in range(3):
        first = ask(first)
    return deep(2) + ask(first)
'''
    # `ask` before the loop, in it (as one round), `deep` on its own, and the last.
    assert chains(text) == [30 + 10, 10, 0, 0]
    assert chains(text, "ask") == [0]


def test_effects_and_exits_are_waited_for():
    text = '''
extern def log(text: str) -> str

def noted(t: str) -> str:
    log(t)
    raw: "${t}${a := gen(max_tokens=10)}"
    return a

def main(q: str) -> str:
    first = noted(q)
    second = noted(q)
    raw: "${x := gen(max_tokens=3)}"
    if x == "no":
        return x
    raw: "${y := gen(max_tokens=20)}"
    return first + second + y
'''
    assert chains(text) == [10 + 20, 20, 20, 0]


def test_what_has_no_model_has_no_chain():
    module = lowered("def double(x: int) -> int:\n    return 2 * x\n\ndef main() -> int:\n    return double(double(2))\n")
    assert schedule(module) is module


def test_long_chains_and_deep_blocks():
    """Ten thousand in a row, and a hundred loops in one another, are walked once."""
    row = "".join(f'    raw: "${{gen(max_tokens=1)}}{n}"\n' for n in range(2_000))
    assert chains(f"def main():\n{row}")[:3] == [1999, 1998, 1997]
    nest = "".join("    " * (n + 1) + f"for i{n} in range(2):\n" for n in range(60))
    assert chains(f"def main():\n{nest}" + "    " * 61 + 'raw: "${gen(max_tokens=1)}"\n') == [0]


PROGRAM = '''
def ask(q: str) -> str:
    raw: "${q}${a := gen(max_tokens=10)}"
    return a

def main() -> str:
    long = ask(ask("a"))
    short = ask("b")
    return long + short
'''


def test_priorities_reach_the_requests(tmp_path):
    """Through calls, inlined or not; a generation counts itself."""
    for level, names in ((2, None), (0, ("schedule",))):
        session = dry_session()
        program = program_of(PROGRAM, tmp_path, level=level, passes=names)
        assert run(program, session, "main").error is None
        assert sorted(r.priority for r in session.requests) == [10, 10, 20]


def test_as_written_there_are_no_chains(tmp_path):
    session = dry_session()
    run(program_of(PROGRAM, tmp_path, level=0), session, "main")
    assert {r.priority for r in session.requests} == {10}


@pytest.mark.parametrize("seed", range(20))
def test_chains_are_the_longest_paths_that_networkx_finds(seed):
    """One walk from the end of a block stands for the search in a graph."""
    random = Random(seed)
    contexts, texts, lines = ["c0"], ["t0"], []
    for number in range(1, 40):
        context = random.choice(contexts)
        if random.random() < 0.5:
            lines.append(f"%c{number}: context = context.append(%{context}, %{random.choice(texts)})[role = user]")
        else:
            lines.append(f"%c{number}: context, %t{number}: str = lm.gen(%{context}, max_tokens = {random.randint(1, 99)})"
                         f'[role = assistant, site = "{number}"]')
            texts.append(f"t{number}")
        contexts.append(f"c{number}")
    body = "\n    ".join(lines)
    text = f'module "m.lmp" {{\n  func @f(%c0: context, %t0: str) -> str {{\n    {body}\n    control.return(%{texts[-1]})\n  }}\n}}\n'
    (function,) = schedule(read_module(text)).functions
    graph = dependence_graph(function)
    ops = {node: graph.nodes[node]["op"] for node in graph}
    for _, target, edge in graph.edges(data=True):
        edge["tokens"] = ops[target].max_tokens.value if isinstance(ops[target], Gen) else 0
    # Every path among what waits for a node can be lengthened to begin at the node.
    waiting = {node: graph.subgraph({node} | networkx.descendants(graph, node)) for node in graph if isinstance(ops[node], Gen)}
    longest = {node: networkx.dag_longest_path_length(part, "tokens") for node, part in waiting.items()}
    assert longest == {node: ops[node].chain for node in waiting}
    assert len(longest) > 9 and any(longest.values())
