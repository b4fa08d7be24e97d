"""LANGUAGE.md §6 and §8, statements: assignment, control flow, `match`, function scope."""

import json

import pytest

from tests.language.programs import mistakes, run, said, value

LEVELS = pytest.mark.parametrize("level", [0, 2])


@LEVELS
def test_control_flow(tmp_path, level):
    """`if/elif/else`, `for`, `while`, `break`, `continue`, `pass`."""
    text = '''
    def main(n: int) -> list[int]:
        out: list[int] = []
        for i in range(n):
            if i == 1:
                pass
            elif i == 2:
                continue
            elif i == 6:
                break
            else:
                out += [i]
            k = i
            while k > 0:
                k -= 2
                if k == 1:
                    break
            out += [k]
        for c in "ab":
            for j, d in enumerate(["x", "y"]):
                if d == c:
                    return out
                if j == 1:
                    out += [100]
        return out
    '''
    expected = []
    for i in range(9):
        if i == 2:
            continue
        if i == 6:
            break
        if i != 1:
            expected.append(i)
        k = i
        while k > 0:
            k -= 2
            if k == 1:
                break
        expected.append(k)
    assert value(text, tmp_path, 9, level=level) == (*expected, 100, 100)


@pytest.mark.parametrize("operator, result", [("+=", 9), ("-=", 5), ("*=", 14), ("//=", 3), ("%=", 1), ("**=", 49)])
def test_updates(tmp_path, operator, result):
    """Assignment, and `+=` and the others."""
    assert value(f"def main() -> int:\n    x = 7\n    x {operator} 2\n    return x\n", tmp_path) == result
    assert value("def main() -> float:\n    x = 7.0\n    x /= 2\n    return x\n", tmp_path) == 3.5


def test_one_static_type_per_name_and_function(tmp_path):
    """Assignment (one static type per name and function)."""
    assert mistakes('def main():\n    x = 1\n    x = "a"\n', tmp_path) == [("E0307", 3)]
    assert mistakes('def main(c: bool):\n    if c:\n        x = 1\n    else:\n        x = "a"\n', tmp_path) == [("E0307", 5)]
    assert mistakes("def main():\n    x = 1\n\ndef other():\n    x = \"a\"\n", tmp_path) == []


def test_names_have_function_scope(tmp_path):
    """Names have function scope, except that names bound in a branch are local to it."""
    text = '''
    def main(c: bool) -> int:
        if c:
            x = 1
        else:
            x = 2
        for i in range(3):
            last = i + x
            total = last
        while True:
            inside = 5
            break
        return x + inside
    '''
    assert value(text, tmp_path, False) == 7


@pytest.mark.parametrize("body", [
    "if c:\n        x = 1\n    return x", "for i in [1]:\n        x = i\n    return x", "while c:\n        x = 1\n    return x",
    "match c:\n        case True:\n            x = 1\n        case False:\n            pass\n    return x", "return x\n    x = 1",
])
def test_a_name_must_be_assigned_on_every_path(tmp_path, body):
    """A name must be assigned on every path before use."""
    assert [c for c, _ in mistakes(f"def main(c: bool) -> int:\n    {body}\n", tmp_path)] == ["E0203"]


def test_every_path_returns(tmp_path):
    """`return`."""
    assert mistakes("def main(c: bool) -> int:\n    if c:\n        return 1\n", tmp_path) == [("E0320", 1)]
    assert value("def main() -> int | None:\n    return None\n", tmp_path) is None
    assert value("def main():\n    return\n", tmp_path) is None


# ------------------------------------------------------------------------ match

MATCH = '''
type Search:
    query: str
    limit: int = 5
type Calc:
    expr: str
type Stop:
    why: str | None = None
type Action = Search | Calc | Stop

def action(a: Action) -> str:
    match a:
        case Search(q, n):
            return "${q} ${n}"
        case Calc(expr=e):
            return e
        case Stop():
            return "stop"

def either(a: Action | None) -> str:
    match a:
        case None:
            return "none"
        case Search(query=text) | Calc(text):
            return "text ${text}"
        case Stop(_):
            return "stop ${a.why == None}"

def some(a: Action) -> str:
    match a:
        case Calc():
            return "calc ${a.expr}"
        case _:
            return "other"

def word(w: "a" | "b" | "c") -> int:
    match w:
        case "a" | "b":
            return 1
        case "c":
            return 2

def flag(b: bool) -> int:
    match b:
        case True:
            return 1
        case False:
            return 0

def number(n: int) -> str:
    match n:
        case 0:
            return "zero"
        case -1 | 1:
            return "one"
        case _:
            return "many"

def text(s: str) -> str:
    match s:
        case "x":
            return "X"
    return "none"

def main() -> list[str]:
    all: list[Action] = [Search(query="q"), Calc(expr="1+1"), Stop()]
    return ([action(a) for a in all] + [either(a) for a in all] + [either(None)] + [some(a) for a in all]
        + ["${word("b")}${word("c")}${flag(True)}${flag(False)}"] + [number(n) for n in [0, -1, 1, 7]] + [text("x"), text("y")])
'''


@LEVELS
def test_match(tmp_path, level):
    """Patterns are literals, `None`, `_`, `T(a, b)`, `T(x=a)`, `T()`, alternatives with `|`."""
    assert value(MATCH, tmp_path, level=level) == (
        "q 5", "1+1", "stop", "text q", "text 1+1", "stop true", "none", "other", "calc 1+1", "other", "1210", "zero", "one", "one", "many", "X", "none")


@pytest.mark.parametrize("case, missing", [
    ('        case "c":\n            return 2\n', '"c"'), ("        case False:\n            return 0\n", "False"), ("        case None:\n            return \"none\"\n", "None"),
    ("        case Stop():\n            return \"stop\"\n", "Stop"),
])
def test_match_is_exhaustive(tmp_path, case, missing):
    """`match` on a union, literal type, bool or optional is exhaustive or has `_`."""
    assert case in MATCH
    text = MATCH.replace(case, "", 1)
    assert [c for c, _ in mistakes(text, tmp_path)] == ["E0316"] and missing in said(text, tmp_path)


@pytest.mark.parametrize("pattern, code", [
    ("Search(a, b, c)", "E0317"), ("Search(nope=a)", "E0311"), ("Point(x)", "E0313"), ("Search(q) | Calc(e)", "E0317"), ("Search(q, q)", "E0317"), ('"x"', "E0317"),
])
def test_wrong_patterns(tmp_path, pattern, code):
    """A pattern fits the type, and alternatives bind the same names."""
    text = MATCH.split("def action")[0] + f"def main(a: Action):\n    match a:\n        case {pattern}:\n            pass\n        case _:\n            pass\n"
    assert code in [c for c, _ in mistakes(text, tmp_path)]


@LEVELS
def test_match_binds_in_the_function(tmp_path, level):
    """Names that a case binds are names of the function."""
    text = MATCH.split("def action")[0] + '''
def main(a: Action, n: int) -> str:
    q = "before"
    k = 0
    while k < n:
        match a:
            case Search(q) | Calc(q):
                k += 1
            case Stop(why):
                k += 2
    return "${q} ${k}"
'''
    assert value(text, tmp_path, {"type": "Calc", "expr": "e"}, 3, level=level) == "e 3"
    assert value(text, tmp_path, {"type": "Stop"}, 3, level=level) == "before 4"


def test_conditions_are_bools(tmp_path):
    """What looks like Python means what it means in Python, or is an error: `if xs:` is one."""
    for condition in ("xs", "len(xs)", '"a"', "None"):
        assert [c for c, _ in mistakes(f"def main(xs: list[int]):\n    if {condition}:\n        pass\n", tmp_path)] == ["E0309"]


def test_walrus_is_for_holes(tmp_path):
    """`${name := gen(…)}` is the only place where `:=` may stand."""
    assert [line for _, line in mistakes("def main():\n    x := 3\n", tmp_path)] == [2]
    assert mistakes('def main() -> str:\n    return "${x := 3}"\n', tmp_path) == [("E0403", 2)]


@pytest.mark.parametrize("line", [
    "x = lambda y: y", "class A:\n        pass", "with a:\n        pass", "async def f():\n        pass", "import json", "raise x", "del x", "global x", "a, b = 1, 2",
    "x = {1, 2}", "print(f\"{x}\")", "yield 1", "for i in [1]:\n        pass\n    else:\n        pass",
])
def test_python_that_is_not_here_is_an_error(tmp_path, line):
    """Anything that looks like Python means what it means in Python, or is a compile error that names the `.lmp` spelling."""
    found = mistakes(f"def main(x: int):\n    {line}\n", tmp_path)
    assert found and found[0][1] in (2, 4)


def test_expression_statements_run_in_order(tmp_path):
    """Expression statements."""
    ran = run('def say(x: str) -> str:\n    print(x)\n    return x\n\ndef main():\n    say("a")\n    y = say("b")\n    say(y)\n', tmp_path)
    assert ran.printed == ["a", "b", "b"]


def test_nesting_has_a_limit_and_no_python_failure(tmp_path):
    """Source nesting 100."""
    deep = "(" * 90 + "1" + ")" * 90
    assert value(f"def main() -> int:\n    return {deep}\n", tmp_path) == 1
    far = "(" * 3000 + "1" + ")" * 3000
    assert len(mistakes(f"def main() -> int:\n    return {far}\n", tmp_path)) == 1


@LEVELS
def test_match_takes_the_case_of_the_value_not_of_the_name(tmp_path, level):
    """`match` on a union: more may be known of a value than the type of its name says."""
    text = MATCH.split("def action")[0] + '''
type Holder:
    action: Action

def main() -> list[str]:
    a: Action = Calc(expr="1")
    h = Holder(action=Stop(why="w"))
    b = h.action
    c: str | Error = "text"
    out: list[str] = []
    match a:
        case Search(q) | Calc(q):
            out += [q]
        case Stop(why):
            out += ["stop"]
    match b:
        case Search(q):
            out += [q]
        case Calc(expr=e):
            out += [e]
        case Stop(why=w):
            out += [json(w)]
    match c:
        case Error(message=m):
            out += [m]
        case "text" | "more":
            out += ["found"]
        case _:
            out += [c]
    return out
'''
    assert value(text, tmp_path, level=level) == ("1", '"w"', "found")


@LEVELS
def test_long_chains(tmp_path, level):
    """As many cases, alternatives and operands as one likes; the first that applies is taken."""
    cases = "".join(f'        case "w{i}" | "v{i}":\n            return {i}\n' for i in range(70))
    ors = " or ".join(f"n == {i * 7}" for i in range(120))
    ands = " and ".join(f"n != {i * 7}" for i in range(120))
    text = f'''
def place(word: str) -> int:
    match word:
{cases}        case "w3":
            return 333
        case _:
            return -1

def main() -> str:
    found = [place("${{c}}${{i}}") for c in "wvx" for i in range(72)]
    sevens = [n for n in range(900) if {ors}]
    others = [n for n in range(900) if {ands}]
    return json([found, sevens, [len(others)]])
'''
    places = [i if i < 70 else -1 for _ in "wv" for i in range(72)] + [-1] * 72
    assert json.loads(value(text, tmp_path, level=level)) == [places, list(range(0, 840, 7)), [780]]


def test_the_second_operand_of_a_long_chain_waits_for_the_first(tmp_path):
    """`and/or` stop where the result is known."""
    operands = " or ".join(f"say({i})" for i in range(40))
    text = f"def say(n: int) -> bool:\n    print(n)\n    return n == 23\n\ndef main() -> bool:\n    return {operands}\n"
    ran = run(text, tmp_path)
    assert ran.value is True and ran.printed == [str(i) for i in range(24)]


@LEVELS
@pytest.mark.parametrize("last", ["    else:\n        found = -1\n        user: \"none\"\n", "    else:\n        return -2\n"])
def test_a_chain_of_elif_is_no_nesting(tmp_path, level, last):
    """Source nesting 100: what stands beside one another is not nested. The first condition that holds is the last that is asked."""
    arms = "".join(f"    elif asked({i}) and n == {i}:\n        found = {i * 7}\n" for i in range(400))
    text = f'''
def asked(n: int) -> bool:
    print(n)
    return True

def find(n: int) -> int:
    if n == -5:
        return -7
{arms}{last}    return found

def main() -> list[int]:
    return [find(-5), find(3), find(399), find(400)]
'''
    ran = run(text, tmp_path, level=level)
    assert ran.value == (-7, 21, 399 * 7, -1 if "found" in last else -2)
    assert ran.printed == [str(i) for n in (3, 399, 399) for i in range(n + 1)]


def test_names_of_a_long_chain_are_those_of_a_short_one(tmp_path):
    """A name that every arm assigns is assigned; one that some arm leaves out is not."""
    def program(missing: int) -> str:
        arms = "".join(f"    elif n == {i}:\n        {'pass' if i == missing else f'x = {i}'}\n" for i in range(150))
        return f"def main(n: int = 149) -> int:\n    if n < 0:\n        x = 0\n{arms}    else:\n        x = 9\n    return x\n"

    assert value(program(-1), tmp_path) == 149
    assert [code for code, _ in mistakes(program(120), tmp_path)] == ["E0203"]


@LEVELS
@pytest.mark.parametrize("head, result", [
    ("while n > {i} and n > 1 or n == 2 and n < 4:", 3), ("for x{i} in [y + 1 for y in [1, 2] if y > 0 and y < 2 or y == 7]:", 3),
    ("if [y for y in [1, 2] if y < 0 or y > 1 and y < 3] != []:", 3),
])
def test_what_the_limit_allows_runs(tmp_path, level, head, result):
    """Source nesting 100: 98 blocks inside one another, with conditions that are more than a name."""
    lines = ["def main(n: int) -> int:"]
    lines += [" " * (i + 1) + head.format(i=i) for i in range(98)]
    text = "\n".join([*lines, f"{' ' * 99}return [q for q in [n if n > 3 and n > 4 else 4] if q > 1 and q > 2][0] - n + {result}", " return 7\n"])
    assert value(text, tmp_path, 300, level=level) == result
