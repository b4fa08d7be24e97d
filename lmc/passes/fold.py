"""Compute what is known at compile time, with the functions that the machine would use.

Before:

    func @f(%name: str) -> str {
      %n: int = pure.call(2, 3)[function = "add"]
      %big: bool = pure.call(%n, 4)[function = "gt"]
      %t: str = control.if(%big) {
        %u: str = text.concat("Dear ", "Dr ", %name, " ", %n)
        control.yield(%u)
      } {
        control.yield(%name)
      }
      control.return(%t)
    }

After:

    func @f(%name: str) -> str {
      %u: str = text.concat("Dear Dr ", %name, " 5")
      control.return(%u)
    }

Near miss, which does not change: what fails is left to fail when the program runs, in its place and only if it is reached.

    func @f() -> float {
      %x: float = pure.call(1, 0)[function = "div"]
      control.return(%x)
    }
"""

from __future__ import annotations

import json
from typing import Any

from lmc.ir.builder import literal, rebuild
from lmc.ir.core import Function, Literal, Module, Op, Operand, Value
from lmc.ir.ops import Assert, Const, If, ListMake, PureCall, RecordGet, RecordMake, TextConcat, UnionIs
from lmc.passes.rewriting import Rewritten, rewrite_function, rewrite_module
from lmc.passes.text_pieces import joined
from lmc.pure import PureError, call_pure
from lmc.types import RecordT, StrT, UnionT, records_in
from lmc.values import from_data, to_json

#: A longer text or list is left to the run: an artifact should not hold what `"-" * 1000000` gives.
_MAX_TEXT = 4096
_SCALARS = (str, bool, int, float, type(None))


def fold(module: Module) -> Module:
    """The module with what is known computed."""
    named = {t.name: t for t in module.types}
    return rewrite_module(module, lambda function: _fold_function(function, named))


def _fold_function(function: Function, named: dict[str, RecordT | UnionT]) -> Function:
    return rewrite_function(function, _Folder(named).rewrite)


class _Folder:
    """`known` holds the values of results that are known and not scalar; `records` the fields of records made here."""

    __slots__ = ("named", "known", "records")

    def __init__(self, named: dict[str, RecordT | UnionT]):
        self.named = named
        self.known: dict[Value, Any] = {}
        self.records: dict[Value, RecordMake] = {}

    def rewrite(self, op: Op) -> Rewritten:
        match op:
            case PureCall():
                return self._pure_call(op)
            case TextConcat():
                return _text_concat(op)
            case RecordGet() if (field := self._field(op)) is not None:
                return [], {op.results[0]: field}
            case UnionIs() if (known := _member(op)) is not None:
                return [], {op.results[0]: literal(known)}
            case If() if isinstance(op.condition, Literal):
                return _if(op)
            case Assert() if isinstance(op.condition, Literal) and op.condition.value is True:
                return [], {}
        self._learn(op)
        return [op], {}

    def _learn(self, op: Op) -> None:
        match op:
            case Const():
                self.known[op.results[0]] = from_data(json.loads(op.value), op.results[0].type)
            case ListMake() if all(isinstance(e, Literal) for e in op.elements):
                self.known[op.results[0]] = tuple(e.value for e in op.elements)
            case RecordMake():
                self.records[op.results[0]] = op

    def _field(self, op: RecordGet) -> Operand | None:
        """The field of a record made here; None too where a case that never applies takes it for another record."""
        made = self.records.get(op.record)
        names = [f.name for f in made.results[0].type.fields] if made is not None else []
        return made.values[names.index(op.field)] if op.field in names else None

    def _pure_call(self, op: PureCall) -> Rewritten:
        if not all(isinstance(a, Literal) or a in self.known for a in op.args):
            return [op], {}
        args = tuple(a.value if isinstance(a, Literal) else self.known[a] for a in op.args)
        result = op.results[0]
        try:
            value = call_pure(op.function, args, result.type, self.named)
        except PureError:
            return [op], {}
        if isinstance(value, _SCALARS):
            return ([op], {}) if isinstance(value, str) and len(value) > _MAX_TEXT else ([], {result: literal(value)})
        text = to_json(value, result.type)
        if len(text) > _MAX_TEXT:
            return [op], {}
        self.known[result] = value
        return [Const(op.results, op.span, text)], {}


def _member(op: UnionIs) -> bool | None:
    """Whether the value is of the record type, where its own type says so."""
    found = op.value.type
    if op.member not in [r.name for r in records_in(found)]:
        return False
    return True if isinstance(found, RecordT) else None


def _text_concat(op: TextConcat) -> Rewritten:
    pieces = joined(op.pieces)
    if not pieces:
        return [], {op.results[0]: literal("")}
    if len(pieces) == 1 and isinstance(pieces[0].type, StrT):
        return [], {op.results[0]: pieces[0]}
    same = len(pieces) == len(op.pieces) and all(a == b for a, b in zip(pieces, op.pieces))
    return [op if same else rebuild(op, pieces=pieces)], {}


def _if(op: If) -> Rewritten:
    """The ops of the block that is taken; where it leaves, what follows is never reached."""
    block = op.then if op.condition.value else op.otherwise
    *ops, last = block.ops
    if last.mnemonic != "control.yield":
        return [*ops, last], {}
    return ops, dict(zip(op.results, last.values))
