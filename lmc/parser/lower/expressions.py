"""Expressions -> ops, in the order in which Python evaluates them.

    "Hi ${name}" if name != "" else "Hi"      ->      %0: bool = pure.call(%name, "")[function = "ne"]
                                                      %1: str = control.if(%0) {…} {…}

Each gives one operand.  What may be skipped (`and`, `or`, chains of comparisons, conditionals) is inside a
`control.if`.  Generating calls are not here: they stand in statements and holes only (`generation.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lmc.ir.builder import literal
from lmc.ir.core import Literal, Operand
from lmc.ir.ops import DictMake, ListMake, PureCall, RecordGet, TextConcat, TupleGet
from lmc.parser import ast
from lmc.parser.check.model import ConstSymbol, LocalSymbol
from lmc.parser.lower import calls
from lmc.parser.lower.comprehensions import comprehension
from lmc.parser.lower.constants import constant
from lmc.parser.lower.control import branch
from lmc.parser.lower.frame import LONG, Frame
from lmc.types import BOOL, FLOAT, NEVER, STR, DictT, TupleT, Type, plain_type

_BINARY = {"+": "add", "-": "sub", "*": "mul", "/": "div", "//": "floordiv", "%": "mod", "**": "pow"}
_COMPARE = {
    "==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "in": "in", "not in": "not_in",
    "is": "eq", "is not": "ne",
}


def expression(frame: Frame, expr: ast.Expr, hint: str = "") -> Operand:
    """The value of an expression; `hint` names it in the text form."""
    operand = _LOWER[type(expr)](frame, expr, hint)
    if expr not in frame.checked.conversions:
        return operand
    if isinstance(operand, Literal) and operand.value is not None:
        return literal(float(operand.value))
    return frame.value(PureCall, expr.span, FLOAT, hint, args=(operand,), function="float")


def condition(frame: Frame, expr: ast.Expr) -> Operand:
    """The truth of an expression."""
    return _truth(frame, expr, expression(frame, expr))


def pure(frame: Frame, expr: ast.Node, function: str, type: Type, *args: Operand, hint: str = "") -> Operand:
    """A `pure.call` at the place of `expr`."""
    return frame.value(PureCall, expr.span, type, hint, args=args, function=function)


def iterable(frame: Frame, expr: ast.Expr) -> Operand:
    """What is run over, as a list: the keys of a dict, the characters of a text."""
    from_type = frame.checked.expr_types[expr]
    return as_list(frame, expr, expression(frame, expr), from_type)


def as_list(frame: Frame, expr: ast.Expr, items: Operand, type: Type) -> Operand:
    return calls.as_list(frame, expr.span, items, type)


def binary(frame: Frame, at: ast.Node, op: str, left: Operand, right: Operand, type: Type, hint: str = "") -> Operand:
    """`left op right`, also of an assignment `left op= right`."""
    return pure(frame, at, _BINARY[op], type, left, right, hint=hint)


def comparison(frame: Frame, at: ast.Node, op: str, left: Operand, right: Operand, hint: str = "") -> Operand:
    return pure(frame, at, _COMPARE[op], BOOL, left, right, hint=hint)


def _truth(frame: Frame, expr: ast.Expr, value: Operand) -> Operand:
    if value.type == BOOL:
        return value
    return pure(frame, expr, "bool", BOOL, value)


def _type(frame: Frame, expr: ast.Expr) -> Type:
    return frame.checked.expr_types[expr]


# --------------------------------------------------------------- names and text


def _constant(frame: Frame, expr: ast.Constant, hint: str) -> Operand:
    return literal(expr.value)


def _text(frame: Frame, expr: ast.Text, hint: str) -> Operand:
    if expr.plain is not None:
        return literal(expr.plain)
    pieces = tuple(literal(p.text) if isinstance(p, ast.TextPiece) else expression(frame, p.value) for p in expr.parts)
    return frame.value(TextConcat, expr.span, STR, hint, pieces=pieces)


def _name(frame: Frame, expr: ast.Name | ast.Attribute, hint: str) -> Operand:
    symbol = frame.checked.symbols[expr]
    if isinstance(symbol, LocalSymbol):
        # After a terminator names may have no value; nothing there is kept.
        return frame.names.get(symbol) or Literal(None, symbol.type)
    assert isinstance(symbol, ConstSymbol), symbol
    return constant(frame, expr.span, frame.checked.constants[symbol], symbol.type, symbol.name)


def _here(frame: Frame, expr: ast.Here, hint: str) -> Operand:
    return frame.context


def _attribute(frame: Frame, expr: ast.Attribute, hint: str) -> Operand:
    if expr in frame.checked.symbols:
        return _name(frame, expr, hint)
    record = expression(frame, expr.value)
    return frame.value(RecordGet, expr.span, _type(frame, expr), hint or expr.name.text, record=record, field=expr.name.text)


def _index(frame: Frame, expr: ast.Index, hint: str) -> Operand:
    value = expression(frame, expr.value)
    if isinstance(value.type, TupleT):
        position = expression(frame, expr.index)
        assert isinstance(position, Literal), "the checker wants a constant here"
        index = position.value % len(value.type.items)
        return frame.value(TupleGet, expr.span, _type(frame, expr), hint, value=value, index=index)
    return pure(frame, expr, "index", _type(frame, expr), value, expression(frame, expr.index), hint=hint)


def _slice(frame: Frame, expr: ast.Slice, hint: str) -> Operand:
    value = expression(frame, expr.value)
    bounds = [expression(frame, b) if b is not None else literal(None) for b in (expr.start, expr.stop, expr.step)]
    return pure(frame, expr, "slice", _type(frame, expr), value, *bounds, hint=hint)


def _call(frame: Frame, expr: ast.Call, hint: str) -> Operand:
    return calls.call(frame, expr, expression, hint)


# -------------------------------------------------------------------- operators


def _unary(frame: Frame, expr: ast.Unary, hint: str) -> Operand:
    if expr.op == "not":
        return pure(frame, expr, "not", BOOL, condition(frame, expr.operand), hint=hint)
    operand = expression(frame, expr.operand)
    if isinstance(operand, Literal) and type(operand.value) in (int, float):
        return literal(-operand.value if expr.op == "-" else operand.value)
    return pure(frame, expr, {"-": "neg", "+": "pos"}[expr.op], _type(frame, expr), operand, hint=hint)


def _binary(frame: Frame, expr: ast.Binary, hint: str) -> Operand:
    left = expression(frame, expr.left)
    return binary(frame, expr, expr.op, left, expression(frame, expr.right), _type(frame, expr), hint)


def _compare(frame: Frame, expr: ast.Compare, hint: str) -> Operand:
    return _chain(frame, expr, expression(frame, expr.first), 0, hint)


def _chain(frame: Frame, expr: ast.Compare, left: Operand, at: int, hint: str) -> Operand:
    """`left ops[at] rest[at] ops[at+1] …`: what follows is computed only where this holds."""
    right = expression(frame, expr.rest[at])
    holds = comparison(frame, expr, expr.ops[at], left, right, hint)
    if at + 1 == len(expr.ops):
        return holds
    return _branch_value(frame, expr, holds, lambda: _chain(frame, expr, right, at + 1, ""), lambda: literal(False), BOOL, hint)


def _bool_op(frame: Frame, expr: ast.BoolOp, hint: str) -> Operand:
    return _any_or_all(frame, expr, expr.operands, hint)


def _any_or_all(frame: Frame, expr: ast.BoolOp, operands: tuple[ast.Expr, ...], hint: str) -> Operand:
    """`a or b or …` is `a or (b or …)`; a long one is cut in halves, so that its blocks do not nest as deep as it is long."""
    if len(operands) == 1:
        return expression(frame, operands[0])
    at = len(operands) // 2 if len(operands) > LONG and _type(frame, expr) == BOOL else 1
    value = _any_or_all(frame, expr, operands[:at], "")
    truth = value if at > 1 else _truth(frame, operands[0], value)

    def rest() -> Operand:
        return _any_or_all(frame, expr, operands[at:], "")

    def decided() -> Operand:
        return literal(expr.op == "or") if value.type == BOOL else value

    then, otherwise = (rest, decided) if expr.op == "and" else (decided, rest)
    return _branch_value(frame, expr, truth, then, otherwise, _type(frame, expr), hint)


def _conditional(frame: Frame, expr: ast.Conditional, hint: str) -> Operand:
    truth = condition(frame, expr.condition)
    return _branch_value(frame, expr, truth, lambda: expression(frame, expr.then), lambda: expression(frame, expr.otherwise),
                         _type(frame, expr), hint)


def _branch_value(frame: Frame, expr: ast.Expr, truth: Operand, then: Callable[[], Operand], otherwise: Callable[[], Operand],
                  type: Type, hint: str) -> Operand:
    value = branch(frame, expr.span, truth, then, otherwise, value=type, hint=hint)
    # Without a value no way arrives here: what follows is not kept.
    return value if value is not None else Literal(None, NEVER)


# ------------------------------------------------------------------ collections


def _list(frame: Frame, expr: ast.ListExpr, hint: str) -> Operand:
    elements = tuple(expression(frame, e) for e in expr.elements)
    return frame.value(ListMake, expr.span, _type(frame, expr), hint, elements=elements)


def _dict(frame: Frame, expr: ast.DictExpr, hint: str) -> Operand:
    entries = tuple(expression(frame, e) for pair in zip(expr.keys, expr.values) for e in pair)
    return frame.value(DictMake, expr.span, _type(frame, expr), hint, entries=entries)


def _record(frame: Frame, expr: ast.RecordExpr, hint: str) -> Operand:
    type = _type(frame, expr)
    type = plain_type(type)
    if isinstance(type, DictT):
        return frame.value(DictMake, expr.span, type, hint, entries=())
    given = {field.name.text: expression(frame, field.value) for field in expr.fields}
    return calls.make_record(frame, expr.span, type, given, hint)


def _comprehension(frame: Frame, expr: ast.Comprehension, hint: str) -> Operand:
    return comprehension(frame, expr, expression, condition, iterable, hint)


_LOWER: Mapping[type[ast.Expr], Callable[[Frame, ast.Expr, str], Operand]] = {
    ast.Constant: _constant, ast.Text: _text, ast.Name: _name, ast.Here: _here, ast.Attribute: _attribute, ast.Index: _index,
    ast.Slice: _slice, ast.Call: _call, ast.Unary: _unary, ast.Binary: _binary, ast.Compare: _compare, ast.BoolOp: _bool_op,
    ast.Conditional: _conditional, ast.ListExpr: _list, ast.DictExpr: _dict, ast.RecordExpr: _record,
    ast.Comprehension: _comprehension,
}
