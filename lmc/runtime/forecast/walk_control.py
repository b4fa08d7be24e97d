"""Instructions of a walk that choose and repeat blocks, and calls of functions.

    while True: …     two rounds, the first in the tree; `0 to *` times if something in it may leave
    if found: …       both arms where `found` is not known, and what they give is either
    try: …            the handler too, where something in the body may fail in a run
"""

from __future__ import annotations

from typing import Any

from lmc.backend.program import CodeBlock, Instruction, Register
from lmc.diagnostics import RunError
from lmc.runtime.failures import UNCATCHABLE, called, error_value, failure, noted, short_name
from lmc.runtime.forecast.either import either_cells
from lmc.runtime.forecast.prompts import Foreseen
from lmc.runtime.forecast.tree import Group, calls_of
from lmc.runtime.forecast.values import Cell, Unknown
from lmc.runtime.forecast.walk import Done, Exits, Frame, Walk, WalkEnds, either_exits
from lmc.runtime.forecast.walk_values import nothing
from lmc.runtime.frames import Exit
from lmc.runtime.plan import inlined_calls
from lmc.types import ERROR, ContextT

# A function that calls itself where data decide is followed so deep.
_DEEPEST = 2


def control_if(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    condition = frame.operand(instruction, "condition").value
    if isinstance(condition, bool):
        exits, end = walk.block(frame, instruction.blocks[0 if condition else 1], begin, instruction)
        return _deliver(frame, instruction, exits, end)
    found: Exits = {}
    end, errors = begin, []
    for name, block in zip(("if", "else"), instruction.blocks):
        try:
            with walk.inside(Group(name, instruction.span, walk.places.head(instruction.span) if name == "if" else "", 0, 1), unsure=True):
                exits, ended = walk.block(frame, block, begin, instruction)
        except RunError as error:
            errors.append(error)
            continue
        found, end = either_exits(walk.foreseer, found, exits), max(end, ended)
    if len(errors) == 2:
        raise errors[0]
    walk.doubts += len(errors)
    return _deliver(frame, instruction, found, end)


def control_try(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    body, handler = instruction.blocks
    doubts, failed, exits, end = walk.doubts, None, {}, begin
    try:
        with walk.inside(Group("try", instruction.span, "")) as group, walk.caught(group):
            exits, end = walk.block(frame, body, begin, instruction)
    except RunError as error:
        if error.kind in UNCATCHABLE:
            raise
        failed = error
    if failed is None and walk.doubts == doubts:
        return _deliver(frame, instruction, exits, end)
    caught = error_value(failed) if failed is not None and walk.doubts == doubts else Unknown(ERROR, instruction.span)
    frame.enter(handler.params, (Cell(caught, True, end),))
    try:
        with walk.inside(Group("except", instruction.span, "", int(failed is not None), 1), unsure=failed is None):
            handled, end = walk.block(frame, handler, end, instruction)
    except RunError:
        if failed is not None:
            raise
        handled = {}
    return _deliver(frame, instruction, either_exits(walk.foreseer, exits, handled), end)


def control_for(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    items = frame.operand(instruction, "items")
    carried = frame.operands(instruction, "initial")
    if isinstance(items.value, Unknown):
        return _unknown_rounds(walk, frame, instruction, begin, items.value)
    loop = _Loop(walk, frame, instruction, begin, carried)
    with walk.inside(Group("loop", instruction.span, walk.places.head(instruction.span))) as group:
        for index, item in enumerate(items.value):
            loop.round(index, instruction.blocks[0], (Cell(item, items.varying, items.ready),))
            if loop.carried is None:
                break
        group.least, group.most = sum(_sure(m) for m in group.members), len(group.members)
    return loop.done()


def control_while(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    test, body = instruction.blocks
    loop = _Loop(walk, frame, instruction, begin, frame.operands(instruction, "initial"))
    with walk.inside(Group("loop", instruction.span, walk.places.head(instruction.span))) as group:
        index = 0
        while loop.carried is not None:
            goes_on = loop.test(index, test)
            if goes_on is False:
                break
            if (goes_on is None or loop.unsure and _always(test)) and index >= 2 or index > walk.options.budgets.iterations:
                # Two rounds are gone through: the second is the twin of the first, and how many there are nobody knows.
                loop.leave()
                break
            loop.round(index, body, ())
            if goes_on is True and _always(test) and not loop.unsure and index >= 1 and loop.carried is not None:
                raise WalkEnds(f"the plan ends after two rounds of the loop at {instruction.span}, which nothing leaves")
            index += 1
        loop.fold(group)
    return loop.done()


def call(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    code = walk.program.functions[instruction.attributes["callee"]]
    group = Group("def", instruction.span, short_name(code.name))
    if walk.maybe and walk.stack.count(code.name) >= _DEEPEST:
        group.note, group.least, group.most = "calls itself, not followed further", 0, None
        with walk.inside(group):
            return unknown_op(walk, frame, instruction, begin)
    path = f"{frame.path}{instruction.attributes['site']}/"
    depth = frame.depth + len(inlined_calls(instruction))
    _check_depth(walk, frame, instruction, depth, group.name)
    try:
        with walk.inside(group):
            cells, end = walk.function(code, frame.operands(instruction, "args"), path, depth + 1, begin)
    except RunError as error:
        raise noted(error, called(group.name, instruction.span)) from None
    frame.write(instruction, cells)
    return Done(end)


def unknown_op(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    """The results of what is not gone through: nothing is known of values, and of a context what it was before."""
    nothing(walk, frame, instruction, begin)
    before = [cell for source in instruction.inputs.values() for one in (source if isinstance(source, tuple) else (source,))
              if isinstance(one, Register) and _is_context(cell := frame.read(one))]
    for register, type in zip(instruction.outputs, instruction.types):
        if isinstance(type, ContextT):
            frame.cells[register] = Cell(walk.foreseer.after_unknown(before[0].value if before else None), False, begin)
    return Done(begin)


class _Loop:
    """What the rounds of a loop hand on.  carried: the values for the next round, None where none comes; unsure: whether a round
    before may have left the loop."""

    __slots__ = ("walk", "frame", "instruction", "begin", "carried", "unsure", "left", "exits", "rounds", "around")

    def __init__(self, walk: Walk, frame: Frame, instruction: Instruction, begin: int, carried: tuple[Cell, ...]):
        self.walk, self.frame, self.instruction, self.begin = walk, frame, instruction, begin
        self.carried: tuple[Cell, ...] | None = carried
        self.unsure = False
        self.left: tuple[Cell, ...] | None = None
        self.exits: Exits = {}
        self.rounds: list[Group] = []
        self.around = walk.unsure

    def round(self, index: int, block: CodeBlock, args: tuple[Cell, ...], *, unsure: bool = False) -> None:
        """One round of the body."""
        assert self.carried is not None
        group = Group("round", self.instruction.span, str(index))
        frame = self.frame.round(self.instruction.attributes["site"], index)
        frame.enter(block.params, (*args, *self.carried))
        try:
            with self.walk.inside(group, unsure=unsure or self.unsure):
                exits, end = self.walk.block(frame, block, self.begin, self.instruction)
        except RunError:
            if not (unsure or self.unsure) or self.left is None:
                raise
            # A run that comes here fails; those that come through have left the loop before.
            exits, end = {}, self.begin
        # What a `break` stands before is not sure, though its round begins.
        group.least = int(any(call.maybe <= self.around for call in calls_of(group)))
        self.rounds.append(group)
        self._take(exits, end)

    def test(self, index: int, block: CodeBlock) -> bool | None:
        """Whether a `while` goes on; None where data decide.  Where it may end there, that is one way out."""
        assert self.carried is not None
        frame = self.frame.round(self.instruction.attributes["site"], index)
        frame.enter(block.params, self.carried)
        exits, self.begin = self.walk.block(frame, block, self.begin, self.instruction)
        if Exit.YIELD not in exits:
            raise WalkEnds(f"the plan ends at the loop at {self.instruction.span}, whose condition has no value")
        condition, *rest = exits[Exit.YIELD]
        self.carried = tuple(rest)
        if condition.value is True:
            return True
        self.leave()
        if condition.value is False:
            return False
        self.unsure = True
        return None

    def leave(self) -> None:
        """The loop may end here, with the values carried."""
        assert self.carried is not None
        self.left = self.carried if self.left is None else either_cells(self.walk.foreseer, self.left, self.carried)

    def fold(self, group: Group) -> None:
        """Rounds that data repeat: the first stands for all, the second is its twin."""
        sure = sum(_sure(r) for r in self.rounds if r.members)
        with_calls = [r for r in self.rounds if r.members]
        group.least, group.most = sure, len(with_calls)
        if self.unsure and len(with_calls) == 2 and len(group.members) == 2:
            group.members, group.twin, group.most = [with_calls[0]], with_calls[1], None

    def done(self) -> Done:
        """The loop is over: its results are what it may have been left with."""
        if self.carried is not None and (self.instruction.opcode == "control.for" or self.left is None):
            self.leave()
        exits = dict(self.exits)
        if self.left is not None:
            self.frame.write(self.instruction, tuple(cell._replace(ready=self.begin) for cell in self.left))
            exits[Exit.YIELD] = ()
        return Done(self.begin, exits if self.exits or self.left is None else None)

    def _take(self, exits: Exits, end: int) -> None:
        self.begin = max(self.begin, end)
        on = {way: cells for way, cells in exits.items() if way in (Exit.YIELD, Exit.CONTINUE)}
        if Exit.BREAK in exits:
            self.carried = exits[Exit.BREAK]
            self.leave()
        if Exit.RETURN in exits:
            self.exits = either_exits(self.walk.foreseer, self.exits, {Exit.RETURN: exits[Exit.RETURN]})
        self.carried = None
        for cells in on.values():
            self.carried = cells if self.carried is None else either_cells(self.walk.foreseer, self.carried, cells)
        self.unsure = self.unsure or len(on) < len(exits)


def _unknown_rounds(walk: Walk, frame: Frame, instruction: Instruction, begin: int, items: Unknown) -> Done:
    """A `for` over a list that is not known: two rounds at most, the second the twin of the first."""
    least, most = items.lengths
    loop = _Loop(walk, frame, instruction, begin, frame.operands(instruction, "initial"))
    loop.left = loop.carried if least == 0 else None
    with walk.inside(Group("loop", instruction.span, walk.places.head(instruction.span), least, most)) as group:
        for index in range(2 if most is None else min(2, most)):
            loop.round(index, instruction.blocks[0], (Cell(items.element, True, begin),), unsure=index >= least)
            if loop.carried is None:
                break
            if index + 1 >= least:
                loop.leave()
        if len(group.members) == 2:
            group.twin = group.members.pop()
    return loop.done()


def _check_depth(walk: Walk, frame: Frame, instruction: Instruction, depth: int, name: str) -> None:
    """As `Instance.check_depth` in a run."""
    most = walk.options.budgets.depth
    if depth >= most:
        message = f"`{name}` would be called {most + 1} calls deep, the budget for recursion is {most}"
        raise failure("E0838", message, instruction.span, kind="budget", help="check that it comes to an end",
                      label=f"in `{walk.function_of(frame, instruction)}`")


def _always(test: CodeBlock) -> bool:
    """`while True`."""
    first = test.instructions[0].inputs.get("values") if len(test.instructions) == 1 else None
    return bool(first) and first[0] is True


def _sure(member: Any) -> bool:
    return getattr(member, "least", 1) > 0


def _is_context(cell: Cell) -> bool:
    return isinstance(cell.value, Foreseen)


def _deliver(frame: Frame, instruction: Instruction, exits: Exits, end: int) -> Done:
    """What the blocks yield are the results; what leaves them leaves the block around too."""
    if Exit.YIELD in exits:
        frame.write(instruction, tuple(cell._replace(ready=max(cell.ready, end)) for cell in exits[Exit.YIELD]))
    return Done(end, exits if set(exits) != {Exit.YIELD} else None)
