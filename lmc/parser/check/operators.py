"""Types of operators and comparisons.

| operands | result |
| --- | --- |
| int op int | int (`/` gives float) |
| a float among them | float |
| str + str, list + list | str, list |
| str * int, list * int | str, list |

A comparison that can never be true is a mistake: `label == "positiv"` where the type has no such literal.
"""

from __future__ import annotations

from lmc.parser import ast
from lmc.parser.check.body import Body
from lmc.parser.check.model import UNKNOWN
from lmc.parser.check.narrowing import check_condition
from lmc.parser.check.relations import (
    assignable, is_bool, is_int, is_number, is_str, join, known, strip_optional, type_text,
)
from lmc.parser.check.suggest import nearest
from lmc.types import BOOL, FLOAT, INT, STR, ContextT, DictT, ListT, LiteralT, NoneT, OptionalT, RangeT, Type, base_type, plain_type


def infer_unary(body: Body, expr: ast.Unary, hint: Type | None) -> Type:
    if expr.op == "not":
        check_condition(body, expr.operand)
        return BOOL
    found = body.infer(expr.operand)
    if not known(found):
        return UNKNOWN
    if not is_number(found):
        _bad_operand(body, expr, f"`{expr.op}` needs a number, found `{type_text(found)}`")
        return UNKNOWN
    wanted = plain_type(hint) if hint is not None else None
    value = _negated(expr)
    if isinstance(wanted, RangeT) and value is not None and wanted.low <= value <= wanted.high:
        return wanted
    if isinstance(wanted, LiteralT) and value is not None and value in wanted.values:
        return wanted
    return base_type(found)


def _negated(expr: ast.Unary) -> int | None:
    value = expr.operand.value if isinstance(expr.operand, ast.Constant) else None
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return -value if expr.op == "-" else value


def infer_binary(body: Body, expr: ast.Binary, hint: Type | None) -> Type:
    if expr.op in ("|", ".."):
        body.facts.error("E0308", f"`{expr.op}` is for types only", expr, "",
                         "use `range(a, b)` for numbers in a row" if expr.op == ".." else "use `or` between conditions")
        return UNKNOWN
    wanted = hint if isinstance(hint, ListT) else None
    left = body.infer(expr.left, wanted)
    if expr.op == "%" and is_str(left):
        _percent(body, expr)
        return UNKNOWN
    right = body.infer(expr.right, left if isinstance(left, ListT) and expr.op == "+" else None)
    return binary_type(body, expr, expr.op, left, right, expr.left, expr.right)


def _percent(body: Body, expr: ast.Binary) -> None:
    if isinstance(expr.right, ast.TupleExpr):
        for element in expr.right.elements:
            body.infer(element)
    else:
        body.infer(expr.right)
    body.facts.error("E0322", "text is not formatted with `%`", expr, "", 'put the value into the text: `"Hello ${name}"`')


def binary_type(body: Body, at: ast.Node, op: str, left: Type, right: Type, left_expr: ast.Expr, right_expr: ast.Expr) -> Type:
    """The type of `left op right`, reported at `at` where there is none."""
    if not (known(left) and known(right)):
        return UNKNOWN
    if is_number(left) and is_number(right):
        return _number(op, left, right)
    if op == "+" and is_str(left) and is_str(right):
        return STR
    if op == "+" and isinstance(left, ListT) and isinstance(right, ListT):
        element = join(left.element, right.element)
        if element is not None and (is_int(left.element) == is_int(right.element) or not is_number(element)):
            return ListT(element)
    if op == "*":
        for sequence, count in ((left, right), (right, left)):
            if is_int(count) and (is_str(sequence) or isinstance(sequence, ListT)):
                return STR if is_str(sequence) else ListT(sequence.element)
    _bad_operand(body, at, f"`{op}` cannot take `{type_text(left)}` and `{type_text(right)}`", _operand_help(op, left, right))
    return UNKNOWN


def _number(op: str, left: Type, right: Type) -> Type:
    if op == "/" or not (is_int(left) and is_int(right)):
        return FLOAT
    return INT


def _bad_operand(body: Body, at: ast.Node, message: str, help: str | None = None) -> None:
    body.facts.error("E0308", message, at, "", help)


def _operand_help(op: str, left: Type, right: Type) -> str | None:
    if isinstance(left, OptionalT) or isinstance(right, OptionalT):
        return "it may be None: test it first, `if x is not None:`"
    if op == "+" and (is_str(left) or is_str(right)):
        return 'put values into text: `"${a} ${b}"`, or write `str(x)`'
    if op == "+" and isinstance(left, ListT) and assignable(right, left.element):
        return "to add one element write `xs + [x]`"
    if op == "+" and isinstance(left, DictT):
        return "set the keys one by one: `d[k] = v`"
    return None


# ------------------------------------------------------------------- comparisons


def infer_compare(body: Body, expr: ast.Compare) -> Type:
    left_expr, left = expr.first, body.infer(expr.first)
    for op, right_expr in zip(expr.ops, expr.rest):
        right = _side(body, op, left, right_expr)
        if known(left) and known(right):
            _compare(body, op, left_expr, left, right_expr, right)
        left_expr, left = right_expr, right
    return BOOL


def _side(body: Body, op: str, left: Type, expr: ast.Expr) -> Type:
    if op in ("in", "not in"):
        return body.infer(expr, ListT(left) if isinstance(expr, ast.ListExpr) and known(left) else None)
    return body.infer(expr, left if known(left) else None)


def _compare(body: Body, op: str, left_expr: ast.Expr, left: Type, right_expr: ast.Expr, right: Type) -> None:
    if op in ("in", "not in"):
        _membership(body, left, right_expr, right, left_expr)
    elif op in ("is", "is not"):
        if not isinstance(right, NoneT) and not isinstance(left, ContextT):
            body.facts.error("E0308", f"`{op}` is for None and contexts", right_expr, "",
                             f"compare values with `{'==' if op == 'is' else '!='}`")
        elif isinstance(right, NoneT):
            _possible_none(body, left_expr, left)
    elif op in ("==", "!="):
        _equality(body, left_expr, left, right_expr, right)
    elif not (is_number(left) and is_number(right) or is_str(left) and is_str(right)):
        _bad_operand(body, right_expr, f"`{op}` cannot compare `{type_text(left)}` with `{type_text(right)}`",
                     _operand_help(op, left, right))


def _possible_none(body: Body, expr: ast.Expr, found: Type) -> None:
    # What only this path knows to be no None may be tested all the same.
    if not isinstance(found, (OptionalT, NoneT)) and body.path(expr) not in body.flow.narrowed:
        body.facts.error("E0308", f"`{type_text(found)}` is never None", expr, f"this is `{type_text(found)}`",
                         "remove the test, or give the value the type `T | None`")


def _equality(body: Body, left_expr: ast.Expr, left: Type, right_expr: ast.Expr, right: Type) -> None:
    if isinstance(right, NoneT):
        _possible_none(body, left_expr, left)
        return
    for expr, other in ((right_expr, left), (left_expr, right)):
        if _never_equal(body, expr, other):
            return
    if join(left, right) is None and not (is_number(left) and is_number(right)) or is_bool(left) != is_bool(right):
        body.facts.error("E0308", f"`{type_text(left)}` and `{type_text(right)}` are never equal", right_expr,
                         f"this is `{type_text(right)}`")


def _never_equal(body: Body, expr: ast.Expr, type: Type) -> bool:
    """Report a literal that is none of the literals of the type it is compared with."""
    type = strip_optional(type)
    value = expr.plain if isinstance(expr, ast.Text) else expr.value if isinstance(expr, ast.Constant) else None
    if not isinstance(type, LiteralT) or value is None or any(value == v for v in type.values):
        return False
    if isinstance(value, str) != isinstance(type.values[0], str):
        return False
    near = nearest(value, [v for v in type.values if isinstance(v, str)]) if isinstance(value, str) else None
    body.facts.error("E0308", f"this is never equal: the value is one of {type_text(type)}", expr, "not among them",
                     f'did you mean `"{near}"`?' if near else None)
    return True


def _membership(body: Body, left: Type, right_expr: ast.Expr, right: Type, left_expr: ast.Expr) -> None:
    match right:
        case ListT(element) | DictT(key=element):
            if join(left, element) is None:
                body.facts.error("E0308", f"a `{type_text(left)}` is never in a `{type_text(right)}`", left_expr)
        case _ if is_str(right):
            if not is_str(left):
                body.facts.error("E0308", f"`in` a text needs a `str`, found `{type_text(left)}`", left_expr)
        case _:
            body.facts.error("E0308", f"`in` needs a list, a dict or text, found `{type_text(right)}`", right_expr)


def infer_bool_op(body: Body, expr: ast.BoolOp) -> Type:
    before = dict(body.flow.narrowed)
    for operand in expr.operands:
        when_true, when_false = check_condition(body, operand)
        # Each operand is reached only where those before it were true (`and`) or false (`or`).
        body.flow.narrow(when_true if expr.op == "and" else when_false)
    body.flow.narrowed = before
    return BOOL
