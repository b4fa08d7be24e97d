"""LANGUAGE.md §8, Errors, and the statements that go with them: `try`, `fail`, `assert`, what raises, what is not caught."""

import pytest

from lmc.runtime.instance import Budgets
from tests.language.programs import mistakes, prompt, run, value

U, A, END = "<|im_start|>user\n", "<|im_start|>assistant\n", "<|im_end|>\n"
LEVELS = pytest.mark.parametrize("level", [0, 2])


@LEVELS
def test_an_error_has_kind_message_where_and_raw(tmp_path, level):
    """`Error{kind, message, where, raw: str | None}`."""
    text = '''
    def main() -> str:
        try:
            fail("the message")
        except Error as e:
            return "${e.kind}|${e.message}|${e.raw == None}|${e.where.endswith("program.lmp:3:9")}|${json(e).startswith("{")}"
    '''
    assert value(text, tmp_path, level=level) == "fail|the message|true|true|true"


@LEVELS
def test_try_restores_the_context_of_its_entry(tmp_path, level):
    """`try` restores the context of its entry."""
    text = '''
    def main(bad: bool) -> str:
        user: "a"
        try:
            user: "b"
            if bad:
                fail("no")
            user: "c"
        except Error:
            user: "d"
        assistant: x = gen(max_tokens=1)
        return x
    '''
    assert prompt(text.replace("except Error:", "except Error as e:"), tmp_path, True, level=level) == f"{U}ad{END}{A}"
    assert prompt(text.replace("except Error:", "except Error as e:"), tmp_path, False, level=level) == f"{U}abc{END}{A}"


@LEVELS
def test_names_have_the_values_of_the_entry(tmp_path, level):
    """What the block assigned is taken back with the conversation: names have the values they had at `try:`."""
    text = '''
    def main() -> list[int]:
        x = 1
        ys = [0]
        try:
            x = 2
            ys += [x]
            for i in range(3):
                ys += [i]
                if i == 1:
                    fail("no")
        except Error as e:
            ys += [x]
        return ys + [x]
    '''
    assert value(text, tmp_path, level=level) == (0, 1, 1)


@pytest.mark.parametrize("use", ["        print(y)\n    return 0", "        pass\n    return y"])
def test_names_first_assigned_in_try_are_unassigned_afterwards(tmp_path, use):
    """Names first assigned in it are unassigned afterwards."""
    text = f"def main() -> int:\n    try:\n        y = int(\"1\")\n    except Error as e:\n{use}\n"
    assert [c for c, _ in mistakes(text, tmp_path)] == ["E0203"]
    leaves = 'def main() -> int:\n    try:\n        y = int("1")\n    except Error as e:\n        return -1\n    return y\n'
    assert value(leaves, tmp_path) == 1, "where the handler leaves, only the block arrives"


@pytest.mark.parametrize("limits", [{"iterations": 50}, {"calls": 2}, {"tokens": 3}, {"depth": 3}])
def test_budgets_are_not_caught(tmp_path, limits):
    """Budgets and cancellation are not caught."""
    text = '''
    def down(n: int) -> int:
        return down(n + 1)

    def main(depth: bool, rounds: bool) -> str:
        try:
            if depth:
                x = down(0)
            while True:
                if not rounds:
                    user: "q"
                    assistant: gen(max_tokens=1)
        except Error as e:
            return "caught"
    '''
    ran = run(text, tmp_path, "depth" in limits, "iterations" in limits, budgets=Budgets(**limits))
    assert ran.error.kind == "budget"


def test_cancellation_is_not_caught(tmp_path):
    """… a cancelled branch does not run its handler."""
    ran = run('''
    def main():
        user: "q"
        fork i in range(3):
            if i == 1:
                user: "r"
                assistant: gen(max_tokens=1)
                fail("no")
            try:
                assistant: gen(min_tokens=2000, max_tokens=2000)
            except Error as e:
                print("caught")
        join
    ''', tmp_path)
    assert ran.message == "no" and ran.printed == []


@LEVELS
def test_the_error_reported_is_the_first_in_program_order(tmp_path, level):
    """The error reported is the first in program order; side-by-side calls are then cancelled, not undone."""
    text = '''
    def slow(n: int) -> str:
        user: "q"
        assistant: x = gen(min_tokens=n, max_tokens=n)
        print("slow is done")
        fail("first")

    def quick() -> str:
        fail("second")

    def main() -> str:
        a = slow(30)
        b = quick()
        return a + b
    '''
    ran = run(text, tmp_path, level=level)
    assert ran.message == "first" and ran.printed == ["slow is done"]


def test_fail_never_returns(tmp_path):
    """`fail(msg)` never returns."""
    assert value('def main(c: bool) -> int:\n    if c:\n        return 1\n    fail("no")\n', tmp_path, True) == 1
    text = 'def main(c: bool) -> str:\n    x = "a" if c else fail("no")\n    return x\n'
    assert value(text, tmp_path, True) == "a" and run(text, tmp_path, False).message == "no"
    after = 'def main(y: int | None) -> int:\n    if y is None:\n        fail("no")\n    return y + 1\n'
    assert mistakes(after, tmp_path) == [], "what follows knows that the other way left"


@pytest.mark.parametrize("expression, kind", [
    ("xs[5]", "index"), ("xs[-9]", "index"), ('d["b"]', "key"), ('int("x")', "value"), ('int("1.5")', "value"), ("1 // (len(xs) - 2)", "value"),
    ('float("one")', "value"), ("max(xs[5:])", "value"), ('len(parse_json("[1", list[int]))', "value"), ('len(parse_json("[\\"a\\"]", list[int]))', "value"),
    ("5 % (len(xs) - 2)", "value"), ('"abc"["abcdef".find("f")]', "index"), ("top(xs, [1], 1)[0]", "value"), ("argmax(xs[5:])", "value"),
    ("2 ** 9999", "value"), ('len("a".split(""))', "value"), ("len(range(0, 5, len(xs) - 2))", "value"),
])
@LEVELS
def test_what_raises_does_so_with_its_location(tmp_path, expression, kind, level):
    """A bad index, key or `int(s)` raises with its location."""
    text = f'def main(xs: list[int], d: dict[str, int]) -> str:\n    y = {expression}\n    return "${{y}}"\n'
    error = run(text, tmp_path, [1, 2], {"a": 1}, level=level).error
    assert (error.kind, error.diagnostics[0].span.line, error.diagnostics[0].code) == (kind, 2, "E0833")
    caught = f'def main(xs: list[int], d: dict[str, int]) -> str:\n    try:\n        y = {expression}\n    except Error as e:\n        return e.kind\n    return ""\n'
    assert value(caught, tmp_path, [1, 2], {"a": 1}, level=level) == kind


@LEVELS
def test_assert_shows_its_message_and_both_sides(tmp_path, level):
    """`assert`."""
    text = 'def main(x: int) -> int:\n    assert x + 1 == 4, "x is ${x}"\n    assert x < 9\n    return x\n'
    assert value(text, tmp_path, 3, level=level) == 3
    error = run(text, tmp_path, 5, level=level).error
    assert error.kind == "assert" and "x is 5" in error.diagnostics[0].message
    assert "left is 6" in error.diagnostics[0].help and "right is 4" in error.diagnostics[0].help
    plain = run('def main(xs: list[str]):\n    assert "a" in xs\n', tmp_path, ["b"], level=level).error
    assert plain.diagnostics[0].span.line == 2 and 'left is "a"' in str(plain) and '["b"]' in str(plain)
    silent = run("def main(c: bool):\n    assert c\n", tmp_path, False, level=level).error
    assert silent.diagnostics[0].message == "assertion failed" and silent.diagnostics[0].help is None


@LEVELS
def test_try_nests_and_leaves_loops_and_functions(tmp_path, level):
    """`try: … except Error as e:` is a statement like others."""
    text = '''
    def first(texts: list[str]) -> int | None:
        for t in texts:
            try:
                if t == "stop":
                    break
                if t == "skip":
                    continue
                return int(t)
            except Error as e:
                try:
                    fail("inner ${e.message}")
                except Error as inner:
                    print(inner.message)
        return None

    def main() -> str:
        return json([first(["x", "skip", "7", "8"]), first(["x", "stop", "9"]), first([])])
    '''
    ran = run(text, tmp_path, level=level)
    assert ran.value == "[7,null,null]" and [p.startswith("inner ") for p in ran.printed] == [True, True]


def test_an_error_from_deep_inside_is_caught_with_its_place(tmp_path):
    """`where` is the place that failed, not the call."""
    text = '''
    def deep(xs: list[int]) -> int:
        return xs[3]

    def main() -> str:
        try:
            return "${sum([deep([i]) for i in range(3)])}"
        except Error as e:
            return e.where
    '''
    assert value(text, tmp_path).endswith("program.lmp:2:12")


@LEVELS
def test_what_a_host_function_raises_is_caught(tmp_path, level):
    """An `extern` that raises is an error like others; what it did stays done."""
    text = 'extern def tool(x: int) -> int\n\ndef main() -> str:\n    try:\n        y = tool(1)\n        z = tool(2)\n    except Error as e:\n        return e.kind\n    return ""\n'
    seen = []

    def tool(x):
        seen.append(x)
        if x == 2:
            raise ValueError("no")
        return x

    assert value(text, tmp_path, level=level, externs={"tool": tool}) == "extern" and seen == [1, 2]
