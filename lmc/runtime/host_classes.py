"""The dataclass of a record type: frozen, with typed fields, defaults and `asdict`.

    Verdict = make_class(record, {}, asdict, to_host)
    Verdict("A", overall=4).asdict()      # {"grade": "A", "overall": 4, "notes": []}

The annotations are real types (`Literal["A", "B"]`, `list[str]`, the dataclass of another record), so `typing.get_type_hints` and
tools that read dataclasses work.  A refinement such as `1..5` shows as its base type.  What goes in and out of the instances is
`host_types.py`.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import operator
from collections.abc import Callable, Iterable
from typing import Any, Literal, Never

from lmc.runtime.context import Context
from lmc.types import (
    ERROR, BoolT, ContextT, DictT, FallibleT, FloatT, IntT, ListT, LiteralT, NeverT, OptionalT, RangeT, RecordT, StrT, TupleT, Type,
    UnionT,
)
from lmc.values import from_data, python_name

#: An instance, and whether its tag is wanted, to JSON data.
AsDict = Callable[[Any, bool], dict[str, Any]]


def make_class(record: RecordT, classes: dict[str, type], asdict: AsDict, to_host: Callable[[Any], Any]) -> type:
    """The dataclass of a record; `classes` has those of `needed_records`.

    asdict: what the method of the instances does
    to_host: a value of the runtime as plain Python, for defaults
    """
    fields, defaulted = [], False
    for f in record.fields:
        if f.default is not None:
            made, defaulted = _default(f.default, f.type, to_host), True
        else:
            # Python wants defaults last; a required field behind one is given by name, so that the order stays the program's.
            made = dataclasses.field(kw_only=defaulted)
        fields.append((python_name(f.name, record), annotation(f.type, classes), made))

    def as_data(self: Any, *, tag: bool = False) -> dict[str, Any]:
        """The instance as JSON data; with `tag` the key `type` first, as where a union is expected."""
        return asdict(self, tag)

    name = record.name.rpartition(".")[2]
    as_data.__name__, as_data.__qualname__ = "asdict", f"{name}.asdict"
    made_class = dataclasses.make_dataclass(name, fields, frozen=True, namespace={"asdict": as_data})
    made_class.__doc__ = record.doc or None
    made_class.__module__ = "lmc.program"
    return made_class


def needed_records(record: RecordT) -> Iterable[RecordT]:
    """The records that the annotations of the fields name."""
    waiting: list[Type] = [f.type for f in record.fields]
    while waiting:
        match waiting.pop():
            case RecordT() as found:
                yield found
            case UnionT(members=items) | TupleT(items=items):
                waiting += items
            case ListT(element=inner) | OptionalT(inner=inner):
                waiting.append(inner)
            case FallibleT(inner=inner):
                waiting += (inner, ERROR)
            case DictT(key, value):
                waiting += (key, value)


def annotation(type: Type, classes: dict[str, type]) -> Any:
    """The type as Python writes it; `classes` has the dataclasses of the records in it."""
    match type:
        case LiteralT(values):
            return Literal[values]
        case ListT(element):
            return list[annotation(element, classes)]
        case DictT(key, value):
            return dict[annotation(key, classes), annotation(value, classes)]
        case TupleT(items):
            # Tuples leave the runtime as lists.
            return list[functools.reduce(operator.or_, (annotation(i, classes) for i in items))]
        case OptionalT(inner):
            return annotation(inner, classes) | None
        case FallibleT(inner):
            return annotation(inner, classes) | classes[ERROR.name]
        case RecordT():
            return classes[type.name]
        case UnionT(members=members):
            return functools.reduce(operator.or_, (classes[m.name] for m in members))
    plain = {StrT: str, IntT: int, RangeT: int, FloatT: float, BoolT: bool, ContextT: Context, NeverT: Never}
    return plain.get(type.__class__)


def _default(text: str, type: Type, to_host: Callable[[Any], Any]) -> Any:
    value = from_data(json.loads(text), type)
    if isinstance(value, (tuple, dict)):
        return dataclasses.field(default_factory=lambda: to_host(value))
    return dataclasses.field(default=to_host(value))
