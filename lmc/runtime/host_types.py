"""Values as Python hosts see them: records as dataclasses named like the `.lmp` type, lists as lists.

    types = HostTypes(program.types)
    types.to_host(Record(Verdict, ("A", 4, "fine")))      # Verdict(grade='A', overall=4, summary='fine')
    types.from_host(verdict, Verdict)                     # the Record again

A field that is a Python keyword (`class`) or `asdict` gets an underscore behind it in the dataclass, and its own name everywhere
else.  `.asdict()` gives the JSON data of an instance.  The classes themselves are made in `host_classes.py`.
Contexts go through as they are: opaque.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lmc.runtime.context import Context
from lmc.runtime.host_classes import annotation, make_class, needed_records
from lmc.types import BUILTIN_RECORDS, ERROR, ContextT, DictT, FallibleT, ListT, OptionalT, RecordT, TupleT, Type, UnionT
from lmc.values import Record, ValueMismatch, from_data, python_name, to_data


class HostTypes:
    """The dataclasses of a program's records; those of a union are shared with its members."""

    __slots__ = ("_classes", "_types")

    def __init__(self, types: Iterable[RecordT | UnionT]):
        records = [t for t in (*BUILTIN_RECORDS, *types) if isinstance(t, RecordT)]
        records += [m for t in types if isinstance(t, UnionT) for m in t.members]
        self._classes: dict[str, type] = {}
        self._types: dict[type, RecordT] = {}
        for record in records:
            self._add(record)

    def class_of(self, name: str) -> type | None:
        """The dataclass of the record type with this name."""
        return self._classes.get(name)

    def annotation(self, type: Type) -> Any:
        """The type as Python writes it, with the dataclasses of the program."""
        return annotation(type, self._classes)

    def to_host(self, value: Any) -> Any:
        """A value of the runtime as plain Python."""
        if isinstance(value, Record):
            fields = {python_name(f.name, value.type): self.to_host(v) for f, v in zip(value.type.fields, value.values)}
            return self._classes[value.type.name](**fields)
        if isinstance(value, tuple):
            return [self.to_host(v) for v in value]
        if isinstance(value, dict):
            return {k: self.to_host(v) for k, v in value.items()}
        return value

    def from_host(self, value: Any, type: Type) -> Any:
        """What a host gave as a value of `type`.  Raises `ValueMismatch`, which names the place."""
        if holds_context(type):
            _check_contexts(value, type, "")
        return from_data(self._plain(value), type)

    def _add(self, record: RecordT) -> None:
        if record.name in self._classes:
            return
        for inner in needed_records(record):
            self._add(inner)
        made = make_class(record, self._classes, self._asdict, self.to_host)
        self._classes[record.name] = made
        self._types[made] = record

    def _asdict(self, instance: Any, tag: bool) -> dict[str, Any]:
        record = self._types[instance.__class__]
        return to_data(self._plain(instance), UnionT(record.name, (record,)) if tag else record)

    def _plain(self, value: Any) -> Any:
        """Our own dataclasses as records; `from_data` takes everything else as it is."""
        record = self._types.get(value.__class__)
        if record is not None:
            fields = (self._plain(getattr(value, python_name(f.name, record))) for f in record.fields)
            data = {f.name: v for f, v in zip(record.fields, fields)}
            return from_data(data, record)
        if isinstance(value, (list, tuple)):
            return [self._plain(v) for v in value]
        if isinstance(value, dict):
            return {k: self._plain(v) for k, v in value.items()}
        return value


def holds_context(type: Type) -> bool:
    """Whether values of the type hold contexts, which only a program makes and which have no JSON."""
    match type:
        case ContextT():
            return True
        case ListT(inner) | OptionalT(inner) | FallibleT(inner) | DictT(_, inner):
            return holds_context(inner)
        case TupleT(items):
            return any(map(holds_context, items))
    return False


def _check_contexts(value: Any, type: Type, path: str) -> None:
    """`from_data` takes contexts as they are, so whatever stands in a context's place is looked at here."""
    match type:
        case ContextT():
            if not isinstance(value, Context):
                raise ValueMismatch(path, "a context that a function of the program returned", value)
        case OptionalT(inner):
            if value is not None:
                _check_contexts(value, inner, path)
        case FallibleT(inner):
            if value.__class__.__name__ != ERROR.name:
                _check_contexts(value, inner, path)
        case ListT(inner):
            for index, element in enumerate(value if isinstance(value, (list, tuple)) else ()):
                _check_contexts(element, inner, f"{path}[{index}]")
        case DictT(_, inner):
            for key, element in (value.items() if isinstance(value, dict) else ()):
                _check_contexts(element, inner, f"{path}[{key!r}]")
