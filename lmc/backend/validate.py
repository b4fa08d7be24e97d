"""Whether a Program that was read can be run: registers are set before they are read, waiting goes backwards, names exist,
defaults are of their types; and then, in `program_ir.py`, all that the IR promises.

What the compiler emits is so by construction; an artifact may come from anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from lmc.backend.data import BadData
from lmc.backend.program import CodeBlock, FunctionCode, Instruction, Program, Register
from lmc.backend.program_ir import check_as_ir
from lmc.ir.core import FieldKind, op_fields
from lmc.ir.ops import OPS
from lmc.pure import PURE
from lmc.types import RecordT, Type
from lmc.values import from_data

#: Registers are allocated when a function is called.
_MAX_REGISTERS = 1_000_000


def validate(program: Program) -> None:
    """Raises `BadData`."""
    for name in program.entries:
        if name not in program.functions:
            raise BadData(f"the entry `{name}`, which does not exist")
    for function in program.functions.values():
        _Validator(program, function).check()
    for params in (*(f.params for f in program.functions.values()), *(e.params for e in program.externs.values())):
        _defaults([(p.name, p.type, p.default) for p in params])
    for record in program.types:
        if isinstance(record, RecordT):
            _defaults([(f.name, f.type, f.default) for f in record.fields])
            # A dataclass is made of them.  (Parameters may be called `with.temperature`.)
            if not all(f.name.isidentifier() for f in record.fields):
                raise BadData(f"the type `{record.name}` with a field that has no name")
    check_as_ir(program)


def _defaults(fields: list[tuple[str, Type, str | None]]) -> None:
    if len({name for name, _, _ in fields}) < len(fields):
        raise BadData("two parameters or fields of one name")
    for name, type, default in fields:
        try:
            if default is not None:
                from_data(json.loads(default), type)
        except (ValueError, RecursionError):
            raise BadData(f"a default of `{name}` that is not of its type") from None


class _Validator:
    __slots__ = ("program", "function", "set")

    def __init__(self, program: Program, function: FunctionCode):
        self.program, self.function = program, function
        # Registers that are set where the walk stands.
        self.set: set[int] = set()

    def check(self) -> None:
        f = self.function
        if f.kind not in ("def", "part", "test"):
            raise BadData(f"the unknown kind of function `{f.kind}`")
        if not 0 <= f.registers <= _MAX_REGISTERS:
            raise BadData(f"a function with {f.registers} registers")
        if len(f.body.params) != len(f.params) + (f.kind == "part"):
            raise BadData(f"`{f.name}`, whose block does not take its parameters")
        self._block(f.body)

    def _block(self, block: CodeBlock) -> None:
        mine = self._define(block.params)
        if not block.instructions or not OPS[block.instructions[-1].opcode].terminator:
            raise BadData(f"a block of `{self.function.name}` without an end")
        for index, instruction in enumerate(block.instructions):
            if OPS[instruction.opcode].terminator and index + 1 < len(block.instructions):
                raise BadData(f"a block of `{self.function.name}` that goes on after its end")
            if any(i >= index for i in instruction.after):
                raise BadData(f"an instruction of `{self.function.name}` that waits for a later one")
            self._instruction(instruction)
            mine |= self._define(instruction.outputs)
        self.set -= mine

    def _define(self, registers: tuple[int, ...]) -> set[int]:
        new = set(registers)
        if len(new) < len(registers) or new & self.set or any(r >= self.function.registers for r in new):
            raise BadData(f"a register of `{self.function.name}` that is set twice or does not exist")
        self.set |= new
        return new

    def _instruction(self, i: Instruction) -> None:
        if len(i.types) != len(i.outputs):
            raise BadData(f"`{i.opcode}` with {len(i.outputs)} outputs and {len(i.types)} types")
        used = set(_registers(i))
        if not used <= set(i.reads) or not set(i.reads) <= self.set:
            raise BadData(f"an instruction of `{self.function.name}` that reads what is not set")
        kinds = [f.kind for f in op_fields(OPS[i.opcode])]
        if FieldKind.BLOCKS not in kinds and len(i.blocks) != kinds.count(FieldKind.BLOCK):
            raise BadData(f"`{i.opcode}` with {len(i.blocks)} blocks")
        self._names(i)
        for block in i.blocks:
            self._block(block)

    def _names(self, i: Instruction) -> None:
        program = self.program
        match i.opcode:
            case "call":
                callee = program.functions.get(i.attributes["callee"])
                if callee is None or len(i.inputs["args"]) != len(callee.body.params):
                    raise BadData(f"a call of `{i.attributes['callee']}`, which does not exist or takes other arguments")
            case "extern.call":
                name = i.attributes["name"]
                extern = program.externs.get(name)
                if extern is None or len(i.inputs["args"]) != len(extern.params):
                    raise BadData(f"a call of the extern `{name}`, which is not declared or takes other arguments")
            case "pure.call":
                if i.attributes["function"] not in PURE:
                    raise BadData(f"the unknown function `{i.attributes['function']}`")
            case "lm.branches":
                counts = i.attributes["counts"]
                if not len(counts) == len(i.attributes["names"]) == len(i.blocks) or sum(counts) != len(i.outputs):
                    raise BadData("a fork whose arms do not give its results")
            case "lm.gen":
                if not 0 <= i.attributes.get("constraint", 0) < max(1, len(program.constraints)):
                    raise BadData("a generation with a constraint that does not exist")
                if "constraint" in i.attributes and not program.constraints:
                    raise BadData("a generation with a constraint that does not exist")


def _registers(i: Instruction) -> Iterator[int]:
    for value in i.inputs.values():
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, Register):
                yield one.index
