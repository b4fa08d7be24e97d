"""IR -> Program: values become registers, order becomes explicit, constraints become automata.

    %c1: context, %v: 1..5 = lm.gen(%c)[…]   ->   3: r4, r5 = lm.gen(r2)[…, constraint = 0]   after 1

Each op is one instruction.  What it must wait for beside its operands is in `order.py`, what its value must match in
`ir/constraints.py`.  This file knows nothing of models: tokens come when a Program is bound to one.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from lmc.backend.order import instruction_order
from lmc.backend.program import (
    CodeBlock, ExternInfo, FunctionCode, Input, Instruction, ParameterInfo, Program, Register,
)
from lmc.ir.core import (
    Block, Effect, FieldKind, Function, Literal, Module, Op, Operand, Parameter, Value, blocks, free_values, op_fields,
)
from lmc.ir.constraints import AutomatonTable
from lmc.ir.effects import function_effects
from lmc.ir.leading import leading_parameters
from lmc.ir.ops import Gen


def emit(module: Module) -> Program:
    """The program of a verified module.  Raises `LmcError` (E06…) where a constraint cannot be built."""
    effects = function_effects(module)
    constraints = AutomatonTable(module.automata)
    leading = leading_parameters(module)
    functions = {f.name: _FunctionEmitter(f, effects, constraints).code(leading[f.name]) for f in module.functions}
    constraints.raise_errors(dict(module.sources))
    return Program(
        name=module.name,
        types=module.types,
        functions=functions,
        externs={e.name: ExternInfo(e.name, _params(e.params), e.result, e.pure, e.doc, e.span) for e in module.externs},
        entries=module.entries,
        constraints=tuple(a.built for a in constraints.automata),
        config=dict(module.config),
        sources=dict(module.sources),
    )


def _params(params: tuple[Parameter, ...]) -> tuple[ParameterInfo, ...]:
    return tuple(ParameterInfo(p.name, p.type, p.default) for p in params)


class _FunctionEmitter:
    __slots__ = ("function", "effects", "constraints", "registers")

    def __init__(self, function: Function, effects: dict[str, Effect], constraints: AutomatonTable):
        self.function, self.effects, self.constraints = function, effects, constraints
        self.registers: dict[Value, int] = {}

    def code(self, leading: tuple[str, ...]) -> FunctionCode:
        f = self.function
        body = self._block(f.body)
        return FunctionCode(f.name, f.kind, _params(f.params), f.result, len(self.registers), body,
                            Effect.HOST in self.effects[f.name], f.doc, f.span, leading)

    def _block(self, block: Block) -> CodeBlock:
        params = tuple(map(self._define, block.args))
        order = instruction_order(block, self.effects)
        return CodeBlock(params, tuple(self._instruction(op, after) for op, after in zip(block.ops, order)))

    def _define(self, value: Value) -> int:
        assert value not in self.registers, value
        self.registers[value] = len(self.registers)
        return self.registers[value]

    def _instruction(self, op: Op, after: tuple[int, ...]) -> Instruction:
        reads = tuple(self.registers[v] for v in free_values(op))
        inner = tuple(self._block(b) for b in blocks(op))
        return Instruction(
            opcode=op.mnemonic,
            inputs=self._inputs(op),
            outputs=tuple(map(self._define, op.results)),
            types=tuple(r.type for r in op.results),
            attributes=self._attributes(op),
            blocks=inner,
            reads=reads,
            after=after,
            span=op.span,
        )

    def _inputs(self, op: Op) -> dict[str, Input | tuple[Input, ...]]:
        inputs: dict[str, Input | tuple[Input, ...]] = {}
        for field in op_fields(type(op)):
            value = getattr(op, field.name)
            if field.kind is FieldKind.OPERANDS:
                inputs[field.name] = tuple(map(self._input, value))
            elif field.kind is FieldKind.OPERAND or field.kind is FieldKind.NAMED_OPERAND and value is not None:
                inputs[field.name] = self._input(value)
        return inputs

    def _input(self, operand: Operand) -> Input:
        return operand.value if isinstance(operand, Literal) else Register(self.registers[operand])

    def _attributes(self, op: Op) -> dict[str, Any]:
        # A program numbers its automata anew: those that no generation has kept are left out.
        kept = [f.name for f in op_fields(type(op)) if f.kind is FieldKind.ATTRIBUTE and f.name != "automaton"]
        attributes = {name: _json_value(getattr(op, name)) for name in kept}
        if isinstance(op, Gen) and (constraint := self.constraints.index(op)) is not None:
            attributes["constraint"] = constraint
        return attributes


def _json_value(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    return list(value) if isinstance(value, tuple) else value
