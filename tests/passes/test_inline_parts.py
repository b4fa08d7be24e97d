"""Inlined code is told apart by nothing that a program or its user sees."""

import pytest

from lmc.compiler import compile_file
from lmc.ir.core import walk_ops
from lmc.ir.ops import Call
from lmc.ir.printer import print_module
from lmc.ir.reader import read_module
from lmc.passes import PASSES
from lmc.passes.inline_parts import _MOST_CALLS_DEEP
from lmc.runtime.instance import Budgets
from tests.passes.docstrings import module_text
from tests.runtime.programs import dry_session, program_of, run

PARTS = '''
part greet(name: str) -> str:
    user: "I am ${name}. "
    assistant: hello = gen(max_tokens=4, temperature=1.0)
    return hello

part chosen(n: int) -> int:
    for i in range(n):
        greet("number ${i}")
        user: "Which?"
        assistant: a = select(["one", "two"])
    assert n < 3
    return n

def ask(q: str) -> str:
    user: "${q}"
    assistant: a = gen(max_tokens=4, temperature=1.0)
    return a

def main(n: int) -> list[str]:
    chosen(n)
    greet("last")
    answers = [ask("q${i}") for i in range(2)]
    fork i in range(2):
        h = greet("branch ${i}")
    join h as hs
    return answers + hs
'''


def calls(program_text: str, tmp_path, level: int) -> list[str]:
    path = tmp_path / "calls.lmp"
    path.write_text(program_text, encoding="utf-8")
    module = compile_file(str(path), level=level).module
    return [op.callee for f in module.functions for op in walk_ops(f.body) if isinstance(op, Call)]


def observed(text: str, tmp_path, level: int, *args, **options):
    session = dry_session()
    ended = run(program_of(text, tmp_path, level=level), session, "main", *args, **options)
    requests = sorted((r.origin.path, r.origin.function, str(r.origin.span), r.sampling.seed, r.prompt) for r in session.requests)
    return ended.value, str(ended.error), ended.printed, sorted(ended.streamed), requests


@pytest.mark.parametrize("n", [0, 2, 3])
def test_paths_seeds_prompts_and_the_way_an_error_took(tmp_path, n):
    assert calls(PARTS, tmp_path, 1) and not calls(PARTS, tmp_path, 2)
    plain, inlined = (observed(PARTS, tmp_path, level, n) for level in (0, 2))
    # How far what runs beside a failure had come is chance.
    assert plain[:4] == inlined[:4] and (n == 3 or plain == inlined)
    assert ("in `chosen`, called at" in plain[1]) == (n == 3)
    assert any(path.count("/") == 3 for path, *_ in plain[4]) == (n > 0)


def test_scores_have_the_path_of_their_function(tmp_path):
    text = '''
    part pick() -> str:
        user: "Which?"
        assistant: a = select(["one", "two"])
        return a

    def main() -> str:
        a = pick()
        b = pick()
        return a + b
    '''
    paths = []
    for level in (0, 2):
        session = dry_session()
        asked, score = [], session.score

        async def watched(requests, score=score, asked=asked):
            asked.extend((r.origin.path, r.origin.function) for r in requests)
            return await score(requests)

        session.score = watched
        assert run(program_of(text, tmp_path, level=level), session, "main").error is None
        paths.append(asked)
    assert paths[0] == paths[1] == [("0/", "pick")] * 2 + [("1/", "pick")] * 2


def test_streamed_text_says_where_it_comes_from(tmp_path):
    text = '''
    part told():
        user: "Go on."
        assistant: gen(max_tokens=3, stream=True)

    def main():
        told()
        for i in range(2):
            told()
    '''
    plain, inlined = (observed(text, tmp_path, level) for level in (0, 2))
    assert plain == inlined and {path for path, _ in plain[3]} == {"0/", "1:0/2/", "1:1/2/"}


def test_artifacts_and_the_text_form_keep_the_way(tmp_path):
    from lmc.backend.serialize import read_program, write_program

    path = tmp_path / "program.lmp"
    path.write_text(PARTS, encoding="utf-8")
    compiled = compile_file(str(path), level=2)
    text = print_module(compiled.module, locations=True)
    assert ', @greet "' in text and print_module(read_module(text), locations=True) == text
    again = read_program(write_program(compiled.program), "f.lmpc")
    errors = [str(run(p, dry_session(), "main", 3).error) for p in (compiled.program, again)]
    assert errors[0] == errors[1] and "in `chosen`, called at" in errors[0]


# --------------------------------------------------------------- what is not inlined


def test_the_budget_of_recursion_counts_every_call(tmp_path):
    assert _MOST_CALLS_DEEP == Budgets().depth
    text = '''
    part leaf():
        user: "x"
        assistant: gen(max_tokens=1)

    def down(n: int) -> int:
        leaf()
        if n == 0:
            return 0
        return down(n - 1) + 1

    def main(n: int) -> int:
        return down(n)
    '''
    for n in (98, 99):
        plain, inlined = (observed(text, tmp_path, level, n) for level in (0, 2))
        assert plain[:2] == inlined[:2], n
        assert ("101 calls deep" in plain[1]) == (n == 99)


@pytest.mark.parametrize("text", [
    # Rounds and calls without the model add up.
    "def pure(n: int) -> int:\n    return n + 1\n\ndef main() -> int:\n    x = 0\n    while x < 60:\n        x = pure(x)\n    return x\n",
    "def pure(n: int) -> int:\n    return n + 1\n\ndef main() -> int:\n    return len([pure(x) for x in range(120)])\n",
])
def test_the_budget_of_rounds_counts_every_call(tmp_path, text):
    plain, inlined = (observed(text, tmp_path, level, budgets=Budgets(iterations=100)) for level in (0, 2))
    assert plain == inlined and "E0838" in plain[1]


def test_a_call_that_the_host_would_see_unfinished_stays(tmp_path):
    text = '''
    part greet():
        user: "Hi"
        assistant: n = gen(int, max_tokens=1)
        user: "Go on"

    def main():
        greet()
        print("after")
    '''
    assert calls(text.replace("\n    ", "\n"), tmp_path, 2) == ["greet"]


def test_a_chain_of_parts_stays_linear():
    """Each part calls the next twice: inlined all the way, twenty of them are a million calls."""
    parts = "\n".join(
        f"part @p{i}(%c: context) -> none {{\n"
        + "".join(f'  %a{k}: context, %n{k}: none = call({"%c" if not k else "%a0"})[callee = "p{i + 1}", site = "{k}"]\n' for k in range(2))
        + "  control.return(%a1, null)\n}\n" for i in range(20))
    leaf = 'part @p20(%c: context) -> none {\n  %d: context, %v: str = lm.gen(%c)[role = raw, site = "0"]\n  control.return(%d, null)\n}\n'
    main = ('func @main(%c: context) -> context {\n  %d: context, %n: none = call(%c)[callee = "p0", site = "0"]\n'
            "  control.return(%d)\n}\n")
    module = PASSES["inline_parts"](read_module(module_text(parts + leaf + main)))
    assert sum(1 for f in module.functions for _ in walk_ops(f.body)) < 20_000
    assert all(sum(1 for _ in walk_ops(f.body)) <= 2_200 for f in module.functions)


def test_a_narrower_argument_keeps_the_call(tmp_path):
    text = '''
    type Search:
        query: str
    type Stop:
        why: str
    type Action = Search | Stop

    def shown(a: Action | None) -> str:
        match a:
            case Search(q):
                r = q
            case Stop(w):
                r = w
            case None:
                r = "nothing"
        return r

    def main() -> str:
        return shown(None) + shown(Search(query="x"))
    '''
    assert observed(text, tmp_path, 0)[:2] == observed(text, tmp_path, 2)[:2] == ("nothingx", "None")
