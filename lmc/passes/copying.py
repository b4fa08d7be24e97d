"""Copies of code for a new home: fresh values, and the places and sites that it has there.

    call(…)[callee = "greet", site = "3"] at chat.lmp:9:5

    lm.gen(…)[site = "1"] at greet.lmp:2:5     becomes     lm.gen(…)[site = "3/1"] at greet.lmp:2:5, in `greet` called at chat.lmp:9:5

Sites inside loops and branches stay: these have a path of their own, and with the loop's new site it is the path that it was.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from lmc.diagnostics import Inlined, Span
from lmc.ir.builder import substitute
from lmc.ir.core import Block, Op, Operand, Value
from lmc.ir.ops import ROUNDS, Call


def inlined_ops(ops: Iterable[Op], values: dict[Value, Operand], call: Call) -> list[Op]:
    """The callee's ops in the place of the call.  `values` has what its arguments are here, and gets what its results are."""
    return _Copy(values, call).ops(ops, f"{call.site}/")


def fresh_block(block: Block, values: dict[Value, Operand]) -> Block:
    """The block with values of its own, for another function.  `values` has what some are there, and gets what the others are."""

    def fresh(value: Value) -> Value:
        new = values[value] = Value(value.type, value.name)
        return new

    def copied(old: Block) -> Block:
        args = tuple(map(fresh, old.args))
        ops = [dataclasses.replace(substitute(op, values, copied), results=tuple(map(fresh, op.results))) for op in old.ops]
        return Block(args, tuple(ops))

    return copied(block)


class _Copy:
    __slots__ = ("values", "calls", "places")

    def __init__(self, values: dict[Value, Operand], call: Call):
        self.values = values
        place = call.span and dataclasses.replace(call.span, calls=())
        self.calls = (*(call.span.calls if call.span else ()), Inlined(call.callee, call.site, place))
        # Neighbouring ops share their places.
        self.places: dict[tuple[Span, tuple[Inlined, ...]], Span] = {}

    def ops(self, ops: Iterable[Op], site: str) -> list[Op]:
        return [self._op(op, site) for op in ops]

    def _op(self, op: Op, site: str) -> Op:
        inside = "" if isinstance(op, ROUNDS) else site
        new = substitute(op, self.values, lambda block: self._block(block, inside))
        changes = {"site": site + op.site} if site and hasattr(op, "site") else {}
        return dataclasses.replace(new, results=tuple(map(self._fresh, op.results)), span=self._place(op.span), **changes)

    def _block(self, block: Block, site: str) -> Block:
        args = tuple(map(self._fresh, block.args))
        return Block(args, tuple(self.ops(block.ops, site)))

    def _fresh(self, value: Value) -> Value:
        new = self.values[value] = Value(value.type, value.name)
        return new

    def _place(self, span: Span | None) -> Span | None:
        if span is None:
            return None
        key = (span, span.calls)
        if key not in self.places:
            self.places[key] = dataclasses.replace(span, calls=self.calls + span.calls)
        return self.places[key]
