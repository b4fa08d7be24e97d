"""Values at run time and their two text forms: text in a prompt, and compact JSON.

| type | Python value inside `lmc` |
| --- | --- |
| str, int, float, bool, None | the same |
| list, tuple | tuple |
| dict | dict, never changed in place |
| record, union member | `Record` |
| context | an opaque object of the runtime |

Values are immutable: what looks like an update makes a new one.  This file does not know the schemas that constrain a model; it
checks what comes from outside (arguments, generated text, `parse_json`, externs) against a type.
"""

from __future__ import annotations

import json
import keyword
import re
import sys
from dataclasses import dataclass
from typing import Any

from lmc.types import (
    ERROR, BoolT, ContextT, DictT, FallibleT, FloatT, IntT, ListT, LiteralT, NeverT, NoneT, OptionalT, RangeT, RecordT, StrT, TupleT,
    Type, UnionT, spell_type,
)


@dataclass(frozen=True, slots=True)
class Record:
    """A value of a record type; `values` are in the order of its fields."""

    type: RecordT
    values: tuple[Any, ...]

    def get(self, name: str) -> Any:
        for field, value in zip(self.type.fields, self.values):
            if field.name == name:
                return value
        raise KeyError(name)


class ValueMismatch(ValueError):
    """A value from outside does not have the type; `path` leads to it (`.wand.length`, `[2]`)."""

    def __init__(self, path: str, expected: str, found: object):
        self.path, self.expected, self.found = path, expected, found
        super().__init__(f"{'at `' + path.lstrip('.') + '`: ' if path else ''}expected {expected}, found {_shown(found)}")


def _shown(value: object) -> str:
    if isinstance(value, int) and value.bit_length() > 200:
        return f"an int of {value.bit_length()} bits"  # Python refuses to print thousands of digits
    text = repr(value) if not isinstance(value, (dict, list, bool, type(None))) else json.dumps(value, default=repr)
    return text if len(text) <= 60 else text[:57] + "..."


def text_of(value: Any) -> str:
    """How a value reads in a prompt.  Only str, int, float and bool have one; the checker refuses the rest."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    assert isinstance(value, float), type(value)
    return number_text(value)


def number_text(value: float) -> str:
    """A float as JSON and prompts show it: shortest digits that read back, `2.0` for whole numbers."""
    return repr(value)


def python_name(field: str, record: RecordT) -> str:
    """The attribute of a record's dataclass: the field's name, with `_` behind a word that is taken (`class`, `asdict`)."""
    if not keyword.iskeyword(field) and field != "asdict":
        return field
    name = field + "_"
    while record.field(name) is not None:
        name += "_"
    return name


def to_data(value: Any, type: Type | None = None) -> Any:
    """The value as JSON data.  A record that stands where `type` is a union gets its tag first, as does the error of `T | Error`."""
    tagged = isinstance(type, FallibleT) and isinstance(value, Record) and value.type == ERROR
    while isinstance(type, (OptionalT, FallibleT)):
        type = type.inner
    if isinstance(value, Record):
        fields = {f.name: to_data(v, f.type) for f, v in zip(value.type.fields, value.values)}
        return {"type": value.type.name.rpartition(".")[2], **fields} if tagged or isinstance(type, UnionT) else fields
    if isinstance(value, tuple):
        elements = _element_types(type, len(value))
        return [to_data(v, t) for v, t in zip(value, elements)]
    if isinstance(value, dict):
        inner = type.value if isinstance(type, DictT) else None
        return {key if isinstance(key, str) else text_of(key): to_data(v, inner) for key, v in value.items()}
    return value


def _element_types(type: Type | None, count: int) -> tuple[Type | None, ...]:
    if isinstance(type, TupleT):
        return type.items
    return (type.element if isinstance(type, ListT) else None,) * count


def to_json(value: Any, type: Type | None = None) -> str:
    """Compact JSON, as generated values are written and `json(x)` gives it."""
    return json.dumps(to_data(value, type), ensure_ascii=False, separators=(",", ":"))


def from_text(text: str, type: Type) -> Any:
    """A generated text as a value: bare at the top for `str` and literal types, else JSON (LANGUAGE §8).

    Raises `ValueMismatch`.
    """
    match type:
        case StrT():
            return from_data(text, type)
        case LiteralT(values):
            for value in values:
                if text_of(value) == text:
                    return value
            raise ValueMismatch("", spell_type(type), text)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueMismatch("", f"JSON of {spell_type(type)}", text) from None
    return from_data(data, type)


def from_data(data: Any, type: Type, path: str = "") -> Any:
    """JSON data (or what a Python host passes) as a value of `type`.

    Missing fields take their defaults, lists may be tuples, an int is a float where one is wanted, and data that carry fields as
    attributes (dataclasses, records) are taken as records.
    Raises `ValueMismatch`, which names the place.
    """
    match type:
        case RecordT():
            return _record(data, type, path)
        case UnionT():
            return _union(data, type, path)
        case OptionalT(inner):
            return None if data is None else from_data(data, inner, path)
        case FallibleT(inner):
            return _error(data, path) if _is_error(data) else from_data(data, inner, path)
        case ListT():
            return _list(data, type, path)
        case DictT(key, value):
            if not isinstance(data, dict):
                raise ValueMismatch(path, "a dict", data)
            return {from_data(_key(k, key), key, path): from_data(v, value, f"{path}[{k!r}]") for k, v in data.items()}
        case TupleT(items):
            if not isinstance(data, (list, tuple)) or len(data) != len(items):
                raise ValueMismatch(path, f"{len(items)} elements", data)
            return tuple(from_data(d, t, f"{path}[{i}]") for i, (d, t) in enumerate(zip(data, items)))
        case ContextT() | NeverT():
            return data
    return _scalar(data, type, path)


def _key(key: Any, type: Type) -> Any:
    # JSON has only string keys; a dict with int keys reads back what `to_data` wrote.
    return int(key) if isinstance(key, str) and isinstance(type, (IntT, RangeT)) and re.fullmatch(r"-?\d+", key) else key


def _record(data: Any, type: RecordT, path: str) -> Record:
    if isinstance(data, Record):
        if data.type == type:
            return data
        raise ValueMismatch(path, f"{_named(type)}", to_data(data))
    if not isinstance(data, dict):
        names = [f.name for f in type.fields]
        if data is None or isinstance(data, (str, int, float, list, tuple)) or not all(hasattr(data, n) for n in names):
            raise ValueMismatch(path, f"{_named(type)}", data)
        data = {n: getattr(data, n) for n in names}
    unknown = [k for k in data if type.field(k) is None]
    if unknown:
        raise ValueMismatch(f"{path}.{unknown[0]}", f"a field of {type.name}", data[unknown[0]])
    values = []
    for field in type.fields:
        if field.name in data:
            values.append(from_data(data[field.name], field.type, f"{path}.{field.name}"))
        elif field.default is not None:
            values.append(from_data(json.loads(field.default), field.type, f"{path}.{field.name}"))
        else:
            raise ValueMismatch(path, f"{_named(type)} with the field `{field.name}`", data)
    return Record(type, tuple(values))


def _named(type: RecordT) -> str:
    return f"{'an' if type.name.startswith(('A', 'E', 'I', 'O', 'U')) else 'a'} {type.name}"


def _union(data: Any, type: UnionT, path: str) -> Record:
    if isinstance(data, Record) and data.type in type.members:
        return data
    tags = {m.name.rpartition(".")[2]: m for m in type.members}
    if isinstance(data, dict):
        tag = data.get("type")
        member = tags.get(tag) if isinstance(tag, str) else None
        data = {k: v for k, v in data.items() if k != "type"}
    else:
        member = tags.get(data.__class__.__name__)
    if member is None:
        raise ValueMismatch(path, "one of " + ", ".join(tags), data)
    return _record(data, member, path)


def _is_error(data: Any) -> bool:
    if isinstance(data, Record):
        return data.type == ERROR
    return data.get("type") == ERROR.name if isinstance(data, dict) else data.__class__.__name__ == ERROR.name


def _error(data: Any, path: str) -> Record:
    return _record({k: v for k, v in data.items() if k != "type"} if isinstance(data, dict) else data, ERROR, path)


def _list(data: Any, type: ListT, path: str) -> tuple[Any, ...]:
    if not isinstance(data, (list, tuple)):
        raise ValueMismatch(path, "a list", data)
    if type.min_items is not None and len(data) < type.min_items:
        raise ValueMismatch(path, f"at least {type.min_items} elements", list(data))
    if type.max_items is not None and len(data) > type.max_items:
        raise ValueMismatch(path, f"at most {type.max_items} elements", list(data))
    return tuple(from_data(d, type.element, f"{path}[{i}]") for i, d in enumerate(data))


# Compared with an int without converting it: `float(10**400)` would fail.  NaN and infinity are not below it.
_LARGEST_FLOAT = sys.float_info.max


def _scalar(data: Any, type: Type, path: str) -> Any:
    whole = isinstance(data, int) and not isinstance(data, bool)
    match type:
        case StrT():
            if isinstance(data, str) and _str_fits(data, type):
                return data
        case IntT():
            if whole and -(2**63) <= data < 2**63:
                return data
        case RangeT(low, high):
            if whole and low <= data <= high:
                return data
        case FloatT():
            if (whole or isinstance(data, float)) and abs(data) <= _LARGEST_FLOAT:
                return float(data)
        case BoolT():
            if isinstance(data, bool):
                return data
        case NoneT():
            if data is None:
                return None
        case LiteralT(values):
            if any(v == data and v.__class__ is data.__class__ for v in values):
                return data
    raise ValueMismatch(path, spell_type(type), data)


def _str_fits(text: str, type: StrT) -> bool:
    if type.min_len is not None and len(text) < type.min_len or type.max_len is not None and len(text) > type.max_len:
        return False
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        return False  # half a character: it has no UTF-8
    # The automaton decides in the same way: the regex dialect is a subset of Python's with ASCII classes.
    return type.regex is None or re.fullmatch(type.regex, text, re.ASCII) is not None
