"""Which ops cannot fail, whatever the values are: what a pass may drop, or move past something that is seen.

It knows types only.  A text or list too large for memory does not count: nothing that a pass moves is larger than what the program
makes without it.
"""

from __future__ import annotations

from lmc.ir.core import Effect, Literal, Op, Operand, blocks
from lmc.ir.ops import For, PureCall, RecordGet, TextConcat
from lmc.types import BoolT, DictT, FloatT, IntT, ListT, LiteralT, RangeT, RecordT, StrT, Type

_SCALARS = (StrT, IntT, RangeT, FloatT, BoolT, LiteralT)
#: Types whose values all have a form in a text.
TEXT_TYPES = _SCALARS
#: Functions that give a result for all operands of scalar types.
_OF_SCALARS = frozenset({"eq", "ne", "not", "bool", "lower", "upper", "strip", "lstrip", "rstrip", "startswith", "endswith"})
_ORDER = frozenset({"lt", "le", "gt", "ge"})
# A loop has fewer than 2**31 rounds: what adds at most this much in each of them to a start as small stays within 64 bits.
_SMALL = 2**31


def total(op: Op) -> bool:
    """Whether the op gives a result for all values of its operands' types, and does nothing else."""
    if isinstance(op, TextConcat):
        return all(isinstance(p.type, TEXT_TYPES) for p in op.pieces)
    if isinstance(op, RecordGet):
        return isinstance(op.record.type, RecordT)
    if isinstance(op, PureCall):
        return cannot_fail(op)
    return op.effect == Effect.PURE and bool(op.results) and not any(blocks(op))


def cannot_fail(op: PureCall, loop: For | None = None) -> bool:
    """Whether the call gives a result for all values of its operands' types.  `loop`: the one that `op` stands in, whose start values
    bound a counter."""
    types = [a.type for a in op.args]
    if op.function in _OF_SCALARS:
        return all(isinstance(t, _SCALARS) for t in types)
    if op.function == "len":
        return isinstance(types[0], (StrT, ListT, DictT))
    if op.function in _ORDER:
        return all(map(_number, types)) or all(isinstance(t, StrT) for t in types)
    if op.function == "add" and (all(isinstance(t, ListT) for t in types) or all(isinstance(t, StrT) for t in types)):
        return True
    return op.function in ("add", "sub") and loop is not None and _counts(op, loop)


def _number(t: Type) -> bool:
    return isinstance(t, (IntT, RangeT, FloatT))


def _counts(op: PureCall, loop: For) -> bool:
    """Whether it adds something small to a value that the loop carries and starts small."""
    start, step = op.args
    carried = loop.body.args[1:]
    if start not in carried or not isinstance(start.type, (IntT, RangeT)):
        return False
    return _small(loop.initial[carried.index(start)]) and _small(step)


def _small(operand: Operand) -> bool:
    if isinstance(operand, Literal):
        return type(operand.value) is int and abs(operand.value) < _SMALL
    return isinstance(operand.type, RangeT) and -_SMALL < operand.type.low and operand.type.high < _SMALL
