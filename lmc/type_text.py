"""Types from their text form and as JSON data, for the IR reader and for artifacts.

    parse_type("list<str(max_len=30)>(max_items=5)", {}) == ListT(StrT(max_len=30), max_items=5)
    parse_type("optional<@Wand>", {"Wand": wand}) == OptionalT(wand)

The inverse is `lmc.types.format_type`.  A record or union stands in it as `@Name`; its definition is data:

    named_type_to_data(wand) == {"name": "Wand", "doc": "", "fields": [{"name": "wood", "type": "str", "default": None}]}
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from lmc.types import (
    BOOL, BUILTIN_RECORDS, CONTEXT, FLOAT, INT, NEVER, NONE, DictT, FallibleT, Field, ListT, LiteralT, OptionalT, RangeT, RecordT,
    StrT, TupleT, Type, UnionT,
)

Named = Mapping[str, RecordT | UnionT]


class TypeTextError(ValueError):
    """The text is not a type; `position` counts characters from 0."""

    def __init__(self, message: str, position: int):
        super().__init__(message)
        self.message, self.position = message, position


def parse_type(text: str, named: Named) -> Type:
    """The type that `format_type` prints as `text`; `named` resolves `@Name`, beside the built-in records.

    Raises `TypeTextError`.
    """
    reader = _Reader(text, named)
    try:
        result = reader.type()
    except RecursionError:
        raise TypeTextError("the type is nested too deeply", 0) from None
    reader.expect_end()
    return result


def type_to_data(t: Type) -> str:
    """The type as JSON data: its text form."""
    return str(t)


def named_type_to_data(t: RecordT | UnionT) -> dict[str, Any]:
    """The definition of a record or union as JSON data; the types in it are text."""
    if isinstance(t, UnionT):
        return {"name": t.name, "members": [m.name for m in t.members]}
    fields = [{"name": f.name, "type": type_to_data(f.type), "default": f.default} for f in t.fields]
    return {"name": t.name, "doc": t.doc, "fields": fields}


def named_type_from_data(data: Any, named: Named) -> RecordT | UnionT:
    """The inverse of `named_type_to_data`; `named` must hold the types that this one needs.

    Raises `TypeTextError` where the data are not such a definition.
    """
    if not isinstance(data, dict) or not isinstance(data.get("name"), str):
        raise TypeTextError("a type definition needs a name", 0)
    if "members" in data:
        return UnionT(data["name"], _members(data["members"], named))
    fields = data.get("fields")
    if not isinstance(fields, list) or not isinstance(data.get("doc", ""), str):
        raise TypeTextError(f"the record {data['name']} needs a list of fields", 0)
    return RecordT(data["name"], tuple(_field(f, named) for f in fields), data.get("doc", ""))


def _members(names: Any, named: Named) -> tuple[RecordT, ...]:
    known = {t.name: t for t in BUILTIN_RECORDS} | dict(named)
    members = [known.get(name) if isinstance(name, str) else None for name in names] if isinstance(names, list) else []
    if not members or not all(isinstance(m, RecordT) for m in members):
        raise TypeTextError(f"a union needs the names of known records, found {names!r}", 0)
    return tuple(members)


def _field(data: Any, named: Named) -> Field:
    if not isinstance(data, dict) or not isinstance(data.get("name"), str) or not isinstance(data.get("type"), str):
        raise TypeTextError(f"a field needs a name and a type, found {data!r}", 0)
    if not isinstance(data.get("default"), (str, type(None))):
        raise TypeTextError(f"the default of the field {data['name']} must be JSON text", 0)
    return Field(data["name"], parse_type(data["type"], named), data.get("default"))


_SIMPLE: dict[str, Type] = {"int": INT, "float": FLOAT, "bool": BOOL, "none": NONE, "context": CONTEXT, "never": NEVER}
_OPTION_TYPES: dict[str, type] = {"min_len": int, "max_len": int, "regex": str, "min_items": int, "max_items": int}


class _Reader:
    """Recursive descent over the text form."""

    __slots__ = ("text", "named", "at")

    def __init__(self, text: str, named: Named):
        self.text, self.named, self.at = text, named, 0

    def type(self) -> Type:
        if match := self.take(r"(-?\d+)\.\.(-?\d+)"):
            return RangeT(int(match[1]), int(match[2]))
        if self.text[self.at : self.at + 1] in _LITERAL_STARTS or self.take(r"(?=(true|false)\b)"):
            return self.literals()
        if match := self.take(r"@([^\W\d][\w.]*)"):
            return self.known(match[1])
        if match := self.take(r"[a-z]+"):
            return self.word(match[0])
        raise self.error("expected a type")

    def literals(self) -> LiteralT:
        values = [self.json((str, int, bool))]
        while self.take(r" \| "):
            values.append(self.json((str, int, bool)))
        return LiteralT(tuple(values))

    def known(self, name: str) -> Type:
        found = self.named.get(name) or next((t for t in BUILTIN_RECORDS if t.name == name), None)
        if found is not None:
            return found
        raise self.error(f"unknown type @{name}")

    def word(self, word: str) -> Type:
        if word in _SIMPLE:
            return _SIMPLE[word]
        if word == "str":
            return StrT(**self.options(("min_len", "max_len", "regex")))
        if word == "list":
            (element,) = self.arguments(1)
            return ListT(element, **self.options(("min_items", "max_items")))
        if word == "dict":
            return DictT(*self.arguments(2))
        if word == "optional":
            return OptionalT(*self.arguments(1))
        if word == "fallible":
            return FallibleT(*self.arguments(1))
        if word == "tuple":
            return TupleT(self.arguments(None))
        raise self.error(f"unknown type {word}")

    def arguments(self, count: int | None) -> tuple[Type, ...]:
        self.expect("<")
        found: list[Type] = []
        if not self.take(">"):
            found.append(self.type())
            while self.take(", "):
                found.append(self.type())
            self.expect(">")
        if count is not None and len(found) != count:
            raise self.error(f"expected {count} type arguments, found {len(found)}")
        return tuple(found)

    def options(self, allowed: tuple[str, ...]) -> dict[str, Any]:
        if not self.take(r"\("):
            return {}
        found: dict[str, Any] = {}
        while True:
            name = self.take(r"([a-z_]+)=")
            if not name or name[1] not in allowed or name[1] in found:
                raise self.error(f"expected one of {', '.join(allowed)}")
            found[name[1]] = self.json((_OPTION_TYPES[name[1]],))
            if not self.take(", "):
                self.expect(")")
                return found

    def json(self, kinds: tuple[type, ...]) -> Any:
        try:
            value, end = json.JSONDecoder().raw_decode(self.text, self.at)
        except ValueError:
            raise self.error("expected a JSON value") from None
        if type(value) not in kinds:
            raise self.error(f"expected {' or '.join(k.__name__ for k in kinds)}")
        self.at = end
        return value

    def take(self, pattern: str) -> re.Match[str] | None:
        match = re.compile(pattern).match(self.text, self.at)
        if match:
            self.at = match.end()
        return match

    def expect(self, text: str) -> None:
        if not self.take(re.escape(text)):
            raise self.error(f"expected `{text}`")

    def expect_end(self) -> None:
        if self.at != len(self.text):
            raise self.error("expected the end of the type")

    def error(self, message: str) -> TypeTextError:
        found = self.text[self.at : self.at + 20] or "the end"
        return TypeTextError(f"{message}, found `{found}`", self.at)


_LITERAL_STARTS = frozenset('"-0123456789')
