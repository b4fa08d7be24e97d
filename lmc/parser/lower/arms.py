"""`if`, its `elif`s and its `else` -> `control.if` inside one another.

    if n < 1: a()                 control.if(%t) { a }
    elif n < 2: b()      ->                      { control.if(%t2) { b }
    else: c()                                                      { c } }

A long chain would nest as deep as it is long.  It first finds which condition holds, as a number, and then goes to the block of
that number by halves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lmc.ir.builder import literal
from lmc.ir.core import Operand
from lmc.parser import ast
from lmc.parser.lower.control import branch
from lmc.parser.lower.expressions import pure
from lmc.parser.lower.frame import LONG, Frame
from lmc.types import BOOL, INT

Arm = ast.If | ast.Elif
Condition = Callable[[Frame, ast.Expr], Operand]
Block = Callable[[tuple[ast.Stmt, ...]], None]


def choose_arm(frame: Frame, statement: ast.If, condition: Condition, block: Block) -> None:
    """Lower the statement; `condition` gives the value of a condition, `block` writes the statements of an arm."""
    arms = statement.arms
    if len(arms) <= LONG:
        _in_order(frame, arms, statement.otherwise, condition, block)
        return
    number = _first_that_holds(frame, arms, 0, len(arms), condition)
    _by_number(frame, number, statement, (*(arm.then for arm in arms), statement.otherwise), 0, block)


def _in_order(frame: Frame, arms: Sequence[Arm], otherwise: tuple[ast.Stmt, ...], condition: Condition, block: Block) -> None:
    if not arms:
        block(otherwise)
        return
    test = arms[0].condition
    branch(frame, test.span, condition(frame, test), lambda: block(arms[0].then),
           lambda: _in_order(frame, arms[1:], otherwise, condition, block))


def _first_that_holds(frame: Frame, arms: Sequence[Arm], first: int, none: int, condition: Condition) -> Operand:
    """The number of the first arm whose condition holds, counted from `first`; `none` where there is none."""
    test = arms[0].condition
    if len(arms) > 1:
        half = len(arms) // 2
        found = _first_that_holds(frame, arms[:half], first, none, condition)
        missed = pure(frame, test, "eq", BOOL, found, literal(none))
        number = branch(frame, test.span, missed, lambda: _first_that_holds(frame, arms[half:], first + half, none, condition),
                        lambda: found, value=INT)
    else:
        number = branch(frame, test.span, condition(frame, test), lambda: literal(first), lambda: literal(none), value=INT)
    # A condition that fails leaves no way that arrives here.
    return number if number is not None else literal(none)


def _by_number(frame: Frame, number: Operand, at: ast.If, blocks: Sequence[tuple[ast.Stmt, ...]], first: int, block: Block) -> None:
    """Go to `blocks[number - first]`."""
    if len(blocks) == 1:
        block(blocks[0])
        return
    half = len(blocks) // 2
    low = pure(frame, at.condition, "lt", BOOL, number, literal(first + half))
    branch(frame, at.condition.span, low, lambda: _by_number(frame, number, at, blocks[:half], first, block),
           lambda: _by_number(frame, number, at, blocks[half:], first + half, block))
