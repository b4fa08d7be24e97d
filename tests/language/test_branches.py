"""LANGUAGE.md §5 and what §8 says of it: `fork`, `join`, named arms, `errors="collect"`, side-by-side calls, seeds, externs."""

import threading
import time

import pytest

import lmc
from lmc.backend.serialize import write_program
from lmc.compiler import compile_file
from lmc.ir.printer import print_module
from lmc.ir.reader import read_module
from lmc.runtime.instance import Budgets
from tests.language.programs import mistakes, run, said, value, written

U, A, END = "<|im_start|>user\n", "<|im_start|>assistant\n", "<|im_end|>\n"
#: Every program here runs as written and optimised.
LEVELS = pytest.mark.parametrize("level", [0, 2])


# --------------------------------------------------------------------- branches


@LEVELS
def test_each_branch_has_its_own_copy_of_the_context(tmp_path, level):
    """`fork x in xs:` runs the block once for each element, each on its own copy of the context."""
    ran = run('''
    def main(xs: list[str]) -> list[str]:
        user: "Start."
        fork x in xs:
            user: " ${x}"
            assistant: a = gen(max_tokens=2)
        join a
        return a
    ''', tmp_path, ["a", "b"], level=level)
    assert ran.prompts == [f"{U}Start. a{END}{A}", f"{U}Start. b{END}{A}"] and len(ran.value) == 2


@LEVELS
def test_names_bound_in_a_branch_are_local(tmp_path, level):
    """Names bound in a branch are local to it; other names keep their value after the fork."""
    text = '''
    def main() -> str:
        k = 1
        fork x in [10, 20]:
            k += x
            own = k
        join k as ks, own as owns
        return "${k} ${json(ks)} ${json(owns)}"
    '''
    assert value(text, tmp_path, level=level) == "1 [11,21] [11,21]"
    assert [c for c, _ in mistakes(text.replace('"${k} ', '"${own} '), tmp_path)] == ["E0507"]


@LEVELS
def test_join_exports_lists_in_index_order(tmp_path, level):
    """`join a as as_list, here as states` exports lists in index order; after it the context is what it was before the fork."""
    ran = run('''
    def main() -> list[int]:
        user: "S"
        fork i, x in enumerate(["a", "b", "c"]):
            user: "${x}"
            n = i * 10
        join n as ns, here as states
        user: "T"
        resume states[2]
        assistant: y = gen(max_tokens=1)
        resume states[0]
        assistant: z = gen(max_tokens=1)
        return ns
    ''', tmp_path, level=level)
    assert ran.value == (0, 10, 20) and sorted(ran.prompts) == [f"{U}Sa{END}{A}", f"{U}Sc{END}{A}"]


def test_join_is_mandatory_and_directly_after(tmp_path):
    """`join` is mandatory and directly after."""
    assert mistakes("def main():\n    fork x in [1]:\n        pass\n    y = 1\n", tmp_path) == [("E0501", 2)]
    late = "def main():\n    fork x in [1]:\n        y = x\n    z = 1\n    join y\n"
    assert mistakes(late, tmp_path) == [("E0106", 5)]


@LEVELS
def test_join_alone_discards(tmp_path, level):
    """`join` alone discards."""
    text = "def main() -> int:\n    fork x in [1, 2]:\n        print(x)\n    join\n    return 5\n"
    ran = run(text, tmp_path, level=level)
    assert ran.value == 5 and sorted(ran.printed) == ["1", "2"]


@LEVELS
def test_fork_over_an_empty_list_gives_empty_lists(tmp_path, level):
    """`fork` over an empty list gives empty lists."""
    text = '''
    def main(xs: list[str]) -> int:
        user: "S"
        fork x in xs:
            user: "${x}"
            assistant: a = gen()
        join a as found, here as states
        return len(found) + len(states)
    '''
    ran = run(text, tmp_path, [], level=level)
    assert ran.value == 0 and ran.requests == []


@LEVELS
def test_named_arms_export_single_values(tmp_path, level):
    """`fork:` with `branch name:` arms; `join pros.x as p, cons.here as c` exports single values. (§8)"""
    ran = run('''
    def main() -> str:
        user: "S"
        fork:
            branch pros:
                user: " for"
                x = "p"
            branch cons:
                user: " against"
                n = 3
        join pros.x as p, cons.here as c, cons.n
        resume c
        assistant: y = gen(max_tokens=1)
        return "${p}${n}"
    ''', tmp_path, level=level)
    assert ran.value == "p3" and ran.prompts == [f"{U}S against{END}{A}"]


def test_a_joined_name_must_be_assigned_on_every_path(tmp_path):
    """A joined name must be assigned on every path of its branch. (§8)"""
    text = "def main(c: bool):\n    fork x in [1]:\n        if c:\n            y = x\n    join y\n"
    assert mistakes(text, tmp_path) == [("E0502", 5)]
    assert mistakes(text.replace("            y = x\n", "            y = x\n        else:\n            fail(\"no\")\n"), tmp_path) == []


@pytest.mark.parametrize("leave", ["return", "break", "continue"])
def test_nothing_leaves_a_branch(tmp_path, leave):
    """Only `join` takes something out of a branch."""
    text = f"def main():\n    for i in [1]:\n        fork x in [1]:\n            {leave}\n        join\n"
    assert mistakes(text, tmp_path) == [("E0505", 4)]


@LEVELS
def test_forks_nest(tmp_path, level):
    """A branch is a conversation of its own, so it may fork."""
    ran = run('''
    def main() -> list[list[int]]:
        user: "S"
        fork x in [1, 2]:
            user: "${x}"
            fork y in range(x):
                user: "${y}"
                assistant: a = gen(max_tokens=1)
                z = x * 10 + y
            join z as zs
            fork:
                branch one:
                    w = sum(zs)
                branch two:
                    v = len(zs)
            join one.w, two.v
            rows = zs + [w, v]
        join rows
        return rows
    ''', tmp_path, level=level)
    assert ran.value == ((10, 10, 1), (20, 21, 41, 2))
    assert sorted(ran.prompts) == [f"{U}S10{END}{A}", f"{U}S20{END}{A}", f"{U}S21{END}{A}"]


def test_fork_in_a_loop_over_contexts(tmp_path):
    """Tree of thought: contexts are values. (§1)"""
    ran = run('''
    def main(width: int = 2, depth: int = 3) -> int:
        user: "S"
        beam = [here]
        for level in range(depth):
            fork c in [b for b in beam for i in range(width)] with temperature=0.7:
                resume c
                user: "Next."
                assistant: rating = gen(1..10)
            join rating as ratings, here as states
            beam = top(states, ratings, width)
        resume beam[0]
        user: "Now."
        assistant: answer = gen(max_tokens=4)
        return len(beam)
    ''', tmp_path)
    assert ran.value == 2 and ran.report.calls == 2 + 4 + 4 + 1 and ran.prompts[-1].count("Next.") == 3


# ---------------------------------------------------------------------- overlap

ASK = '''
def ask(q: str) -> str:
    user: "${q}"
    assistant: a = gen(max_tokens=4)
    return a
'''


def test_branches_overlap_in_time(tmp_path):
    """Branches overlap in time."""
    text = 'def main() -> list[str]:\n    user: "S"\n    fork i in range(6):\n        assistant: a = gen(max_tokens=4)\n    join a\n    return a\n'
    assert run(text, tmp_path).peak == 6


@pytest.mark.parametrize("body, peak", [
    ('x = ask("a")\n    y = ask("b")\n    return x + y', 2), ('x = ask("a")\n    y = ask(x)\n    return x + y', 1),
    ('return "".join([ask("${i}") for i in range(5)])', 5), ('return "".join([ask(q) for q in ["a", "b", "c"] if q != "b"])', 2),
    ('return "".join([ask("${i}${j}") for i in range(2) for j in range(3)])', 6), ('return ask("a") + ask("b")', 2),
    ('print("x")\n    x = ask("a")\n    print("y")\n    y = ask("b")\n    return x + y', 2),
])
def test_independent_calls_overlap(tmp_path, body, peak):
    """Calls with no data path between them overlap, and comprehensions over calls."""
    assert run(f"{ASK}\ndef main() -> str:\n    {body}\n", tmp_path).peak == peak


def test_a_function_that_prints_keeps_its_order(tmp_path):
    """A function that reaches a non-pure extern, `print` or `input` is effectful; effectful calls keep program order. (§8)"""
    text = ASK + '''
def say(q: str) -> str:
    a = ask(q)
    print(q)
    return a

def main() -> str:
    x = say("one")
    y = say("two")
    zs = [say("${i}") for i in range(3)]
    return x + y
'''
    ran = run(text, tmp_path)
    assert ran.printed == ["one", "two", "0", "1", "2"] and ran.peak == 1


def test_branches_interleave_each_in_its_own_order(tmp_path):
    """Only the branches of a `fork` interleave, each in its own order. (§8)"""
    text = ASK + '''
def main():
    fork i in range(3):
        print("${i} a")
        x = ask("${i}")
        print("${i} b")
    join
'''
    ran = run(text, tmp_path)
    assert ran.peak == 3 and sorted(ran.printed) == [f"{i} {c}" for i in range(3) for c in "ab"]
    assert all(ran.printed.index(f"{i} a") < ran.printed.index(f"{i} b") for i in range(3))


# ----------------------------------------------------------------------- errors


def test_a_failing_branch_cancels_its_siblings_and_is_named(tmp_path):
    """A failing branch cancels its siblings and the error names the branch."""
    text = '''
    def main():
        user: "S"
        fork i in range(3):
            if i == 1:
                fail("no")
            assistant: gen(min_tokens=90, max_tokens=90)
            assistant: gen(min_tokens=90, max_tokens=90)
        join

    def arms():
        fork:
            branch good:
                x = 1
            branch bad:
                fail("no")
        join
    '''
    ran = run(text, tmp_path)
    assert ran.message == "no" and any("branch 1 of the fork" in n for n in ran.error.diagnostics[0].notes)
    # Branch 0 runs to its end, for its failure would be the one that counts; branch 2 is cancelled.
    assert ran.report.generated == 180
    assert any("branch `bad` of the fork" in n for n in run(text, tmp_path, name="arms").error.diagnostics[0].notes)


COLLECT = '''
type Note:
    text: str

def risky(x: int) -> str:
    if x % 2 == 1:
        fail("${x} is odd")
    return "ok ${x}"

def main(xs: list[int]) -> list[str | Error]:
    user: "S"
    fork x in xs with errors="collect", max_tokens=3:
        user: "${x}"
        assistant: a = gen()
        r = risky(x)
    join r as rs
    return rs

def shown(xs: list[int]) -> list[str]:
    fork x in xs with errors="collect":
        user: "${x}"
        r = Note(text=risky(x))
    join r as rs, here as states
    out: list[str] = []
    for r in rs:
        match r:
            case Error(kind, message, where=w):
                out += ["${kind}: ${message} ${w != ""}"]
            case Note(t):
                out += [t]
    for s in states:
        match s:
            case Error():
                out += ["-"]
            case _:
                resume s
                out += ["+"]
    return out + [json(rs)]
'''


@LEVELS
def test_errors_are_collected(tmp_path, level):
    """`fork … with errors="collect"` yields error values instead: `list[T | Error]`."""
    ran = run(COLLECT, tmp_path, [0, 1, 2, 3], level=level)
    assert [v if isinstance(v, str) else v.get("message") for v in ran.value] == ["ok 0", "1 is odd", "ok 2", "3 is odd"]
    assert ran.report.calls == 4 and {r.max_tokens for r in ran.requests} == {3}, "all branches went on, with the fork's options"
    assert ran.data[1] | {"where": ""} == {"type": "Error", "kind": "fail", "message": "1 is odd", "where": "", "raw": None}


@LEVELS
def test_match_tells_values_from_errors(tmp_path, level):
    """… of each export, contexts too; `match` on a union is exhaustive or has `_`. (§8)"""
    found = value(COLLECT, tmp_path, [2, 5], level=level, name="shown")
    assert found[:4] == ("ok 2", "fail: 5 is odd true", "+", "-")
    assert found[4].startswith('[{"text":"ok 2"},{"type":"Error","kind":"fail","message":"5 is odd",')
    missing = COLLECT.replace("            case Note(t):\n                out += [t]\n", "")
    assert [c for c, _ in mistakes(missing, tmp_path)] == ["E0316"]
    assert mistakes(COLLECT.replace("-> list[str | Error]", "-> list[str]"), tmp_path) == [("E0320", 16)]


@LEVELS
def test_named_arms_collect_too(tmp_path, level):
    """An arm that always fails is an error in each of its exports."""
    text = '''
    def main() -> str:
        fork with errors="collect":
            branch good:
                x = "fine"
            branch bad:
                y = 1
                z = "z"
                fail("always")
        join good.x, bad.y, bad.z as z
        out = ""
        match y:
            case Error(message=m):
                out += m
            case 1:
                out += "one"
            case _:
                out += str(y + 1)
        match z:
            case Error():
                out += "!"
            case _:
                out += z.upper()
        match x:
            case Error(m):
                return m
            case _:
                return out + x
    '''
    assert value(text, tmp_path, level=level) == "always!fine"


def test_collected_errors_are_those_that_try_catches(tmp_path):
    """Budgets and cancellation are not caught. (§8)"""
    text = '''
    def main() -> int:
        fork i in range(3) with errors="collect":
            n = 0
            while True:
                n += 1
        join n
        return len(n)
    '''
    assert run(text, tmp_path, budgets=Budgets(iterations=300)).error.kind == "budget"


@pytest.mark.parametrize("use, code", [
    ('"${one}"', "E0310"), ("one.upper()", "E0318"), ("one.message", "E0318"), ('one + "x"', "E0308"),
])
def test_what_may_be_an_error_is_matched_first(tmp_path, use, code):
    """`T | Error` is neither a `T` nor an `Error` before `match` has said so."""
    text = f'def main(all: list[str | Error]) -> str:\n    one = all[0]\n    x = {use}\n    return ""\n'
    assert mistakes(text, tmp_path) == [(code, 3)], said(text, tmp_path)


def test_collected_errors_come_from_outside_and_go_there(tmp_path):
    """`T | Error` is a type: it may be a parameter, an element, a result."""
    text = '''
    type Note:
        n: int

    def main(xs: list[int | Error], note: Note | Error | None) -> list[str]:
        out: list[str] = []
        for x in xs:
            match x:
                case Error(message=m):
                    out += [m]
                case 0:
                    out += ["zero"]
                case _:
                    out += ["${x + 1}"]
        match note:
            case None:
                out += ["none"]
            case Error():
                out += ["error"]
            case Note(n):
                out += ["note ${n}"]
        return out

    def make(n: int) -> Note | Error:
        if n > 0:
            return {n: n}
        try:
            fail("small")
        except Error as e:
            return e
    '''
    with lmc.load(written(text, tmp_path), dry=True) as m:
        error = m.make(0)
        assert (type(error).__name__, error.message, m.make(1).n) == ("Error", "small", 1)
        assert m.main([1, error, 0], m.make(3)) == ["2", "small", "zero", "note 3"]
        assert m.main([{"type": "Error", "kind": "k", "message": "m", "where": "", "raw": None}], error) == ["m", "error"]
        assert m.main([], None) == ["none"]


# ------------------------------------------------------------------------ seeds


def test_seeds_differ_between_branches_and_repeat(tmp_path):
    """With the same program seed a re-run gives the same branches, and branches differ from each other."""
    text = '''
    def main() -> list[str]:
        user: "S"
        fork i in range(4):
            assistant: a = gen(max_tokens=8, temperature=1.0)
        join a
        return a
    '''
    first, again, other = (run(text, tmp_path, seed=s).value for s in (1, 1, 2))
    assert first == again != other and len(set(first)) == 4
    unseeded = [run(text, tmp_path, seed=None) for _ in range(2)]
    assert unseeded[0].value != unseeded[1].value and unseeded[0].report.seed != unseeded[1].report.seed
    assert run(text, tmp_path, seed=unseeded[0].report.seed).value == unseeded[0].value, "the report keeps it"


# ---------------------------------------------------------------------- externs

EXTERNS = '''
extern def note(x: int) -> int
pure extern def slow(x: int) -> int

def ordered() -> list[int]:
    a = note(1)
    b = note(2)
    cs = [note(i) for i in range(3, 6)]
    return [a, b] + cs

def side() -> int:
    a = slow(1)
    b = slow(2)
    return a + b + sum([slow(i) for i in range(3, 6)])
'''


def test_externs_keep_program_order_and_run_once(tmp_path):
    """`extern` calls keep program order within a context and run exactly once."""
    seen = []

    def note(x):
        time.sleep(0.002 * (6 - x))
        seen.append(x)
        return x

    assert run(EXTERNS, tmp_path, name="ordered", externs={"note": note, "slow": abs}).value == (1, 2, 3, 4, 5) and seen == [1, 2, 3, 4, 5]


def test_pure_externs_run_in_parallel(tmp_path):
    """`pure extern` may be reordered, cached and run in parallel."""
    together = threading.Barrier(5, timeout=10)

    def slow(x):
        together.wait()  # all five are inside at once, or this fails
        return x

    assert run(EXTERNS, tmp_path, name="side", externs={"note": abs, "slow": slow}).value == 15


@LEVELS
def test_error_in_types_survives_artifacts_and_ir_text(tmp_path, level):
    """`T | Error` in fields and unions, in every form of the program."""
    text = '''
    type Holder:
        item: str | Error
        more: list[int | Error] = [1, 2]
        none: int | None | Error = None
    type Outcome = Holder | Error

    def safe(x: int) -> int | Error:
        try:
            if x == 2:
                fail("two")
            return x
        except Error as e:
            return e

    def main() -> list[str]:
        h = Holder(item="x", more=[safe(1), safe(2)], none=safe(3))
        o: Outcome = parse_json("{\\"type\\": \\"Error\\", \\"kind\\": \\"k\\", \\"message\\": \\"m\\", \\"where\\": \\"\\", \\"raw\\": null}", Outcome)
        back = parse_json(json(h), Holder)
        out = [json(o), "${back == h}", fields(Holder)]
        for one in h.more:
            match one:
                case Error(message=m):
                    out += [m]
                case 1:
                    out += ["one"]
                case _:
                    pass
        return out
    '''
    compiled = compile_file(str(written(text, tmp_path)), level=level)
    printed = print_module(compiled.module)
    assert print_module(read_module(printed)) == printed
    (tmp_path / "program.lmpc").write_bytes(write_program(compiled.program))
    with lmc.load(tmp_path / "program.lmpc", dry=True) as m:
        found = m.main()
    assert found == ['{"type":"Error","kind":"k","message":"m","where":"","raw":null}', "true", "item, more and none", "one", "two"]


@pytest.mark.parametrize("type, code", [
    ("Error | Error", "E0602"), ("str | Error | Error", "E0602"), ("Maybe | Error", "E0602"), ("str | int | Error", "E0314"), ("A | B | Error", "E0314"),
])
def test_unions_with_error_are_of_one_type_and_error(tmp_path, type, code):
    """`T | Error`: one type, once."""
    text = f"type Maybe = int | Error\ntype A:\n    a: int\ntype B:\n    b: int\n\ndef main(_x: {type}):\n    pass\n"
    assert mistakes(text, tmp_path) == [(code, 7)]


def test_a_collected_error_cannot_be_generated(tmp_path):
    """A model writes values, not errors."""
    assert mistakes("def main():\n    raw: x = gen(str | Error)\n", tmp_path) == [("E0301", 2)]
