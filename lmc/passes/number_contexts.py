"""Contexts that are written apart and have the same content become one; texts that begin alike share what they begin with.

Before:

    func @f(%q: str) -> list<str> {
      %c: context = context.new()
      %c_1: context = context.append(%c, "You are a careful assistant. Be brief.")[role = system]
      %c_2: context = context.append(%c_1, %q)[role = user]
      %c_3: context, %a: str = lm.gen(%c_2)[role = assistant, site = "0"]
      %d: context = context.new()
      %d_1: context = context.append(%d, "You are a careful assistant. Be brief.")[role = system]
      %d_2: context = context.append(%d_1, %q)[role = user]
      %d_3: context, %b: str = lm.gen(%d_2)[role = assistant, site = "1"]
      %e: context = context.new()
      %e_1: context = context.append(%e, "You are a careful assistant. Be polite.")[role = system]
      %e_2: context, %g: str = lm.gen(%e_1)[role = assistant, site = "2"]
      %all: list<str> = list.make(%a, %b, %g)
      control.return(%all)
    }

After:

    func @f(%q: str) -> list<str> {
      %c: context = context.new()
      %start: context = context.append(%c, "You are a careful assistant. Be ")[role = system]
      %c_1: context = context.append(%start, "brief.")[role = system]
      %c_2: context = context.append(%c_1, %q)[role = user]
      %c_3: context, %a: str = lm.gen(%c_2)[role = assistant, site = "0"]
      %d_3: context, %b: str = lm.gen(%c_2)[role = assistant, site = "1"]
      %e_1: context = context.append(%start, "polite.")[role = system]
      %e_2: context, %g: str = lm.gen(%e_1)[role = assistant, site = "2"]
      %all: list<str> = list.make(%a, %b, %g)
      control.return(%all)
    }

Near miss, which does not change: contexts compare by identity, so two that may be compared stay two; and no generation is merged.

    func @f(%c: context) -> bool {
      %a: context = context.append(%c, "You are a careful assistant.")[role = user]
      %b: context = context.append(%c, "You are a careful assistant.")[role = user]
      %same: bool = pure.call(%a, %b)[function = "eq"]
      %c_1: context, %x: str = lm.gen(%c)[role = assistant, site = "0"]
      %c_2: context, %y: str = lm.gen(%c)[role = assistant, site = "1"]
      control.return(%same)
    }

No token changes: text between control tokens or generated pieces is one segment on each path, however many appends wrote it.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from lmc.ir.builder import rebuild, substitute
from lmc.ir.core import Block, Effect, Function, Literal, Module, Op, Operand, Value, blocks, op_fields
from lmc.ir.ops import Call, ContextAppend
from lmc.passes.identity import compared_contexts, stays_apart
from lmc.passes.rewriting import rewrite_module
from lmc.passes.text_pieces import Pieces, common_start, pieces_of, without_start, worth_sharing, written
from lmc.types import CONTEXT

_Key = tuple[Any, ...]
#: An append is compared with so many others to its context at most, the nearest first, so that time stays linear.
_MOST_SIBLINGS = 64


def number_contexts(module: Module) -> Module:
    """The module with each context built once."""
    compared = compared_contexts(module)

    def number(function: Function) -> Function:
        body = _Numbering(compared).block(function.body)
        return function if body is function.body else dataclasses.replace(function, body=body)

    return rewrite_module(module, number)


#: The ops that stand for one op of the block; a cell may be split into cells.
_Cell = list[Any]


@dataclass(frozen=True, slots=True)
class _Grown:
    """An append that others may share a start with: what it adds, the context it gives, and where it stands and is known."""

    pieces: Pieces
    value: Value
    cell: _Cell
    scope: _Scope


@dataclass(frozen=True, slots=True)
class _Scope:
    """`known`: the value of each op by what it computes; `grown`: the appends to each context, by role."""

    known: dict[_Key, Value] = field(default_factory=dict)
    grown: dict[_Key, list[_Grown]] = field(default_factory=dict)


class _Numbering:
    """One function.  What a region computes is not there outside of it, so `scopes` are those of the blocks around, innermost last.
    `alike`: of contexts that may be compared, the first one with the same content."""

    __slots__ = ("compared", "replaced", "alike", "made", "scopes", "cells")

    def __init__(self, compared: frozenset[Value]):
        self.compared = compared
        self.replaced: dict[Value, Operand] = {}
        self.alike: dict[Value, Value] = {}
        self.made: dict[Value, Op] = {}
        self.scopes: list[_Scope] = []
        self.cells: _Cell = []

    def block(self, old: Block) -> Block:
        outer, self.cells = self.cells, []
        self.scopes.append(_Scope())
        for op in old.ops:
            self._op(substitute(op, self.replaced, self.block))
        ops = tuple(_flat(self.cells))
        self.scopes.pop()
        self.cells = outer
        return old if len(ops) == len(old.ops) and all(map(operator.is_, ops, old.ops)) else Block(old.args, ops)

    def _op(self, op: Op) -> None:
        key = self._key(op)
        first = self._known(key) if key is not None else None
        if key is None:
            self.cells.append(op)
        elif first is not None:
            self._again(op, first)
        elif not isinstance(op, ContextAppend) or not self._shared(op):
            self._first(key, op)

    def _key(self, op: Op) -> _Key | None:
        """What the op computes; None where another one like it computes something else, or is seen."""
        if len(op.results) != 1 or op.effect & ~Effect.FAIL or isinstance(op, Call) or any(blocks(op)):
            return None
        if isinstance(op, ContextAppend):
            return self._append_key(op, op.context, pieces_of(op.text, self.made))
        values = (getattr(op, f.name) for f in op_fields(type(op)))
        return op.mnemonic, op.results[0].type, *map(_part, values)

    def _append_key(self, op: ContextAppend, context: Operand, pieces: Pieces) -> _Key:
        return op.role, op.deferred, self.alike.get(context, context), *map(_part, pieces)

    def _known(self, key: _Key) -> Value | None:
        return next((scope.known[key] for scope in reversed(self.scopes) if key in scope.known), None)

    def _first(self, key: _Key, op: Op) -> None:
        value, cell = op.results[0], [op]
        self.cells.append(cell)
        self.made[value] = op
        self.scopes[-1].known[key] = value
        if isinstance(op, ContextAppend):
            self._grow(op, _Grown(pieces_of(op.text, self.made), value, cell, self.scopes[-1]))

    def _again(self, op: Op, first: Value) -> None:
        value = op.results[0]
        if value in self.compared:
            self.alike[value] = self.alike.get(first, first)
            self.cells.append(op)
        else:
            self.replaced[value] = first

    # -------------------------------------------------------------- texts that begin alike

    def _grow(self, op: ContextAppend, grown: _Grown) -> None:
        grown.scope.grown.setdefault(self._append_key(op, op.context, ()), []).append(grown)

    def _shared(self, op: ContextAppend) -> bool:
        """Whether it begins as another append to the same context does; then it goes on from where they part."""
        pieces, value = pieces_of(op.text, self.made), op.results[0]
        for other in self._siblings(op):
            start = common_start(pieces, other.pieces)
            rest = without_start(pieces, start)
            if not (start == other.pieces or worth_sharing(start) or not rest and start) or not stays_apart(value, rest, self.compared, self.made):
                continue
            between = other.value if start == other.pieces else self._split(other, start)
            if between is not None:
                self._op(self._after(op, between, rest, self.cells) if rest else op)
                return True
        return False

    def _siblings(self, op: ContextAppend) -> list[_Grown]:
        key = self._append_key(op, op.context, ())
        found = (grown for scope in reversed(self.scopes) for grown in reversed(scope.grown.get(key, ())))
        return list(islice(found, _MOST_SIBLINGS))

    def _split(self, other: _Grown, start: Pieces) -> Value | None:
        """Make two appends of one, and give the context between them; None where that cannot be."""
        append, rest = other.cell[-1], without_start(other.pieces, start)
        if not stays_apart(other.value, rest, self.compared, self.made):
            return None
        between, first, second = Value(CONTEXT, "start"), [], []
        first.append(rebuild(self._after(append, append.context, start, first), (between,)))
        second.append(self._after(append, between, rest, second))
        other.cell[:] = [first, second]
        other.scope.known[self._append_key(append, append.context, start)] = between
        other.scope.known[self._append_key(append, between, rest)] = other.value
        self._siblings_in(other.scope, append).remove(other)
        self._grow(first[-1], _Grown(start, between, first, other.scope))
        self._grow(second[-1], _Grown(rest, other.value, second, other.scope))
        return between

    def _siblings_in(self, scope: _Scope, append: ContextAppend) -> list[_Grown]:
        return scope.grown[self._append_key(append, append.context, ())]

    def _after(self, op: ContextAppend, context: Operand, pieces: Pieces, cell: _Cell) -> ContextAppend:
        """The append with only these pieces, on that context; the text is put together in `cell`."""
        text, ops = written(pieces, op.span)
        self.made.update((o.results[0], o) for o in ops)
        cell += ops
        return rebuild(op, context=context, text=text)


def _part(value: Any) -> Any:
    """What compares two operands or attributes: literals by how they are written, so that -0.0 is not 0.0 and true not 1."""
    if isinstance(value, Literal):
        return repr(value.value), value.type
    return tuple(map(_part, value)) if isinstance(value, tuple) else value


def _flat(cell: _Cell) -> Iterator[Op]:
    for item in cell:
        if isinstance(item, list):
            yield from _flat(item)
        else:
            yield item
