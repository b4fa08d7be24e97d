"""Instructions of a walk that run blocks side by side.

    fork d in ["clarity", "evidence"]:     two branches, each with a context of its own
    [ask(x) for x in xs]                   xs is not known: one element that stands for all, 0 to * times, and its twin

All of them start when the fork does, and it is over when the last of them is.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from lmc.backend.program import CodeBlock, Instruction
from lmc.diagnostics import RunError
from lmc.runtime.failures import UNCATCHABLE, error_value
from lmc.runtime.forecast.tree import Group
from lmc.runtime.forecast.values import Cell, Unknown, plain
from lmc.runtime.forecast.walk import Done, Frame, Walk, WalkEnds
from lmc.runtime.frames import Exit
from lmc.types import STR

#: What one branch gave, and when.
_Row = tuple[tuple[Cell, ...], int]


def fork(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    context = frame.operand(instruction, "context")
    return _each(walk, frame, instruction, begin, "fork", "branch", lambda item: (context, item))


def comprehension(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    return _each(walk, frame, instruction, begin, "map", "element", lambda item: (item,))


def branches(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    context, attributes = frame.operand(instruction, "context"), instruction.attributes
    cells: list[Cell] = []
    end = begin
    with walk.inside(Group("arms", instruction.span, walk.places.head(instruction.span))) as group:
        for index, (name, count, block) in enumerate(zip(attributes["names"], attributes["counts"], instruction.blocks)):
            row, ended = _branch(walk, frame, instruction, block, index, (context,), Group("arm", instruction.span, name), count, begin)
            cells += row
            end = max(end, ended)
        group.least = group.most = len(group.members)
    frame.write(instruction, tuple(cell._replace(ready=end) for cell in cells))
    return Done(end)


def _each(walk: Walk, frame: Frame, instruction: Instruction, begin: int, kind: str, member: str,
          args: Callable[[Cell], tuple[Cell, ...]]) -> Done:
    items = frame.operand(instruction, "items")
    value = items.value
    least, most = value.lengths if isinstance(value, Unknown) else (len(value), len(value))
    count = len(value) if not isinstance(value, Unknown) else 2 if most is None else min(2, most)
    rows: list[_Row] = []
    unsure = isinstance(value, Unknown) and least == 0
    with walk.inside(Group(kind, instruction.span, walk.places.head(instruction.span), least, most), unsure=unsure) as group:
        for index in range(count):
            item = Cell(value.element if isinstance(value, Unknown) else value[index], True, begin)
            one = Group(member, instruction.span, str(index))
            try:
                row = _branch(walk, frame, instruction, instruction.blocks[0], index, args(item), one, len(instruction.outputs), begin)
            except RunError:
                if not unsure:
                    raise
                # Where there are elements the run fails: a run that comes through has none.
                walk.doubts += 1
                break
            rows.append(row)
        if isinstance(value, Unknown) and len(group.members) == 2:
            group.twin = group.members.pop()
    end = max((ended for _, ended in rows), default=begin)
    frame.write(instruction, tuple(
        Cell(_column(rows, place, value, instruction), True, end) for place in range(len(instruction.outputs))))
    return Done(end)


def _column(rows: list[_Row], place: int, items: Any, instruction: Instruction) -> Any:
    """One result: a list with the value of each branch, as far as there is a list of branches."""
    if isinstance(items, Unknown):
        return Unknown(instruction.types[place], instruction.span)
    return tuple(plain(row[place].value, STR) for row, _ in rows)


def _branch(walk: Walk, frame: Frame, instruction: Instruction, block: CodeBlock, index: int, args: tuple[Cell, ...], group: Group,
            width: int, begin: int) -> _Row:
    own = frame.branch(instruction.attributes["site"], index)
    own.enter(block.params, args)
    doubts, collects = walk.doubts, bool(instruction.attributes.get("collect"))
    try:
        with walk.inside(group), walk.caught(group) if collects else nullcontext():
            exits, end = walk.block(own, block, begin, instruction)
    except RunError as error:
        if not collects or error.kind in UNCATCHABLE:
            raise
        return (Cell(error_value(error), True, begin),) * width, begin
    if Exit.YIELD not in exits:
        raise WalkEnds(f"the plan ends at {instruction.span}: a branch never ends")
    cells = exits[Exit.YIELD]
    if collects and walk.doubts != doubts:
        # Each may be an error in the run.
        cells = tuple(Cell(Unknown(STR, instruction.span), True, cell.ready) for cell in cells)
    return cells, end
