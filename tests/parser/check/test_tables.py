"""What lowering is promised: with no errors every evaluated expression has a type, every name a symbol, every call a target."""

from pathlib import Path

import pytest

from lmc.parser import ast
from lmc.parser.check import check
from lmc.parser.check.model import (
    BuiltinCall, ConstSymbol, ExternCall, FunctionCall, GenCall, LocalKind, LocalSymbol, MethodCall, PartKind, RecordCall,
    ScoreCall,
    SelectCall, UnknownT,
)
from lmc.parser.check.relations import known
from lmc.types import (
    BOOL, CONTEXT, FLOAT, INT, NONE, SCORED, STR, DictT, ListT, LiteralT, OptionalT, RangeT, RecordT, StrT, TupleT, UnionT,
)
from lmc.values import Record
from tests.parser.check.program import checked, codes

HERE = Path(__file__).parent
PROGRAMS = sorted((HERE / "programs").glob("*.lmp")) + sorted((HERE / "errors").glob("*fine.lmp"))


def evaluated(node: ast.Node, types):
    """The expressions below that have a value: not annotations and type arguments, not what only names something."""
    if node in types:
        return
    if isinstance(node, ast.Expr):
        yield node
    for child in ast.children(node):
        if isinstance(node, ast.Call) and child is node.function:
            if isinstance(child, ast.Attribute):
                yield from evaluated(child.value, types)
        elif isinstance(node, (ast.Export, ast.RecordPattern)) and isinstance(child, ast.Expr):
            continue
        elif isinstance(node, (ast.Assign,)) and child is node.target and isinstance(child, ast.Name):
            continue
        elif isinstance(node, (ast.Import, ast.TestDef)) and isinstance(child, ast.Text):
            continue
        elif child is getattr(node, "doc", None):
            continue
        else:
            yield from evaluated(child, types)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_everything_is_known(path):
    result = check(str(path))
    assert not result.errors
    for file in result.files:
        for expr in evaluated(file.file, result.types_of):
            assert expr in result.expr_types, (expr.span, expr)
            assert known(result.expr_types[expr]), (expr.span, expr)
        arms = {n.value.value for n in ast.walk(file.file) if isinstance(n, ast.Export) and isinstance(n.value, ast.Attribute)}
        for node in ast.walk(file.file):
            match node:
                case ast.Name() if node.text not in ("list", "dict") and node not in arms:
                    assert node in result.symbols, (node.span, node.text)
                case ast.Call() if node not in result.types_of:
                    assert node in result.calls, node.span
                case ast.Match():
                    assert node in result.matches
                case ast.RecordPattern():
                    assert node in result.patterns
                case ast.Fork():
                    assert node in result.forks
                case ast.FunctionDef():
                    assert all(isinstance(result.symbols[p.name], LocalSymbol) for p in node.params)
    assert not any(isinstance(t, UnknownT) for t in result.expr_types.values())


def one(result, kind):
    found = [c for c in result.calls.values() if isinstance(c, kind)]
    assert len(found) == 1, found
    return found[0]


def test_arguments_are_matched_to_parameters(tmp_path):
    result = checked(tmp_path, '''
def f(a: int, b: str = "x", c: float = 2) -> str:
    return b * a + str(c)
def main() -> str:
    return f(c=1, a=3)
''')
    assert codes(result) == []
    call = next(c for c in result.calls.values() if isinstance(c, FunctionCall))
    assert call.target.name == "f"
    assert [None if a is None else a.value for a in call.args] == [3, None, 1]
    assert call.args[2] in result.conversions, "an int given for a float is converted"
    default = call.target.params[2].default
    assert result.values[default] == 2.0 and isinstance(result.values[default], float)


def test_kinds_of_calls(tmp_path):
    result = checked(tmp_path, '''
extern def search(query: str, limit: int = 3) -> list[str]
type Note:
    score: 1..5
    reason: str = "none"
def main(text: str) -> str:
    user: "score and reason: ${schema(Note)} yes no"
    assistant:
        note = gen(Note, max_tokens=20, stop=["a", "b"])
        number = gen(regex=r"[0-9]+")
        choice = select("yes" | "no", method="greedy_token")
        other = select(["x", "y"])
        scores = score(["a", "b"])
    made = Note(score=2)
    found = search(text)
    return text.strip().replace("a", new="b") + json(note) + number + choice + other + scores[0].option + json(made) + found[0]
''')
    assert codes(result) == []
    gens = [c for c in result.calls.values() if isinstance(c, GenCall)]
    assert [g.regex for g in gens] == [None,
                                       "[0-9]+"] and gens[0].type.name == "Note" and set(gens[0].options) == {"max_tokens",
                                                                                                              "stop"}
    selects = [c for c in result.calls.values() if isinstance(c, SelectCall)]
    assert selects[0].choices == ("yes", "no") and selects[0].options is None and selects[0].method == "greedy_token"
    assert selects[0].type == LiteralT(("yes", "no"))
    assert selects[1].choices is None and isinstance(selects[1].options, ast.ListExpr) and selects[1].type == STR
    assert one(result, ScoreCall).choices is None
    assert one(result, RecordCall).args[1] is None
    assert one(result, ExternCall).args[1] is None
    methods = {c.name: c for c in result.calls.values() if isinstance(c, MethodCall)}
    assert set(methods) == {"strip", "replace"} and methods["replace"].args[1].plain == "b"
    builtins = {c.name: c for c in result.calls.values() if isinstance(c, BuiltinCall)}
    assert builtins["schema"].type.name == "Note" and builtins["schema"].args == ()
    assert builtins["json"].type == RecordT("Note", gens[0].type.fields)


def local_types(result):
    return {s.name: s.type for s in result.symbols.values() if isinstance(s, LocalSymbol)}


def test_types_of_names(tmp_path):
    result = checked(tmp_path, '''
type A:
    x: int
type B:
    y: str
type U = A | B
def main(xs: list[int], d: dict[str, int], u: U, o: str | None) -> int:
    a = [1, 2.0]
    b = xs[1:]
    c = d.items()
    e = [x * 2 for x in xs if x > 1]
    f = zip(xs, ["a"])
    g = d.get("a")
    h = d.get("a", 0)
    i = max(1, 2.5)
    j = [A(x=1)]
    k: list[U] = [A(x=1), B(y="b")]
    l = here
    m = [here, here]
    n = 7 / 2
    p = 7 // 2
    q = "a" if o is None else o
    r = parse_json("[1]", list[int])
    s: dict[str, float] = {"a": 1}
    t = 2 ** 3
    print(json(a), json(b), json(c), json(e), json(f), json(g), h, i, json(j), json(k), n, p, q, json(r), json(s), json(u), t)
    return len(m) if l == here else 0
''')
    assert codes(result) == []
    types = local_types(result)
    a = RecordT("A", types["j"].element.fields)
    assert types["a"] == ListT(FLOAT) and types["b"] == ListT(INT) and types["c"] == ListT(TupleT((STR, INT)))
    assert types["e"] == ListT(INT) and types["f"] == ListT(TupleT((INT, STR)))
    assert types["g"] == OptionalT(INT) and types["h"] == INT and types["i"] == FLOAT and types["j"] == ListT(a)
    assert isinstance(types["k"].element, UnionT) and types["l"] == CONTEXT and types["m"] == ListT(CONTEXT)
    assert types["n"] == FLOAT and types["p"] == INT and types["q"] == STR and types["r"] == ListT(INT)
    assert types["s"] == DictT(STR, FLOAT) and types["t"] == INT


def test_narrower_types_of_uses(tmp_path):
    result = checked(tmp_path, '''
type A:
    x: int
type B:
    y: str
type U = A | B
type C:
    a: str | None = None
def main(u: U, o: str | None, c: C) -> str:
    match u:
        case A():
            first = str(u.x)
        case B(y):
            first = u.y + y
    if o is None or o == "":
        return first
    if c.a is not None and len(c.a) > 1:
        return c.a + o
    while c.a is None:
        c = C(a=o)
    return first + c.a + o
''')
    assert codes(result) == []


def test_a_loop_forgets_what_its_body_changes(tmp_path):
    result = checked(tmp_path, '''
def main(n: int) -> str:
    o: str | None = "a"
    for i in range(n):
        print("${o}")
        o = None
    return "x"
''')
    assert codes(result) == ["E0310"]


def test_record_and_list_literals_get_the_expected_type(tmp_path):
    result = checked(tmp_path, '''
type Shot:
    text: str
    tags: list[str] = []
    weight: float = 1
SHOTS: list[Shot] = [{text: "a"}, {text: "b", tags: ["x"], weight: 2}]
N = len(SHOTS) * 2 + 1
NAMES = ["a", "b"] + ["c"]
TITLE = "${N} of ${NAMES[0].upper()}"
def main(shots: list[Shot] = SHOTS, k: int = -N) -> str:
    xs: list[str] = []
    return json(shots) + json(xs) + TITLE + str(k)
''')
    assert codes(result) == []
    values = {s.name: v for s, v in result.constants.items()}
    shot = result.root.types[0]
    assert values["SHOTS"] == (Record(shot, ("a", (), 1.0)), Record(shot, ("b", ("x",), 2.0)))
    assert isinstance(values["SHOTS"][1].values[2], float)
    assert values["N"] == 5 and values["NAMES"] == ("a", "b", "c") and values["TITLE"] == "5 of A"
    assert [f.default for f in shot.fields] == [None, "[]", "1.0"]
    main = result.root.functions[0]
    assert [result.values[p.default] for p in main.params] == [values["SHOTS"], -5]
    assert all(isinstance(s, ConstSymbol) for s in result.root.constants)


def test_forks_and_exports(tmp_path):
    result = checked(tmp_path, '''
def main(xs: list[str]) -> str:
    fork x in xs with temperature=0.5:
        user: "${x}"
        assistant: a = gen(1..3)
    join a as all, here as states
    fork:
        branch pros:
            assistant: p = gen()
        branch cons:
            assistant: c = gen(int)
    join pros.p as good, cons.c as bad, cons.here as last
    resume last
    return "${good} ${bad} ${len(all)} ${len(states)}"
''')
    assert codes(result) == []
    first, second = result.forks.values()
    assert first.element == STR and list(first.options) == ["temperature"]
    assert [(e.source and e.source.name, e.arm, e.target.name, e.target.type) for e in first.exports] == [
        ("a", None, "all", ListT(RangeT(1, 3))), (None, None, "states", ListT(CONTEXT))]
    assert [(e.source and e.source.name, e.arm, e.target.name, e.target.type) for e in second.exports] == [
        ("p", 0, "good", STR), ("c", 1, "bad", INT), (None, 1, "last", CONTEXT)]
    assert all(e.target.kind is LocalKind.JOINED for e in first.exports)


def test_a_branch_has_its_own_names_but_shares_those_outside(tmp_path):
    result = checked(tmp_path, '''
def main(xs: list[str]) -> int:
    n = 1
    fork x in xs:
        n += 1
        y = n
    join n as ns, y as ys
    y = "free again"
    print(y, len(ys))
    return n + len(ns)
''')
    assert codes(result) == []
    symbols = {s for s in result.symbols.values() if isinstance(s, LocalSymbol) and s.name == "n"}
    assert len(symbols) == 1
    assert {s.type for s in result.symbols.values() if isinstance(s, LocalSymbol) and s.name == "y"} == {INT, STR}


def test_widened_names_keep_one_symbol_per_run(tmp_path):
    result = checked(tmp_path, '''
type A:
    q: str(max_len=5)
type B:
    q: str(max_len=9)
type U = A | B
def main(u: U) -> str:
    match u:
        case A(text):
            print(text)
        case B(text):
            print(text)
    user: "1 to 3"
    assistant: n = gen(1..3)
    n += 1
    return text * n
''')
    assert codes(result) == []
    types = local_types(result)
    assert types["text"] == StrT() and types["n"] == INT
    bound = [symbol for pattern in result.patterns.values() for _, symbol in pattern.bindings]
    assert len({id(s) for s in bound}) == 1


def test_parts_are_classified(tmp_path):
    result = checked(tmp_path, '''
part inner(q: str):
    "Q: ${q}"
part outer(q: str):
    inner(q)
    "!"
part turn(q: str) -> str:
    user: outer(q)
    assistant: a = gen()
    return a
def main(q: str) -> str:
    system: inner(q)
    answer = turn(q)
    return answer
def plain(q: str) -> str:
    return main(q)
''')
    assert codes(result) == []
    kinds = {f.name: (f.part, f.uses_context) for f in result.root.functions}
    assert kinds == {"inner": (PartKind.TEXT, False), "outer": (PartKind.TEXT, False), "turn": (PartKind.TURN, True),
                     "main": (None, True), "plain": (None, False)}
    assert {f.name: roles for f, roles in result.part_roles.items()} == {"inner": {"user", "system"}, "outer": {"user"}}


def test_config_values(tmp_path):
    result = checked(tmp_path,
                     'T = 0.5\nconfig:\n    model = "m"\n    temperature = 1\n    stop = ["a"]\n    top_p = T\n'
                     "def main() -> int:\n    return 1\n")
    assert codes(result) == []
    assert result.config == {"model": "m", "temperature": 1.0, "stop": ["a"], "top_p": 0.5}


def test_functions_that_return_nothing(tmp_path):
    result = checked(tmp_path, 'def main() -> None:\n    print("x")\ndef other():\n    main()\n    return\n')
    assert codes(result) == []
    assert [f.result for f in result.root.functions] == [NONE, NONE]


def test_score_gives_scored(tmp_path):
    result = checked(tmp_path,
                     'def main() -> bool:\n    raw:\n        "x"\n        s = score(["a", "b"])\n'
                     "    return s[0].logprob > s[1].logprob\n")
    assert codes(result) == []
    assert local_types(result)["s"] == ListT(SCORED)
    assert BOOL in result.expr_types.values()
