"""The walk over a program before it runs: every block that may run is gone through once with what is known, and notes its calls.

    walk = Walk(program, foreseer, options)
    root = walk.call_entry("judge", cells)          a `Group` with the calls in it

A condition that is not known takes both ways, and what comes of it is either value.  A list that is not known has two elements that
stand for all; a loop that data may leave goes on, and what follows is not sure.  How often a thing happens is noted in the tree.

    if score > 3: …        both arms, each 0 to 1 times
    for x in xs: …         a round, 0 to * times, and a second one for what the two share

This file knows how a block is gone through and what its instructions share; what each does is in the `walk_*.py` files.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from lmc.backend.program import CodeBlock, FunctionCode, Input, Instruction, Program, Register
from lmc.diagnostics import RunError, Span
from lmc.runtime.instructions import instructions
from lmc.runtime.failures import short_name
from lmc.runtime.forecast.either import either_cells
from lmc.runtime.forecast.places import Places
from lmc.runtime.forecast.prompts import Foreseer
from lmc.runtime.forecast.tree import Call, Group
from lmc.runtime.forecast.values import Cell
from lmc.runtime.frames import Exit
from lmc.runtime.instance import RunOptions
from lmc.runtime.plan import inlined_calls

#: How a block may end, with the values that each way takes along.
Exits = dict[Exit, tuple[Cell, ...]]
#: More instructions than this are not gone through: a plan is for reading, and must be there soon.
_MOST_STEPS = 2_000_000
# Frames of Python for each of the hundred levels that calls may go down, with the loops and conditions in them.
_RECURSION = 20_000


class WalkEnds(Exception):
    """The walk has gone as far as it goes; what was found up to there stands."""


@dataclass(slots=True)
class Frame:
    """One activation, or one round in it, as `frames.Frame`."""

    code: FunctionCode
    cells: list[Cell]
    path: str
    depth: int

    def branch(self, site: str, index: int) -> Frame:
        return Frame(self.code, self.cells.copy(), f"{self.path}{site}:{index}/", self.depth)

    def round(self, site: str, index: int) -> Frame:
        return Frame(self.code, self.cells, f"{self.path}{site}:{index}/", self.depth)

    def enter(self, params: tuple[int, ...], cells: tuple[Cell, ...]) -> None:
        for register, cell in zip(params, cells, strict=True):
            self.cells[register] = cell

    def read(self, source: Input) -> Cell:
        return self.cells[source.index] if type(source) is Register else Cell(source)

    def operand(self, instruction: Instruction, name: str) -> Cell:
        return self.read(instruction.inputs[name])

    def operands(self, instruction: Instruction, name: str) -> tuple[Cell, ...]:
        return tuple(map(self.read, instruction.inputs[name]))

    def write(self, instruction: Instruction, cells: tuple[Cell, ...]) -> None:
        for register, cell in zip(instruction.outputs, cells, strict=True):
            self.cells[register] = cell


@dataclass(frozen=True, slots=True)
class Done:
    """end: after how many calls of the model, one after another, the instruction is over; exits: where it may leave the block"""

    end: int
    exits: Exits | None = None


Opcode = Callable[["Walk", Frame, Instruction, int], Done]


@dataclass(slots=True)
class Walk:
    """One walk.

    group: where calls are noted now; maybe: how many things that data decide are around
    doubts: how often something was met that may fail in a run; guards: the doubts at the start of each block whose failure is caught
    inlined: inlined calls around the block; stack: names of the functions being called
    note: why the walk ended early; made: of each function, where the value of each register is made
    """

    program: Program
    foreseer: Foreseer
    options: RunOptions
    opcodes: Mapping[str, Opcode]
    places: Places
    named: Mapping[str, Any]
    group: Group
    maybe: int = 0
    doubts: int = 0
    calls: int = 0
    steps: int = 0
    inlined: int = 0
    guards: list[int] = field(default_factory=list)
    stack: list[str] = field(default_factory=list)
    note: str = ""
    made: dict[str, dict[int, Span | None]] = field(default_factory=dict)

    def start(self, name: str, args: tuple[Cell, ...]) -> RunError | None:
        """Go through the function `name`; gives the error with which every run of it stops."""
        code = self.program.functions[name]
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(max(before, _RECURSION))
        try:
            self.function(code, args, "", 0, 0)
        except RunError as error:
            return error
        except WalkEnds as end:
            self.note = str(end)
        finally:
            sys.setrecursionlimit(before)
        return None

    def function(self, code: FunctionCode, args: tuple[Cell, ...], path: str, depth: int, start: int) -> tuple[tuple[Cell, ...], int]:
        """What a function returns, and when.  Raises `RunError` where it certainly fails."""
        frame = Frame(code, [Cell(None)] * code.registers, path, depth)
        frame.enter(code.body.params, args)
        self.stack.append(code.name)
        try:
            exits, end = self.block(frame, code.body, start)
        finally:
            self.stack.pop()
        if Exit.RETURN not in exits:
            raise WalkEnds(f"the plan ends in `{short_name(code.name)}`, which never returns")
        return tuple(cell._replace(ready=end) for cell in exits[Exit.RETURN]), end

    def block(self, frame: Frame, block: CodeBlock, start: int, around: Instruction | None = None) -> tuple[Exits, int]:
        """How the block may end, and when at the latest; `around` is the instruction whose block it is.

        Raises `RunError` where it certainly fails.
        """
        ends: list[int] = []
        exits: Exits = {}
        unsure, outer = 0, self.inlined
        self.inlined = len(inlined_calls(around)) if around is not None else 0
        try:
            for instruction in block.instructions:
                self._count_step(instruction.span)
                begin = max([start, *(frame.cells[r].ready for r in instruction.reads), *(ends[i] for i in instruction.after)])
                done = self.opcodes.get(instruction.opcode, self.opcodes["?"])(self, frame, instruction, begin)
                ends.append(done.end)
                if done.exits is None:
                    continue
                ends_here = instruction.opcode == "control.yield"
                leaving = {way: cells for way, cells in done.exits.items() if ends_here or way is not Exit.YIELD}
                exits = either_exits(self.foreseer, exits, leaving)
                if ends_here or Exit.YIELD not in done.exits:
                    break
                if leaving and not unsure:
                    unsure = 1
                    self.maybe += 1
        finally:
            self.maybe -= unsure
            self.inlined = outer
        return exits, max(ends, default=start)

    @property
    def unsure(self) -> int:
        """How many things that data decide are around, failures that are caught included: what comes after one may not happen."""
        return self.maybe + sum(self.doubts > doubts for doubts in self.guards)

    @contextmanager
    def caught(self, group: Group) -> Iterator[None]:
        """What fails in this block does not end the run; a certain failure is noted in its group."""
        self.guards.append(self.doubts)
        try:
            yield
        except RunError as error:
            group.note = f"fails: {error.diagnostics[0].message}"
            raise
        finally:
            self.guards.pop()

    def note_call(self, call: Call) -> None:
        """A call of the model.  Raises `WalkEnds` where the run's budget is used up."""
        most = self.options.budgets.calls
        if self.calls >= most:
            raise WalkEnds(f"the plan ends at {most:,} calls, the budget of a run")
        self.group.members.append(call)
        self.calls += 1
        self.doubts += 1

    @contextmanager
    def inside(self, group: Group, *, unsure: bool = False) -> Iterator[Group]:
        """What is noted in this block is noted in `group`, which is kept if anything was."""
        outer, self.group = self.group, group
        self.maybe += unsure
        try:
            yield group
        finally:
            self.group = outer
            self.maybe -= unsure
            if group.members or group.note:
                outer.members.append(group)

    def made_in(self, code: FunctionCode) -> dict[int, Span | None]:
        """Where the value of each register of a function is made; arguments of blocks are made nowhere."""
        if code.name not in self.made:
            self.made[code.name] = {r: i.span for i in instructions(code.body) for r in i.outputs}
        return self.made[code.name]

    def function_of(self, frame: Frame, instruction: Instruction) -> str:
        """The name of the function whose code it is, as `Frame.function` in a run."""
        calls = inlined_calls(instruction)
        return short_name(calls[-1].function if calls else frame.code.name)

    def path_of(self, frame: Frame, instruction: Instruction) -> str:
        """The path of what has no site, as `Frame.path_of` in a run."""
        return frame.path + "".join(f"{call.site}/" for call in inlined_calls(instruction)[self.inlined:])

    def _count_step(self, span: Span | None) -> None:
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise WalkEnds(f"the plan ends at {span}: more than {_MOST_STEPS:,} instructions come before it")


def either_exits(foreseer: Foreseer, first: Exits, second: Exits) -> Exits:
    """The ways out of one of two blocks."""
    found = dict(first)
    for way, cells in second.items():
        found[way] = either_cells(foreseer, found[way], cells) if way in found else cells
    return found
