"""Collects the ops of a block, and rebuilds ops with other operands.

    builder = Builder()
    c0 = builder.value(ContextNew, span, CONTEXT, "c")
    c1 = builder.value(ContextAppend, span, CONTEXT, "c", context=c0, text=Literal("Hi", STR), role=Role.USER)
    block = builder.block()

The IR itself is immutable; this is the only mutable thing around it, and it lives while one block is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lmc.diagnostics import Span
from lmc.ir.core import Block, FieldKind, Literal, Op, Operand, Value, op_fields
from lmc.types import BOOL, FLOAT, INT, NONE, STR, Type


class Builder:
    """A block that is being written.  After a terminator it is closed, and nothing may be added."""

    __slots__ = ("args", "ops")

    def __init__(self, args: Iterable[Value] = ()):
        self.args = tuple(args)
        self.ops: list[Op] = []

    @property
    def closed(self) -> bool:
        return bool(self.ops) and self.ops[-1].terminator

    def add(self, op_class: type[Op], span: Span | None, results: Iterable[Value] = (), /, **fields: Any) -> tuple[Value, ...]:
        """Append an op; gives its results."""
        assert not self.closed, f"{op_class.mnemonic} after {self.ops[-1].mnemonic}"
        op = op_class(tuple(results), span, **fields)
        self.ops.append(op)
        return op.results

    def value(self, op_class: type[Op], span: Span | None, type: Type, name: str = "", /, **fields: Any) -> Value:
        """Append an op with one result; gives it."""
        return self.add(op_class, span, (Value(type, name),), **fields)[0]

    def block(self) -> Block:
        assert self.closed, "a block ends with a terminator"
        return Block(self.args, tuple(self.ops))


def literal(value: str | int | float | bool | None) -> Literal:
    """A literal of its value's plain type."""
    return Literal(value, {str: STR, bool: BOOL, int: INT, float: FLOAT, type(None): NONE}[type(value)])


def substitute(op: Op, replaced: Mapping[Value, Operand], rewrite_block: Callable[[Block], Block]) -> Op:
    """The op with operands replaced and its regions rewritten; the op itself where nothing changed."""
    changes: dict[str, Any] = {}
    for field in op_fields(type(op)):
        old = getattr(op, field.name)
        match field.kind:
            case FieldKind.OPERAND | FieldKind.NAMED_OPERAND:
                new = replaced.get(old, old) if isinstance(old, Value) else old
            case FieldKind.OPERANDS:
                new = tuple(replaced.get(o, o) if isinstance(o, Value) else o for o in old)
                new = old if new == old else new
            case FieldKind.BLOCK:
                new = rewrite_block(old)
            case FieldKind.BLOCKS:
                new = tuple(map(rewrite_block, old))
                new = old if all(a is b for a, b in zip(new, old)) else new
            case _:
                continue
        if new is not old:
            changes[field.name] = new
    return rebuild(op, **changes) if changes else op


def replaced_in(block: Block, values: Mapping[Value, Operand]) -> Block:
    """The block with other values as operands, in its regions too."""
    return Block(block.args, tuple(substitute(op, values, lambda inner: replaced_in(inner, values)) for op in block.ops))


def rebuild(op: Op, results: tuple[Value, ...] | None = None, **changes: Any) -> Op:
    """The op with some fields changed; unless others are given, its results stay the same values."""
    fields = {f.name: getattr(op, f.name) for f in op_fields(type(op))}
    return type(op)(op.results if results is None else results, op.span, **{**fields, **changes})
