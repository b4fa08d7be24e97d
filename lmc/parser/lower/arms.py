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
Block = Callable[[Frame, tuple[ast.Stmt, ...]], None]


def choose_arm(frame: Frame, arms: Sequence[Arm], otherwise: tuple[ast.Stmt, ...], condition: Condition, block: Block) -> None:
    """Lower the arms of an `if`; `condition` gives the value of a condition, `block` writes the statements of an arm."""
    test = arms[0].condition
    if len(arms) > LONG:
        number = _first_that_holds(frame, arms, 0, len(arms), condition)
        _by_number(frame, number, test, (*(arm.then for arm in arms), otherwise), 0, block)
    elif len(arms) > 1:
        branch(frame, test.span, condition(frame, test), lambda: block(frame, arms[0].then),
               lambda: choose_arm(frame, arms[1:], otherwise, condition, block))
    else:
        branch(frame, test.span, condition(frame, test), lambda: block(frame, arms[0].then), lambda: block(frame, otherwise))


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


def _by_number(frame: Frame, number: Operand, at: ast.Expr, blocks: Sequence[tuple[ast.Stmt, ...]], first: int, block: Block) -> None:
    """Go to `blocks[number - first]`."""
    if len(blocks) == 1:
        block(frame, blocks[0])
        return
    half = len(blocks) // 2
    low = pure(frame, at, "lt", BOOL, number, literal(first + half))
    branch(frame, at.span, low, lambda: _by_number(frame, number, at, blocks[:half], first, block),
           lambda: _by_number(frame, number, at, blocks[half:], first + half, block))
