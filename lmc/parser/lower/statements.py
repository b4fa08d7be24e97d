"""Statements -> ops, in order; what follows a `return`, `break` or `continue` is not lowered.

One function for each statement, in the order of the table at the end.  Blocks are written by the functions of `control.py`,
`branches.py` and `matching.py`, which get `lower_block` passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lmc.ir.builder import literal
from lmc.ir.core import Literal, Operand, Value
from lmc.ir.ops import Assert, Break, Continue, Return, Role, TextConcat
from lmc.parser import ast
from lmc.parser.lower import expressions
from lmc.parser.lower.assigned import assigned_names, used_outside
from lmc.parser.lower.arms import choose_arm
from lmc.parser.lower.branches import fork_arms, fork_over
from lmc.parser.lower.control import attempt, branch, leave_round, loop_over, loop_while, unreachable
from lmc.parser.lower.expressions import condition, expression, iterable
from lmc.parser.lower.frame import HERE, Frame
from lmc.parser.lower.generation import append_text, default_options, first_character, generate, generating
from lmc.parser.lower.matching import match_cases
from lmc.parser.lower.targets import bind, element_hint
from lmc.types import NONE, STR, OptionalT, StrT


def lower_body(frame: Frame, statements: tuple[ast.Stmt, ...], at: ast.Node) -> None:
    """The body of a function.  Running off its end returns None, where the function may."""
    lower_block(frame, statements, statements)
    if frame.closed:
        return
    if frame.result == NONE or isinstance(frame.result, OptionalT):
        _return_value(frame, at, Literal(None, NONE))
    else:
        unreachable(frame, at.span)


def lower_block(frame: Frame, statements: tuple[ast.Stmt, ...], function: tuple[ast.Stmt, ...]) -> None:
    """Statements in order; `function` is the whole body that they are part of."""
    for i, statement in enumerate(statements):
        if frame.closed:
            return
        following = statements[i + 1] if i + 1 < len(statements) else None
        _LOWER[type(statement)](frame, statement, _Place(function, following))


class _Place:
    """Where a statement stands: the body of its function, and the statement after it in the same block."""

    __slots__ = ("function", "following")

    def __init__(self, function: tuple[ast.Stmt, ...], following: ast.Stmt | None):
        self.function, self.following = function, following

    def block(self, frame: Frame, statements: tuple[ast.Stmt, ...]) -> None:
        lower_block(frame, statements, self.function)


def _value(frame: Frame, expr: ast.Expr, place: _Place, hint: str = "") -> Operand:
    """The value of an expression that is a whole statement or the right side of an assignment: it may generate."""
    if generating(frame, expr) is None:
        return expression(frame, expr, hint)
    return generate(frame, expr, first_character(place.following), hint)


def _expression(frame: Frame, statement: ast.ExprStmt, place: _Place) -> None:
    if isinstance(statement.value, ast.Text) and frame.role is not None:
        append_text(frame, statement.value, first_character(place.following))
    else:
        _value(frame, statement.value, place)


# ------------------------------------------------------------------ assignments


def _assign(frame: Frame, statement: ast.Assign, place: _Place) -> None:
    if isinstance(statement.target, ast.Name):
        symbol = frame.checked.symbols[statement.target]
        if statement.op is None:
            frame.names[symbol] = _value(frame, statement.value, place, symbol.name)
        else:
            left = expression(frame, statement.target)
            right = expression(frame, statement.value)
            frame.names[symbol] = expressions.binary(frame, statement, statement.op, left, right, symbol.type, symbol.name)
        return
    target = statement.target
    assert isinstance(target, ast.Index), "the checker refuses other targets"
    owner = expression(frame, target.value)
    key = expression(frame, target.index)
    if statement.op is None:
        item = _value(frame, statement.value, place)
    else:
        item_type = frame.checked.expr_types[target]
        old = expressions.pure(frame, target, "index", item_type, owner, key)
        item = expressions.binary(frame, statement, statement.op, old, expression(frame, statement.value), item_type)
    _set_item(frame, target, owner, key, item)


def _set_item(frame: Frame, target: ast.Index, owner: Operand, key: Operand, item: Operand) -> None:
    """`owner[key] = item`: a new value for the name at the root, through all owners on the way."""
    hint = target.value.text if isinstance(target.value, ast.Name) else ""
    changed = expressions.pure(frame, target, "set_item", owner.type, owner, key, item, hint=hint)
    if isinstance(target.value, ast.Name):
        frame.names[frame.checked.symbols[target.value]] = changed
    elif isinstance(target.value, ast.Index):
        outer = target.value
        _set_item(frame, outer, expression(frame, outer.value), expression(frame, outer.index), changed)
    else:
        frame.refuse(target.span, "assigning to an element of this", "bind it to a name first")


# ----------------------------------------------------------------- control flow


def _if(frame: Frame, statement: ast.If, place: _Place) -> None:
    choose_arm(frame, statement.arms, statement.otherwise, condition, place.block)


def _for(frame: Frame, statement: ast.For, place: _Place) -> None:
    items = iterable(frame, statement.iterable)

    def body(element: Value) -> None:
        bind(frame, statement.targets, element)
        place.block(frame, statement.body)

    targets = (frame.checked.symbols[t] for t in statement.targets)
    carried = dict.fromkeys([*targets, *assigned_names(frame.checked, statement.body)])
    loop_over(frame, statement.span, items, element_hint(statement.targets), carried, body)


def _while(frame: Frame, statement: ast.While, place: _Place) -> None:
    assigned = assigned_names(frame.checked, (statement,))
    # After `while True` a name is known that was first assigned inside, if it was on every way to a `break`.
    endless = isinstance(statement.condition, ast.Constant) and statement.condition.value is True
    read = used_outside(frame.checked, (statement,), place.function) if endless else set()
    carried = [key for key in assigned if key in frame.names or key in read]
    loop_while(frame, statement.span, carried, lambda: condition(frame, statement.condition),
               lambda: place.block(frame, statement.body))


def _match(frame: Frame, statement: ast.Match, place: _Place) -> None:
    subject = expression(frame, statement.subject)
    match_cases(frame, statement, subject, lambda statements: place.block(frame, statements))


def _try(frame: Frame, statement: ast.Try, place: _Place) -> None:
    def handler(error: Value) -> None:
        if statement.name is not None:
            frame.names[frame.checked.symbols[statement.name]] = error
        place.block(frame, statement.handler)

    attempt(frame, statement.span, lambda: place.block(frame, statement.body), handler)


def _break(frame: Frame, statement: ast.Break, place: _Place) -> None:
    leave_round(frame, statement.span, Break)


def _continue(frame: Frame, statement: ast.Continue, place: _Place) -> None:
    leave_round(frame, statement.span, Continue)


def _return(frame: Frame, statement: ast.Return, place: _Place) -> None:
    value = expression(frame, statement.value) if statement.value is not None else Literal(None, NONE)
    _return_value(frame, statement, value)


def _return_value(frame: Frame, at: ast.Node, value: Operand) -> None:
    values = (frame.context, value) if frame.kind == "part" else (value,)
    frame.add(Return, at.span, values=values)


def _assert(frame: Frame, statement: ast.Assert, place: _Place) -> None:
    """The message is computed only where the condition fails, unless it is a plain text."""
    test, sides = _tested(frame, statement.condition)
    message = statement.message
    if message is None or isinstance(message, ast.Text) and message.plain is not None:
        text = literal(message.plain) if message is not None else None
        frame.add(Assert, statement.span, condition=test, message=text, **sides)
        return

    def failing() -> None:
        value = expression(frame, message)
        if not isinstance(value.type, StrT):
            value = frame.value(TextConcat, message.span, STR, pieces=(value,))
        frame.add(Assert, statement.span, condition=literal(False), message=value, **sides)

    branch(frame, statement.span, test, lambda: None, failing)


def _tested(frame: Frame, expr: ast.Expr) -> tuple[Operand, dict[str, Operand]]:
    """The condition of an `assert`, and the sides where it is one comparison."""
    if not isinstance(expr, ast.Compare) or len(expr.ops) != 1:
        return condition(frame, expr), {}
    left, right = expression(frame, expr.first), expression(frame, expr.rest[0])
    return expressions.comparison(frame, expr, expr.ops[0], left, right), {"left": left, "right": right}


def _pass(frame: Frame, statement: ast.Pass, place: _Place) -> None:
    """Nothing."""


# ---------------------------------------------------------- conversation and fork


def _role_block(frame: Frame, statement: ast.RoleBlock, place: _Place) -> None:
    with frame.turn(Role(statement.role)):
        place.block(frame, statement.body)


def _resume(frame: Frame, statement: ast.Resume, place: _Place) -> None:
    frame.names[HERE] = expression(frame, statement.context)


def _fork(frame: Frame, statement: ast.Fork, place: _Place) -> None:
    items = iterable(frame, statement.iterable) if statement.iterable is not None else None
    options = default_options(frame, dict(frame.checked.forks[statement].options))

    def body(statements: tuple[ast.Stmt, ...]) -> None:
        place.block(frame, statements)

    if items is not None:
        fork_over(frame, statement, items, options, body)
    else:
        fork_arms(frame, statement, options, body)


_LOWER: Mapping[type[ast.Stmt], Callable[[Frame, ast.Stmt, _Place], None]] = {
    ast.ExprStmt: _expression, ast.Assign: _assign, ast.If: _if, ast.For: _for, ast.While: _while, ast.Match: _match,
    ast.Try: _try, ast.Break: _break, ast.Continue: _continue, ast.Return: _return, ast.Assert: _assert, ast.Pass: _pass,
    ast.RoleBlock: _role_block, ast.Resume: _resume, ast.Fork: _fork,
}
