"""The types of `.lmp` values, used by the checker, the IR, the constraints and the runtime.

Types are plain data and compare by structure.  Their one text form, read back by `lmc.ir.reader` and by the artifact reader, is
that of `format_type`: `str`, `1..5`, `"A" | "B"`, `list<str(max_len=30)>(max_items=5)`, `@Verdict`.  A record or a union of records
prints as its name; the table of named types beside it holds the definition.
`spell_type` is for people: the type as it is written in a `.lmp` file.  This file knows nothing of how a type is constrained or checked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass


class Type:
    """Base of all types."""

    __slots__ = ()

    def __str__(self) -> str:
        return format_type(self)


@dataclass(frozen=True, slots=True)
class StrT(Type):
    """Text; lengths count code points; `regex` must match the whole value."""

    min_len: int | None = None
    max_len: int | None = None
    regex: str | None = None


@dataclass(frozen=True, slots=True)
class IntT(Type):
    """Signed 64-bit integer."""


@dataclass(frozen=True, slots=True)
class RangeT(Type):
    """An integer from `low` to `high`, both included."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class FloatT(Type):
    """Binary64."""


@dataclass(frozen=True, slots=True)
class BoolT(Type):
    """`true` or `false`."""


@dataclass(frozen=True, slots=True)
class NoneT(Type):
    """The type of `None` and of a function that returns nothing."""


@dataclass(frozen=True, slots=True)
class LiteralT(Type):
    """One of several strings, integers or booleans, in the order written."""

    values: tuple[str | int | bool, ...]


@dataclass(frozen=True, slots=True)
class ListT(Type):
    element: Type
    min_items: int | None = None
    max_items: int | None = None


@dataclass(frozen=True, slots=True)
class DictT(Type):
    key: Type
    value: Type


@dataclass(frozen=True, slots=True)
class TupleT(Type):
    """What `enumerate` and `zip` give; it cannot be written or generated."""

    items: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class OptionalT(Type):
    """`T | None`."""

    inner: Type


@dataclass(frozen=True, slots=True)
class FallibleT(Type):
    """`T | Error`: what a branch of a `fork` with `errors="collect"` gives.  `inner` is no `FallibleT` and not `Error` itself."""

    inner: Type


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record.  `default` is JSON text of the default, or None where the field is required."""

    name: str
    type: Type
    default: str | None = None


@dataclass(frozen=True, slots=True)
class RecordT(Type):
    """A record.  `name` is unique in a program."""

    name: str
    fields: tuple[Field, ...]
    doc: str = ""

    def field(self, name: str) -> Field | None:
        return next((f for f in self.fields if f.name == name), None)


@dataclass(frozen=True, slots=True)
class UnionT(Type):
    """A tagged union of records; its JSON has the member's name under `type`, first."""

    name: str
    members: tuple[RecordT, ...]

    def member(self, name: str) -> RecordT | None:
        return next((m for m in self.members if m.name == name), None)


@dataclass(frozen=True, slots=True)
class ContextT(Type):
    """A conversation; compared by identity, never printed."""


@dataclass(frozen=True, slots=True)
class NeverT(Type):
    """The type of an expression that does not return (`fail`), and the element type of `[]`."""


STR, INT, FLOAT, BOOL, NONE, CONTEXT, NEVER = StrT(), IntT(), FloatT(), BoolT(), NoneT(), ContextT(), NeverT()

#: What `except … as e` binds and `errors="collect"` gives (LANGUAGE §8).
ERROR = RecordT("Error", (Field("kind", STR), Field("message", STR), Field("where", STR), Field("raw", OptionalT(STR))))
#: An element of what `score` gives; `logprob` is a sum of natural logarithms.
SCORED = RecordT("Scored", (Field("option", STR), Field("logprob", FLOAT)))
BUILTIN_RECORDS = (ERROR, SCORED)


def format_type(t: Type) -> str:
    """The text form.  Records and unions print as `@Name`."""
    match t:
        case StrT():
            return "str" + _options(min_len=t.min_len, max_len=t.max_len, regex=t.regex)
        case RangeT(low, high):
            return f"{low}..{high}"
        case LiteralT(values):
            return " | ".join(json.dumps(v, ensure_ascii=False) for v in values)
        case ListT():
            return f"list<{t.element}>" + _options(min_items=t.min_items, max_items=t.max_items)
        case DictT():
            return f"dict<{t.key}, {t.value}>"
        case TupleT():
            return f"tuple<{', '.join(map(str, t.items))}>"
        case OptionalT():
            return f"optional<{t.inner}>"
        case FallibleT():
            return f"fallible<{t.inner}>"
        case RecordT() | UnionT():
            return f"@{t.name}"
    return {IntT: "int", FloatT: "float", BoolT: "bool", NoneT: "none", ContextT: "context", NeverT: "never"}[type(t)]


def spell_type(t: Type) -> str:
    """The type as its author would write it; `?` for a class that is not of this file."""
    match t:
        case RecordT() | UnionT():
            return t.name.rpartition(".")[2]
        case LiteralT(values):
            return " | ".join(_literal_text(v) for v in values)
        case RangeT(low, high):
            return f"{low}..{high}"
        case ListT(element):
            return f"list[{spell_type(element)}]" + _options(min_items=t.min_items, max_items=t.max_items)
        case DictT(key, value):
            return f"dict[{spell_type(key)}, {spell_type(value)}]"
        case TupleT(items):
            return f"({', '.join(map(spell_type, items))})"
        case OptionalT(inner):
            return f"{spell_type(inner)} | None"
        case FallibleT(inner):
            return f"{spell_type(inner)} | Error"
        case StrT():
            return "str" + _options(min_len=t.min_len, max_len=t.max_len, regex=t.regex)
    return {IntT: "int", FloatT: "float", BoolT: "bool", NoneT: "None", ContextT: "context", NeverT: "nothing"}.get(type(t), "?")


def _literal_text(value: object) -> str:
    return {True: "True", False: "False"}[value] if isinstance(value, bool) else json.dumps(value, ensure_ascii=False)


def _options(**options: object) -> str:
    given = ", ".join(f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in options.items() if v is not None)
    return f"({given})" if given else ""


def fallible(t: Type) -> Type:
    """`t | Error`."""
    return t if t == ERROR or isinstance(t, FallibleT) else FallibleT(t)


def plain_type(t: Type) -> Type:
    """The type without `| None` and `| Error`."""
    while isinstance(t, (OptionalT, FallibleT)):
        t = t.inner
    return t


def records_in(t: Type) -> tuple[RecordT, ...]:
    """The records that a value of the type may be: itself, the members of a union, `Error`."""
    plain = plain_type(t)
    members = plain.members if isinstance(plain, UnionT) else (plain,) if isinstance(plain, RecordT) else ()
    return (*members, ERROR) if isinstance(t, FallibleT) else members


def base_type(t: Type) -> Type:
    """The type without its refinement: `1..5` is an `int`, `"A" | "B"` a `str`."""
    match t:
        case StrT():
            return STR
        case RangeT():
            return INT
        case LiteralT(values):
            kinds = {type(v) for v in values}
            return {str: STR, int: INT, bool: BOOL}[kinds.pop()] if len(kinds) == 1 else t
        case ListT():
            return ListT(base_type(t.element))
        case OptionalT():
            return OptionalT(base_type(t.inner))
        case FallibleT():
            return FallibleT(base_type(t.inner))
        case DictT():
            return DictT(base_type(t.key), base_type(t.value))
    return t


def named_types(t: Type) -> Iterator[RecordT | UnionT]:
    """The records and unions that `t` is made of, each after those it needs; may repeat one."""
    return (part for part in parts(t) if isinstance(part, (RecordT, UnionT)))


def parts(t: Type) -> Iterator[Type]:
    """All types that `t` is made of, each after those it needs, `t` last."""
    match t:
        case RecordT(fields=fields):
            inner = tuple(f.type for f in fields)
        case UnionT(members=items) | TupleT(items=items):
            inner = items
        case ListT(element=element) | OptionalT(inner=element) | FallibleT(inner=element):
            inner = (element,)
        case DictT(key, value):
            inner = (key, value)
        case _:
            inner = ()
    for part in inner:
        yield from parts(part)
    yield t
