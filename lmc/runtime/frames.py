"""Where a running function keeps its values, and how a block ends.

A frame is one activation of a function, or one round of a loop or branch in it.  Concurrent rounds have registers of their own,
so that they cannot see one another; rounds that run one after the other share them.

    classify_many                path ""
      map, element 3             path "0:3/"         own registers
        classify                 path "0:3/0/"       a new activation

The path names the calls and rounds that led here.  With the site of a `gen` and the program seed it keys the random numbers.
This file does not know what instructions do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from lmc.backend.program import FunctionCode, Input, Instruction, Register
from lmc.runtime.failures import short_name
from lmc.runtime.instance import Instance
from lmc.runtime.plan import Step, inlined_calls


class Exit(Enum):
    """How a block ended: with values for the op around it, or by leaving a loop or the function."""

    YIELD = auto()
    BREAK = auto()
    CONTINUE = auto()
    RETURN = auto()


@dataclass(frozen=True, slots=True)
class Outcome:
    exit: Exit
    values: tuple[Any, ...]


class Frame:
    """One activation, or one round in it."""

    __slots__ = ("instance", "code", "registers", "path", "depth", "chain")

    def __init__(self, instance: Instance, code: FunctionCode, registers: list[Any], path: str, depth: int, chain: int = 0):
        self.instance = instance
        self.code = code
        self.registers = registers
        self.path = path
        self.depth = depth
        #: The longest chain of generation that waits for the function's end, in tokens.
        self.chain = chain

    def callee(self, code: FunctionCode, call: Instruction) -> Frame:
        """The frame of a function called from here."""
        path = f"{self.path}{call.attributes['site']}/"
        return Frame(self.instance, code, [None] * code.registers, path, self.depth_of(call) + 1, self.chain_of(call))

    def round(self, site: str, index: int) -> Frame:
        """A round of a loop: what ran before it has ended, so the registers are the same."""
        return Frame(self.instance, self.code, self.registers, f"{self.path}{site}:{index}/", self.depth, self.chain)

    def branch(self, site: str, index: int) -> Frame:
        """A round that runs beside others, with registers of its own."""
        return Frame(self.instance, self.code, self.registers.copy(), f"{self.path}{site}:{index}/", self.depth, self.chain)

    def function(self, instruction: Instruction) -> str:
        """The name of the function whose code it is, as its author wrote it."""
        calls = inlined_calls(instruction)
        return short_name(calls[-1].function if calls else self.code.name)

    def depth_of(self, instruction: Instruction) -> int:
        """How many calls deep it stands, those in whose place it stands included."""
        return self.depth + len(inlined_calls(instruction))

    def chain_of(self, instruction: Instruction) -> int:
        """The longest chain of generation that waits for the instruction, in tokens."""
        return self.chain + instruction.attributes.get("chain", 0)

    def path_of(self, step: Step) -> str:
        """The path of what has no site: that of the function, round or branch it belongs to."""
        return self.path + "".join(f"{call.site}/" for call in step.calls)

    def read(self, source: Input) -> Any:
        """The value of an operand."""
        return self.registers[source.index] if type(source) is Register else source

    def operand(self, instruction: Instruction, name: str) -> Any:
        return self.read(instruction.inputs[name])

    def operands(self, instruction: Instruction, name: str) -> tuple[Any, ...]:
        registers = self.registers
        return tuple([registers[i.index] if type(i) is Register else i for i in instruction.inputs[name]])

    def write(self, instruction: Instruction, values: Iterable[Any]) -> None:
        """The instruction's results."""
        for register, value in zip(instruction.outputs, values):
            self.registers[register] = value

    def enter(self, params: tuple[int, ...], values: Iterable[Any]) -> None:
        """The arguments of a block."""
        for register, value in zip(params, values):
            self.registers[register] = value
