"""LANGUAGE.md §6 and §8, values and types: lists, dicts, records, unions, refinements, optional and defaulted fields, builtins."""

from pathlib import Path

import pytest

from lmc.diagnostics import UsageError
from lmc.parser.check.builtins import BUILTINS, DICT_METHODS, STR_METHODS
from tests.language.programs import mistakes, run, said, value

LEVELS = pytest.mark.parametrize("level", [0, 2])

TYPES = '''
type Color = "red" | "green"
type Point:
    x: int
    y: int = 0
    color: Color | None = None
type Line:
    points: list[Point](min_items=1, max_items=3)
    name: str(max_len=5) = "line"
type Shape = Point | Line
type Size = 1..5
'''


def all_of(expected: list[tuple[str, str]], tmp_path, params: str, *args, level: int) -> bool:
    """Whether the JSON of each expression is as expected, all in one program."""
    lines = "".join(f"    out += [json({expression})]\n" for expression, _ in expected)
    found = value(f"{TYPES}\ndef main({params}) -> list[str]:\n    out: list[str] = []\n{lines}    return out\n", tmp_path, *args, level=level)
    assert list(zip([e for e, _ in expected], found)) == expected
    return True


# ---------------------------------------------------------------- lists and dicts


@LEVELS
def test_lists_and_dicts_are_values(tmp_path, level):
    """Lists and records are values: `xs += [x]`; `d[k] = v` and `xs[i] = v` rebind a new value (aliases keep the old one), as `+=` does."""
    text = '''
    def change(ys: list[int], d: dict[str, list[int]]) -> int:
        ys[0] = 99
        d["a"] = ys
        d["a"][0] = 100
        ys += [1]
        return d["a"][0] + ys[0] + len(ys)

    def main() -> str:
        xs = [1, 2]
        alias = xs
        xs += [3]
        xs[0] = 10
        xs[-1] -= 1
        d = {"a": xs}
        other = d
        d["b"] = [7]
        d["a"][1] += 5
        n = change(xs, d)
        nested = [[1], [2]]
        kept = nested
        nested[1][0] = 5
        return json([xs, alias, [n]]) + json([d, other]) + json([nested, kept])
    '''
    assert value(text, tmp_path, level=level) == (
        '[[10,2,2],[1,2],[203]]' '[{"a":[10,7,2],"b":[7]},{"a":[10,2,2]}]' "[[[1],[5]],[[1],[2]]]")


@pytest.mark.parametrize("statement, hint", [("xs.append(1)", "xs += [value]"), ("xs.sort()", "sorted(xs)"), ("xs.pop()", "xs[-1]")])
def test_no_methods_that_change(tmp_path, statement, hint):
    """… no `xs.append`."""
    text = f"def main(xs: list[int]):\n    {statement}\n"
    assert mistakes(text, tmp_path) == [("E0322", 2)] and hint in said(text, tmp_path)


EXPRESSIONS = [
    ("xs[1:3]", "[20,30]"), ("xs[::-1]", "[40,30,20,10]"), ("xs[:-1]", "[10,20,30]"), ("xs[-2]", "30"), ("xs[9:]", "[]"), ("xs + [1]", "[10,20,30,40,1]"),
    ("xs * 2", "[10,20,30,40,10,20,30,40]"), ("20 in xs", "true"), ("21 not in xs", "true"), ("xs == [10, 20, 30, 40]", "true"), ("s[1:]", '"bc"'),
    ("s[-1]", '"c"'), ('"b" in s', "true"), ("s * 2", '"abcabc"'), ("[x * 2 for x in xs if x > 10 if x < 40]", "[40,60]"),
    ("[a + b for a in [1, 2] for b in [10, 20]]", "[11,21,12,22]"), ("[c for c in s]", '["a","b","c"]'), ("[k for k in d]", '["k","l"]'),
    ("[i * x for i, x in enumerate(xs)]", "[0,20,60,120]"), ("[k * v for k, v in d.items()]", '["kk","l"]'), ('d["k"]', "2"), ('d.get("z")', "null"),
    ('d.get("z", 5)', "5"), ("d.keys()", '["k","l"]'), ("d.values()", "[2,1]"), ('"k" in d', "true"), ("len(d)", "2"), ("{1: 2}[1]", "2"),
    ("[1, 2.0]", "[1.0,2.0]"), ("1 < 2 < 3", "true"), ("1 < 3 < 2", "false"), ("not xs == []", "true"), ("2 ** 3 ** 2", "512"), ("-2 ** 2", "-4"),
    ("-7 // 2", "-4"), ("-7 % 3", "2"), ("7 / 2", "3.5"), ("1 if s == s else 2", "1"), ("s == s or xs[99] == 1", "true"), ("False and xs[99] == 1", "false"),
]


@LEVELS
def test_expressions(tmp_path, level):
    """Python's operators, comparisons, `and/or/not`, `in`, conditional expression, index, slice, comprehensions, list and dict literals."""
    assert all_of(EXPRESSIONS, tmp_path, "xs: list[int], s: str, d: dict[str, int]", [10, 20, 30, 40], "abc", {"k": 2, "l": 1}, level=level)


def test_a_list_of_literals_infers_its_plain_type(tmp_path):
    """A list of literals infers its plain type (`list[str]`); `[1, 2.0]` is `list[float]`; `[]` needs an expected type."""
    assert value('def main(xs: list[str] = ["a"] + ["b"]) -> list[str]:\n    return xs\n', tmp_path) == ("a", "b")
    assert value('def main() -> list[str]:\n    xs = ["a"]\n    xs += ["${1}"]\n    return xs\n', tmp_path) == ("a", "1")
    assert mistakes("def main():\n    xs = []\n", tmp_path) == [("E0312", 2)]
    assert value("def f(xs: list[int]) -> int:\n    return len(xs)\n\ndef main() -> int:\n    xs: list[int] = []\n    return f(xs) + f([])\n", tmp_path) == 0


# ---------------------------------------------------------------------- records


@LEVELS
def test_record_literals_have_a_known_type(tmp_path, level):
    """`{name: v}` is a record where a record type is expected; `Search(query=…)` constructs always. Defaults apply to literals."""
    text = TYPES + '''
def origin() -> Point:
    return {x: 1}

def moved(p: Point) -> Point:
    return Point(p.x + 1, color="red")

def main() -> str:
    p: Point = {x: 2, color: "green"}
    line = Line(points=[p, {x: 3}, moved({x: 4})])
    shape: Shape = line
    return json([origin(), p]) + json(line) + json(shape)
'''
    point = '{{"x":{},"y":0,"color":{}}}'.format
    line = f'"points":[{point(2, chr(34) + "green" + chr(34))},{point(3, "null")},{point(5, chr(34) + "red" + chr(34))}],"name":"line"'
    assert value(text, tmp_path, level=level) == (
        f'[{point(1, "null")},{point(2, chr(34) + "green" + chr(34))}]{{{line}}}' + f'{{"type":"Line",{line}}}')


def test_a_record_literal_without_a_type_offers_a_dict(tmp_path):
    """… otherwise an error offering `{"name": v}`."""
    text = "def main():\n    x = {name: 1}\n"
    assert [line for _, line in mistakes(text, tmp_path)] == [2] and '{"name": ' in said(text, tmp_path)


@pytest.mark.parametrize("expression, code", [
    ("Point()", "E0311"), ("Point(x=1, z=2)", "E0311"), ('Point(x="a")', "E0301"), ("Point(1, 2, None, 4)", "E0302"), ('Point(x=1, color="blue")', "E0301"),
    ("Shape(x=1)", "E0319"), ('Line(points=[], name="toolong")', "E0301"),
])
def test_wrong_records(tmp_path, expression, code):
    """A record has the fields that are declared."""
    assert code in [c for c, _ in mistakes(f"{TYPES}\ndef main():\n    x = {expression}\n", tmp_path)]


def test_fields_may_have_any_name(tmp_path):
    """Field, attribute and argument names may be any word."""
    text = '''
    type Message:
        from: str
        if: bool
        gen: int

    def main() -> str:
        m = Message(from="me", if=True, gen=3)
        return "${m.from} ${m.if} ${m.gen}"
    '''
    assert value(text, tmp_path) == "me true 3"


@pytest.mark.parametrize("header", ["def gen():", "def f(match: int):", "def f():\n    here = 1", "def f():\n    user = 1", "def len():", "type str = int"])
def test_reserved_words(tmp_path, header):
    """Statement keywords, role words, `here`, builtin functions and types are reserved for variables, parameters and functions."""
    assert mistakes(f"{header}\n    pass\n" if not header.startswith("type") else header + "\n", tmp_path) != []


# ----------------------------------------------------------------------- unions


@LEVELS
def test_unions_are_tagged(tmp_path, level):
    """A tagged union is `{"type": "Search", "query": …}`, tag first."""
    text = TYPES + '''
def main(s: Shape, all: list[Shape]) -> str:
    back = parse_json(json(s), Shape)
    same = back == s
    return json(s) + json(all) + "${same}"
'''
    data = {"type": "Point", "x": 1}
    assert value(text, tmp_path, data, [data], level=level) == ('{"type":"Point","x":1,"y":0,"color":null}'
                                                                '[{"type":"Point","x":1,"y":0,"color":null}]true')
    assert mistakes('type A:\n    type: str\ntype B:\n    b: int\ntype U = A | B\n', tmp_path) == [("E0314", 5)], "a member field named `type`"


@pytest.mark.parametrize("type, good, bad", [
    ("Size", [1, 5], [0, 6, "1", 1.0, True]), ("Color", ["red"], ["blue", 1]), ("str(max_len=2)", ["", "ab"], ["abc"]), ("str(min_len=2)", ["ab"], ["a"]),
    ('str(regex=r"[a-c]+")', ["abc"], ["", "abd"]), ("list[int](min_items=1, max_items=2)", [[1], [1, 2]], [[], [1, 2, 3], [1.5]]),
    ("int", [0, -(2**63)], [2**63, 1.5, "1", True]), ("float", [1, 2.5], ["x"]), ("bool", [True], [1, "true"]), ("str | None", [None, "a"], [1]),
    ("dict[str, int]", [{"a": 1}], [{"a": "b"}, [1]]), ("dict[int, str]", [{1: "a"}], [{"x": "a"}]), ("Point | None", [None, {"x": 1}], [{"y": 1}, {"x": 1, "q": 2}]),
])
def test_refinements_hold_for_what_comes_in(tmp_path, type, good, bad):
    """`str(regex=, max_len=, min_len=)`, ranges, literal unions, optional fields: checked where a value comes from outside."""
    text = f"{TYPES}\ndef main(x: {type}) -> str:\n    return json(x)\n"
    for data in good:
        assert run(text, tmp_path, data).error is None
    for data in bad:
        with pytest.raises(UsageError):
            run(text, tmp_path, data)


@pytest.mark.parametrize("assigned, declared", [
    ("6", "1..5"), ("n", "1..5"), ('"blue"', '"red" | "green"'), ("s", '"red" | "green"'), ('"abc"', "str(max_len=2)"), ("s", "str(max_len=2)"),
    ("None", "int"), ("1.5", "int"), ('"1"', "int"), ("maybe", "int"),
])
def test_refinements_hold_in_the_program(tmp_path, assigned, declared):
    """Assignment: one static type per name and function; a plain value is no refined one."""
    text = f"def main(n: int, s: str, maybe: int | None):\n    x: {declared} = {assigned}\n"
    assert mistakes(text, tmp_path) == [("E0301", 2)]


def test_none_in_a_hole_is_an_error_and_tests_narrow(tmp_path):
    """None in a hole is an error."""
    text = 'def main(x: str | None) -> str:\n    if x is not None:\n        return "${x}"\n    return "none"\n'
    assert value(text, tmp_path, "a") == "a" and value(text, tmp_path, None) == "none"
    assert mistakes('def main(x: str | None) -> str:\n    return "${x}"\n', tmp_path) == [("E0310", 2)]
    early = 'def main(x: int | None) -> int:\n    if x == None:\n        return 0\n    return x + 1\n'
    assert value(early, tmp_path, 4) == 5 and value(early, tmp_path, None) == 0
    both = 'def main(x: int | None, y: int | None) -> int:\n    return x + y if x is not None and y is not None else 0\n'
    assert value(both, tmp_path, 1, 2) == 3 and value(both, tmp_path, None, 2) == 0


def test_types_are_expressions_to_the_parser(tmp_path):
    """`|` and `..` exist only in types, `..` binds tighter. Numbers: `1.` and `.5` are errors, so that `1..5` is a range."""
    assert value("def main(x: 1..3 | None) -> str:\n    return json(x)\n", tmp_path, 3) == "3"
    for wrong in ("1.", ".5", "1 | 2", "1..2"):
        assert mistakes(f"def main():\n    x = {wrong}\n", tmp_path) != []


@pytest.mark.parametrize("shown, result", [("True", "true"), ("2.0", "2.0"), ("10.0 / 4", "2.5"), ("-5", "-5")])
def test_booleans_and_numbers_in_text(tmp_path, shown, result):
    """Booleans print as `true`/`false`. Everything that is not a bare top-level text is JSON, compact."""
    assert value(f'def main() -> str:\n    x = {shown}\n    return "${{x}}"\n', tmp_path) == result


# --------------------------------------------------------------------- builtins


BUILTIN_CALLS = [
    ("len(xs)", "3"), ("range(3)", "[0,1,2]"), ("range(1, 7, 3)", "[1,4]"), ("[i for i, x in enumerate(xs, 1)]", "[1,2,3]"),
    ("[a + b for a, b in zip(xs, [10, 20, 30])]", "[13,21,32]"), ("min(xs)", "1"), ("min(2, 1)", "1"), ("max(xs)", "3"), ("sum(xs)", "6"),
    ("sorted(xs)", "[1,2,3]"), ("sorted(xs, reverse=True)", "[3,2,1]"), ("abs(-2)", "2"), ("round(2.567, 2)", "2.57"), ("round(2.5)", "2"), ("str(1.0)", '"1.0"'),
    ('int("7")', "7"), ("int(2.9)", "2"), ('float("1.5")', "1.5"), ("bool(xs)", "true"), ('bool("")', "false"), ("json(xs)", '"[3,1,2]"'),
    ('parse_json("[1, 2]", list[int])', "[1,2]"), ("bullets(xs)", '"- 3\\n- 1\\n- 2"'), ("lines(xs)", '"3\\n1\\n2"'), ("fields(Point)", '"x, y and color"'),
    ("schema(Color)", '"{\\"enum\\":[\\"red\\",\\"green\\"]}"'), ("majority([1, 2, 2])", "2"), ("argmax(xs)", "0"), ('top(["a", "b", "c"], xs, 2)', '["a","c"]'),
    ('findall(r"[0-9]+", "a1b22")', '["1","22"]'), ('matches(r"[a-z]+", "abc")', "true"), ('matches(r"[a-z]+", "ab1")', "false"),
    ('" a ".strip()', '"a"'), ('"xxa".lstrip("x")', '"a"'), ('"axx".rstrip("x")', '"a"'), ('"a,b".split(",")', '["a","b"]'), ('"a  b".split()', '["a","b"]'),
    ('"a,b,c".split(",", 1)', '["a","b,c"]'), ('"a\\nb".splitlines()', '["a","b"]'), ('"Ab".lower()', '"ab"'), ('"Ab".upper()', '"AB"'), ('"a b".title()', '"A B"'),
    ('"abc".startswith("ab")', "true"), ('"abc".endswith("ab")', "false"), ('"aba".replace("a", "x")', '"xbx"'), ('"-".join(["a", "b"])', '"a-b"'),
    ('"abc".find("c")', "2"), ('"abc".find("z")', "-1"), ('"aba".count("a")', "2"), ('"abc".removeprefix("a")', '"bc"'), ('"abc".removesuffix("c")', '"ab"'),
]


@LEVELS
def test_builtins(tmp_path, level):
    """The builtins and string methods of §6."""
    assert all_of(BUILTIN_CALLS, tmp_path, "xs: list[int]", [3, 1, 2], level=level)


def test_print_and_input(tmp_path):
    """`print input`."""
    text = 'def main() -> str:\n    print("a", 1, 2.5, True)\n    x = input("> ")\n    y = input()\n    return x + y\n'
    asked = []
    ran = run(text, tmp_path, ask=lambda p: asked.append(p) or f"[{p}]")
    assert ran.value == "[> ][]" and asked == ["> ", ""] and ran.printed == ["a 1 2.5 true"]


def test_every_builtin_is_in_these_tests():
    """No builtin of the language without a test here."""
    here = "".join(p.read_text(encoding="utf-8") for p in Path(__file__).parent.glob("test_*.py"))
    assert [b for b in BUILTINS if f"{b}(" not in here] == []
    assert [m for m in (*STR_METHODS, *DICT_METHODS) if f".{m}(" not in here] == []


@LEVELS
def test_elements_deep_inside_are_set(tmp_path, level):
    """`d[k] = v` and `xs[i] = v`, through as many owners as there are; record literals know their type there."""
    text = '''
    type N:
        v: int

    def main() -> str:
        x: dict[str, dict[str, list[N]]] = {}
        x["a"] = {}
        x["a"]["b"] = [N(v=1)]
        kept = x
        x["a"]["b"] += [{v: 2}]
        x["a"]["b"][0] = {v: 5}
        return json(x) + json(kept)
    '''
    assert value(text, tmp_path, level=level) == '{"a":{"b":[{"v":5},{"v":2}]}}{"a":{"b":[{"v":1}]}}'
