"""A Program as IR again, so that what was read from an artifact is held to the rules that compiled code keeps.

    r3 = text.concat("Hi ", r1)      ->      %r3: str = text.concat("Hi ", %r1)

Only `check_as_ir` is of use to others: it verifies the module, and that registers read, order and effects are those that the
compiler gives.  Automata are not looked at: what a generation writes is checked against its type when it is read.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from lmc.backend.data import BadData
from lmc.backend.order import instruction_order
from lmc.backend.program import CodeBlock, FunctionCode, Input, Instruction, ParameterInfo, Program, Register
from lmc.diagnostics import LmcError
from lmc.ir.core import (
    Block, Effect, Extern, FieldKind, Function, Literal, Module, Op, Operand, Parameter, Value, free_values, op_fields,
)
from lmc.ir.effects import function_effects
from lmc.ir.leading import leading_parameters
from lmc.ir.ops import OPS
from lmc.ir.verifier import verify
from lmc.types import BOOL, CONTEXT, ERROR, FLOAT, INT, NEVER, NONE, STR, ListT, Type

_SCALAR_TYPES: dict[type, Type] = {str: STR, bool: BOOL, int: INT, float: FLOAT, type(None): NONE}


def check_as_ir(program: Program) -> None:
    """Raises `BadData` with the first thing that compiled code would not do.  The program's structure is checked before."""
    raised = {name: _Raiser(code) for name, code in program.functions.items()}
    functions = tuple(r.function() for r in raised.values())
    externs = tuple(Extern(e.name, _params(e.params), e.result, e.pure, e.doc, e.span) for e in program.externs.values())
    module = Module(program.name, program.types, externs, functions, program.entries)
    try:
        verify(module)
    except LmcError as error:
        raise BadData(error.diagnostics[0].message.removeprefix("the IR is broken: ")) from None
    effects, leading = function_effects(module), leading_parameters(module)
    for name, code in program.functions.items():
        if code.leading != leading[name]:
            raise BadData(f"`{name}`, whose conversations do not begin as it says")
        if code.host_effects != (Effect.HOST in effects[name]):
            raise BadData(f"`{name}`, whose effects are not those of its code")
        raised[name].check_order(effects)


def _params(params: tuple[ParameterInfo, ...]) -> tuple[Parameter, ...]:
    return tuple(Parameter(p.name, p.type, p.default) for p in params)


class _Raiser:
    """One function on its way back; `values` by register."""

    __slots__ = ("code", "values", "registers", "blocks")

    def __init__(self, code: FunctionCode):
        self.code = code
        self.values: dict[int, Value] = {}
        self.registers: dict[Value, int] = {}
        self.blocks: list[tuple[CodeBlock, Block]] = []

    def function(self) -> Function:
        code = self.code
        types = [CONTEXT] * (code.kind == "part") + [p.type for p in code.params]
        body = self._block(code.body, types)
        return Function(code.name, code.kind, _params(code.params), code.result, body, code.doc, code.span)

    def check_order(self, effects: dict[str, Effect]) -> None:
        for code, block in self.blocks:
            for instruction, op, after in zip(code.instructions, block.ops, instruction_order(block, effects)):
                reads = {self.registers[v] for v in free_values(op)}
                if set(instruction.reads) != reads or len(instruction.reads) != len(reads):
                    raise BadData(f"an instruction of `{self.code.name}` that does not say what it reads")
                if instruction.after != after:
                    raise BadData(f"an instruction of `{self.code.name}` that waits for others than it has to")

    def _block(self, code: CodeBlock, types: list[Type]) -> Block:
        if len(types) != len(code.params):
            raise BadData(f"a block of `{self.code.name}` that takes {len(code.params)} values where {len(types)} are given")
        args = tuple(map(self._define, code.params, types))
        block = Block(args, tuple(map(self._op, code.instructions)))
        self.blocks.append((code, block))
        return block

    def _define(self, register: int, type: Type) -> Value:
        value = self.values[register] = Value(type, f"r{register}")
        self.registers[value] = register
        return value

    def _op(self, i: Instruction) -> Op:
        fields: dict[str, Any] = {}
        inner = [self._block(b, types) for b, types in zip(i.blocks, self._block_types(i), strict=True)]
        for field in op_fields(OPS[i.opcode]):
            match field.kind:
                case FieldKind.BLOCK:
                    fields[field.name] = inner.pop(0)
                case FieldKind.BLOCKS:
                    fields[field.name], inner = tuple(inner), []
                case FieldKind.OPERANDS:
                    fields[field.name] = tuple(self._passed(v) for v in i.inputs[field.name])
                case FieldKind.ATTRIBUTE if field.name in i.attributes:
                    fields[field.name] = _attribute(field.annotation, i.attributes[field.name])
                case _ if field.name in i.inputs:
                    fields[field.name] = self._operand(i.inputs[field.name])
        return OPS[i.opcode](tuple(map(self._define, i.outputs, i.types)), i.span, **fields)

    def _block_types(self, i: Instruction) -> list[list[Type]]:
        """The types that each block's arguments have, by what the op gives them."""
        match i.opcode:
            case "lm.fork":
                return [[CONTEXT, self._element(i)]]
            case "lm.map":
                return [[self._element(i)]]
            case "lm.template" | "lm.speculate":
                return [[CONTEXT]]
            case "lm.branches":
                return [[CONTEXT]] * len(i.blocks)
            case "control.for":
                return [[self._element(i), *i.types]]
            case "control.while":
                return [[*i.types]] * 2
            case "control.try":
                return [[], [ERROR]]
        return [[]] * len(i.blocks)

    def _element(self, i: Instruction) -> Type:
        items = self._operand(i.inputs["items"]).type
        return items.element if isinstance(items, ListT) else NEVER

    def _passed(self, value: Input) -> Operand:
        """An operand that is handed on.  None also stands for a variable that has no value yet, of whatever type."""
        return Literal(None, NEVER) if value is None else self._operand(value)

    def _operand(self, value: Input) -> Operand:
        return self.values[value.index] if isinstance(value, Register) else Literal(value, _SCALAR_TYPES[type(value)])


def _attribute(annotation: Any, value: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return annotation(value)
    return tuple(value) if isinstance(value, list) else value
