"""Conditions: they must be bools, and what they establish about names that may be None.

    if c.patronus is not None:
        "${c.patronus}"             # here a str

This file knows no statements; `check_condition` gives what holds where the condition is true and where it is false.
"""

from __future__ import annotations

from lmc.parser import ast
from lmc.parser.check.body import Body
from lmc.parser.check.flow import Path
from lmc.parser.check.relations import is_bool, is_number, is_str, known, type_text
from lmc.types import NONE, BoolT, DictT, ListT, OptionalT, Type

Narrowing = dict[Path, Type]


def check_condition(body: Body, expr: ast.Expr) -> tuple[Narrowing, Narrowing]:
    """Check that `expr` is a bool; gives what is known where it is true and where it is false."""
    found = body.infer(expr)
    if known(found) and not is_bool(found):
        body.facts.error("E0309", f"a condition must be a bool, found `{type_text(found)}`", expr,
                         f"this is `{type_text(found)}`", _as_bool(found))
    return narrowings(body, expr)


def _as_bool(found: Type) -> str | None:
    match found:
        case ListT() | DictT():
            return "compare its length: `len(xs) > 0`"
        case OptionalT():
            return "compare with None: `x is not None`"
        case BoolT():
            return None
    if is_str(found):
        return 'compare with the empty text: `s != ""`'
    return "compare with a number: `n != 0`" if is_number(found) else None


def narrowings(body: Body, expr: ast.Expr) -> tuple[Narrowing, Narrowing]:
    """What an already checked condition establishes."""
    match expr:
        case ast.Unary(op="not", operand=operand):
            when_true, when_false = narrowings(body, operand)
            return when_false, when_true
        case ast.BoolOp(op="and", operands=operands):
            return _all_of([narrowings(body, o)[0] for o in operands]), {}
        case ast.BoolOp(op="or", operands=operands):
            return {}, _all_of([narrowings(body, o)[1] for o in operands])
        case ast.Compare(ops=("is" | "==",), rest=(ast.Constant(value=None),)):
            return _none_test(body, expr.first)
        case ast.Compare(ops=("is not" | "!=",), rest=(ast.Constant(value=None),)):
            is_none, is_some = _none_test(body, expr.first)
            return is_some, is_none
    return {}, {}


def _all_of(parts: list[Narrowing]) -> Narrowing:
    return {path: type for part in parts for path, type in part.items()}


def _none_test(body: Body, expr: ast.Expr) -> tuple[Narrowing, Narrowing]:
    path, found = body.path(expr), body.facts.expr_types.get(expr)
    if path is None or not isinstance(found, OptionalT):
        return {}, {}
    return {path: NONE}, {path: found.inner}
