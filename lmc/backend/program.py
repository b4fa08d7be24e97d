"""The compiled program: what the machine runs and an artifact holds.

A `Program` is plain data.  Code is blocks of instructions; an instruction names the registers it reads, the instructions it must
wait for, and holds its regions as nested blocks.  The machine may start an instruction as soon as `reads` are there and those in
`after` have ended, so the order of the list matters only for which error is reported.

    block(r0)                                            # essay
      0: r1 = context.new()
      1: r2 = text.concat("Here is an essay.\\n", r0)
      2: r3 = context.append(r1, r2)[role = user]         reads r1 r2
      3: r4, r5 = lm.fork(r3, r6)[site = "0"] {…}         reads r3 r6 and what the block captures

Registers are numbered within a function; nested blocks share the numbering and see the registers around them.  This file is the
one that both the compiler and the runtime import; it knows neither IR nor model.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lmc.diagnostics import Span
from lmc.regex.dfa import ByteDfa
from lmc.regex.grammar import Grammar
from lmc.types import RecordT, Type, UnionT


@dataclass(frozen=True, slots=True)
class Register:
    index: int


#: A register, or a scalar literal (str, int, float, bool, None) as itself.
Input = Register | str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Instruction:
    """One op.

    `inputs` maps the op's operand fields to an `Input` or a tuple of them (absent optional operands are left out);
    `attributes` its attribute fields to JSON values (an enum as its value).  A constrained `lm.gen` has the attribute
    `constraint`: an index into `Program.constraints`.  `types` are the types of the outputs.
    """

    opcode: str
    inputs: dict[str, Input | tuple[Input, ...]]
    outputs: tuple[int, ...]
    types: tuple[Type, ...]
    attributes: dict[str, Any]
    blocks: tuple[CodeBlock, ...]
    reads: tuple[int, ...]
    after: tuple[int, ...]
    span: Span | None


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """`params` are the registers that the block's arguments go to.  The last instruction is a terminator."""

    params: tuple[int, ...]
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class ParameterInfo:
    """`default` is JSON text, or None where the argument is required."""

    name: str
    type: Type
    default: str | None = None


@dataclass(frozen=True, slots=True)
class FunctionCode:
    """`kind` is `def`, `part` or `test`; `host_effects`: reaches a non-pure extern, `print` or `input`, so calls keep order; `leading`:
    the names of the parameters that its conversations begin with, in that order."""

    name: str
    kind: str
    params: tuple[ParameterInfo, ...]
    result: Type
    registers: int
    body: CodeBlock
    host_effects: bool
    doc: str = ""
    span: Span | None = None
    leading: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExternInfo:
    name: str
    params: tuple[ParameterInfo, ...]
    result: Type
    pure: bool
    doc: str = ""
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """A whole program.  `entries` are the public functions of the root file, `tests` its test functions, in the order written."""

    name: str
    types: tuple[RecordT | UnionT, ...]
    functions: dict[str, FunctionCode]
    externs: dict[str, ExternInfo]
    entries: tuple[str, ...]
    constraints: tuple[ByteDfa | Grammar, ...]
    config: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)

    @property
    def tests(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.functions.values() if f.kind == "test")
