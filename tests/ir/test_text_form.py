"""Printer and reader: what was read prints the same, and what cannot be read says where."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmc.diagnostics import LmcError, Span
from lmc.ir.core import Block, Function, Literal, Module, Parameter, Value, op_fields, operands, walk_ops
from lmc.ir.ops import OPS, Return, TextConcat
from lmc.ir.printer import print_module, symbol, value_names
from lmc.ir.reader import MAX_DEPTH, read_module
from lmc.ir.verifier import verify
from lmc.types import BOOL, FLOAT, INT, NONE, STR, LiteralT, StrT
from tests.processor_time import processor_seconds

EVERYTHING = (Path(__file__).parent / "everything.ir").read_text(encoding="utf-8")


def one_function(body: str, head: str = "func @f(%x: str) -> str") -> str:
    return f'module "m" {{\n  {head} {{\n{body}\n  }}\n}}\n'


def test_everything_reads_and_prints_the_same():
    module = read_module(EVERYTHING)
    assert print_module(module) == EVERYTHING
    verify(module)


def test_the_sample_holds_every_op():
    module = read_module(EVERYTHING)
    assert {op.mnemonic for f in module.functions for op in walk_ops(f.body)} == set(OPS)


def test_locations_read_back():
    module = read_module(EVERYTHING)
    span = Span('a "b".lmp', 3, 5, 4, 1)
    function = module.function("helper")
    op = function.body.ops[0]
    moved = type(op)(op.results, span, **{f.name: getattr(op, f.name) for f in op_fields(type(op))})
    placed = Function(function.name, "def", function.params, function.result, Block(function.body.args, (moved,)), "", span)
    text = print_module(Module("m", module.types, (), (placed,), ()), locations=True)
    assert text.count('loc("a \\"b\\".lmp":3:5-4:1)') == 2
    again = read_module(text)
    assert again.functions[0].span == again.functions[0].body.ops[0].span == span
    assert print_module(again, locations=True) == text
    assert "loc(" not in print_module(again)


def test_names_are_made_unique_and_parameters_keep_theirs():
    a, b, c = Value(STR, "t"), Value(STR, "t"), Value(STR, "t_1")
    param = Value(STR, "other")
    body = Block((param,), (
        TextConcat((a,), None, (param,)), TextConcat((b,), None, (a,)), TextConcat((c,), None, (b,)), Return((), None, (c,)),
    ))
    function = Function("f", "def", (Parameter("t", STR),), STR, body)
    names = value_names(function)
    assert [names[v] for v in (param, a, b, c)] == ["t", "t_1", "t_2", "t_1_1"]
    text = print_module(Module("m", (), (), (function,), ()))
    assert print_module(read_module(text)) == text


def test_literals_keep_their_types():
    text = one_function('    %y: str = text.concat("a": "a" | "b", null: str, 1, 1.0, 2: float, true, -3, 1e+30, "a\\u2028")\n'
                        "    control.return(%y)")
    module = read_module(text)
    found = [(o.value, o.type) for o in operands(module.functions[0].body.ops[0])]
    assert found[:5] == [("a", LiteralT(("a", "b"))), (None, STR), (1, INT), (1.0, FLOAT), (2, FLOAT)]
    assert type(found[2][0]) is int and type(found[3][0]) is float and found[5][0] is True
    again = print_module(module)
    assert print_module(read_module(again)) == again


_texts = st.text(max_size=12)
_scalars = st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), _texts)


@settings(max_examples=150, deadline=None)
@given(values=st.lists(_scalars, max_size=5), hints=st.lists(st.from_regex(r"[a-z]{0,2}(_[0-9])?", fullmatch=True), max_size=4),
       name=_texts, doc=_texts, regex=_texts)
def test_any_module_reads_back(values, hints, name, doc, regex):
    kinds = {str: STR, bool: BOOL, int: INT, float: FLOAT, type(None): NONE}
    literals = tuple(Literal(v, kinds[type(v)]) for v in values) + (Literal("x", StrT(regex=regex)),)
    made, ops = [], []
    for hint in hints:
        made.append(Value(STR, hint))
        ops.append(TextConcat((made[-1],), None, (*literals, *made[:-1])))
    ops.append(Return((), None, tuple(made[-1:])))
    function = Function(name, "def", (), STR, Block((), tuple(ops)), doc)
    text = print_module(Module(name, (), (), (function,), (name,), (("seed", values),)))
    module = read_module(text)
    assert print_module(module) == text
    assert module.name == name and module.functions[0].doc == doc and module.functions[0].name == name
    for before, after in zip(ops, module.functions[0].body.ops):
        pairs = [(a, b) for a, b in zip(operands(before), operands(after)) if isinstance(a, Literal)]
        assert all(a == b and type(a.value) is type(b.value) for a, b in pairs)


def test_symbols_are_quoted_where_they_must_be():
    assert symbol("lib.x.f") == "@lib.x.f" and symbol("f:user+top_p") == "@f:user+top_p"
    assert symbol("test:two plus two") == '@"test:two plus two"' and symbol("") == '@""'


@pytest.mark.parametrize(("body", "line", "column", "message"), [
    ("    %y: str = text.join(%x)\n    control.return(%y)", 3, 15, "`text.join` is no op"),
    ("    control.return(%y)", 3, 20, "`%y` is not defined above"),
    ("    %x: str = text.concat(%x)\n", 3, 5, "`%x` is defined twice"),
    ("    %y: strr = text.concat(%x)", 3, 9, "`strr` is no type"),
    ("    %y: str = text.concat(%x", 4, 3, "expected `,` or `)`, found `}`"),
    ("    control.fail()", 3, 5, "needs the operand `message`"),
    ("    control.fail(%x, %x)", 3, 5, "takes no operand more"),
    ("    control.fail(message = %x, %x)", 3, 5, "takes no operand `message`"),
    ("    %c: context = context.append(%x, %x)[role = boss]", 3, 49, "`boss` is no value of `role`"),
    ("    %c: context = context.append(%x, %x)", 3, 19, "needs `role`"),
    ("    %c: context = context.append(%x, %x)[rolle = user]", 3, 42, "has no attribute `rolle`"),
    ("    %y: int = tuple.get(%x)[index = \"0\"]", 3, 37, "`index` cannot hold this value"),
    ("    control.if(%x) { control.yield() }", 3, 5, "needs the block `otherwise`"),
    ("    %y: str = text.concat(\"a\nb\")", 3, 27, "found '\"'"),
    ("    %y: str = text.concat(\"\\q\")", 3, 27, "JSON does not allow"),
    ("    %y: str = text.concat($)", 3, 27, "found '$'"),
    ("    %y: str, %y: str = text.concat()", 3, 22, "different names"),
])
def test_what_cannot_be_read_is_located(body, line, column, message):
    with pytest.raises(LmcError) as caught:
        read_module(one_function(body), "f.ir")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "E0902" and message in diagnostic.message
    assert (diagnostic.span.file, diagnostic.span.line, diagnostic.span.column) == ("f.ir", line, column)
    assert "f.ir:" in str(caught.value)


@pytest.mark.parametrize("text", ["", "module", 'module "x"', 'module "x" {', 'module "x" {} x', 'module "x" { type @A { b: @C } }',
                                  'module "x" { type @A = @B }', 'module "x" { entries }', 'module "x" { part @f() -> none { } }'])
def test_a_damaged_module_is_an_error(text):
    with pytest.raises(LmcError):
        read_module(text)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_damage_is_a_crash(data):
    at = data.draw(st.integers(0, len(EVERYTHING) - 1))
    cut = data.draw(st.integers(0, 5))
    inserted = data.draw(st.sampled_from(["", "{", "}", "(", '"', "%", "@", ",", "..", "1", "x", "<", "|"]))
    try:
        read_module(EVERYTHING[:at] + inserted + EVERYTHING[at + cut:])
    except LmcError as error:
        assert error.diagnostics[0].code == "E0902"


def nested(depth: int) -> str:
    opening = "control.if(true) {\n" * depth
    closing = "control.yield()\n} {\ncontrol.yield()\n}\n" * depth
    return one_function(opening + closing + "control.return(%x)")


def test_nesting_is_bounded():
    module = read_module(nested(MAX_DEPTH))
    verify(module)
    assert print_module(read_module(print_module(module))) == print_module(module)
    for text in (nested(MAX_DEPTH + 1), nested(5000), 'module "m" { config a = ' + "[" * 10000 + "}"):
        with pytest.raises(LmcError):
            read_module(text)


def test_a_large_module_takes_linear_time():
    def seconds(lines: int) -> float:
        text = one_function("\n".join(f"    %t{i}: str = text.concat(%x, \"a\")" for i in range(lines)) + "\n    control.return(%x)")
        return processor_seconds(lambda: print_module(read_module(text)), runs=1)

    seconds(100)
    # Ten times as much takes about ten times as long; a quadratic step would take a hundred times.
    assert seconds(20000) < 40 * max(seconds(2000), 0.01)
