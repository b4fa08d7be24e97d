"""JSON Schema to syntax trees: the part of it that a finite automaton holds and that this version enforces.

    schema_node({"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}, "required": ["age"]})

An object is closed unless `additionalProperties` says otherwise, and its keys come in the order of `properties`: every text
accepted fulfils the schema, in one of its spellings.  A keyword that is not enforced is refused with its path; annotations say
nothing about the text and are passed over.  A `pattern` is read in the dialect of `lmc.regex.parse`, where `\\s` means ASCII.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lmc.regex import json_nodes
from lmc.regex.json_nodes import json_text
from lmc.regex.nodes import Node, Words, alternate, text
from lmc.regex.numbers import FLOAT, INT, int_range
from lmc.regex.parse import RegexError

_ANNOTATIONS = frozenset({
    "title", "description", "default", "examples", "$schema", "$id", "$comment", "$defs", "definitions", "deprecated", "readOnly",
    "writeOnly",
})
# The bounds of a generated int (lmc.regex.numbers.INT), for a range that is open on one side.
_LEAST, _MOST = -(10**18) + 1, 10**18 - 1


class SchemaError(RegexError):
    """The schema is wrong or asks for what is not supported; `path` leads to the place (`properties.age.minimum`)."""

    def __init__(self, path: str, message: str):
        super().__init__(f"at `{path}`: {message}" if path else message, 0)
        self.path = path


def schema_node(schema: Any) -> Node:
    """The tree of all compact texts that fulfil the schema (see above).  Raises `SchemaError`."""
    return _Reader(schema).node(schema, "")


class _Reader:
    """One schema document; `open_refs` are the references that are being followed."""

    __slots__ = ("document", "open_refs")

    def __init__(self, document: Any):
        self.document = document
        self.open_refs: list[str] = []

    def node(self, schema: Any, path: str) -> Node:
        if not isinstance(schema, dict):
            raise SchemaError(path, f"expected a schema, found {json_text(schema)[:40]}")
        keywords = {name: value for name, value in schema.items() if name not in _ANNOTATIONS}
        for name, read in (("$ref", self.reference), ("anyOf", self.any_of), ("const", self.const), ("enum", self.enum)):
            if name in keywords:
                self.only(keywords, {name, "type"} if name in ("const", "enum") else {name}, path, f"beside `{name}`")
                return read(keywords, _under(path, name))
        if "type" not in keywords:
            self.only(keywords, set(), path, "without a `type`")
            raise SchemaError(path, "a schema without `type` allows any value, which is not supported")
        return self.typed(keywords, path)

    def reference(self, keywords: dict[str, Any], path: str) -> Node:
        target = keywords["$ref"]
        if not isinstance(target, str) or not target.startswith("#"):
            raise SchemaError(path, f"only references inside the document are supported, found {json_text(target)}")
        if target in self.open_refs:
            raise SchemaError(path, f"{target} refers to itself, which is not supported")
        found = self.document
        for step in target[1:].split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or step not in found:
                raise SchemaError(path, f"there is no {target}")
            found = found[step]
        self.open_refs.append(target)
        node = self.node(found, target)
        self.open_refs.pop()
        return node

    def any_of(self, keywords: dict[str, Any], path: str) -> Node:
        options = keywords["anyOf"]
        if not isinstance(options, list) or not options:
            raise SchemaError(path, "expected a list of schemas")
        return alternate([self.node(option, _under(path, str(n))) for n, option in enumerate(options)])

    def const(self, keywords: dict[str, Any], path: str) -> Node:
        return self.values([keywords["const"]], keywords.get("type"), path)

    def enum(self, keywords: dict[str, Any], path: str) -> Node:
        if not isinstance(keywords["enum"], list) or not keywords["enum"]:
            raise SchemaError(path, "expected a list of values")
        return self.values(keywords["enum"], keywords.get("type"), path)

    def values(self, values: list[Any], kinds: Any, path: str) -> Node:
        if kinds is not None:
            names = self.type_names(kinds, path)
            values = [value for value in values if any(_PREDICATES[name](value) for name in names)]
        if not values:
            raise SchemaError(path, "no value has the `type` beside it")
        return Words(tuple(json_text(value) for value in values))

    def typed(self, keywords: dict[str, Any], path: str) -> Node:
        names = self.type_names(keywords["type"], _under(path, "type"))
        allowed = set().union(*(_KEYWORDS[name] for name in names))
        self.only(keywords, allowed | {"type"}, path, f"for type {' or '.join(names)}")
        readers: dict[str, Callable[[], Node]] = {
            "string": lambda: self.string(keywords, path),
            "integer": lambda: self.integer(keywords, path),
            "number": lambda: FLOAT,
            "boolean": lambda: Words(("true", "false")),
            "null": lambda: text("null"),
            "array": lambda: self.array(keywords, path),
            "object": lambda: self.object(keywords, path),
        }
        return alternate([readers[name]() for name in names])

    def type_names(self, kinds: Any, path: str) -> list[str]:
        names = kinds if isinstance(kinds, list) else [kinds]
        for name in names:
            if not isinstance(name, str) or name not in _KEYWORDS:
                raise SchemaError(path, f"expected one of {', '.join(_KEYWORDS)}, found {json_text(name)}")
        if not names:
            raise SchemaError(path, "expected the name of a type")
        return names

    def string(self, keywords: dict[str, Any], path: str) -> Node:
        pattern = keywords.get("pattern")
        if pattern is not None and not isinstance(pattern, str):
            raise SchemaError(_under(path, "pattern"), "expected a regex")
        low, high = self.count(keywords, "minLength", path), self.count(keywords, "maxLength", path)
        try:
            # The standard's `pattern` is searched for, unlike a `regex=` of ours.
            return json_nodes.string(low, high, pattern, search=True)
        except RegexError as error:
            raise SchemaError(_under(path, "pattern") if pattern is not None else path, error.message) from None

    def integer(self, keywords: dict[str, Any], path: str) -> Node:
        bounds = {name: self.bound(keywords, name, path) for name in _KEYWORDS["integer"] if name in keywords}
        if not bounds:
            return INT
        low = max(bounds.get("minimum", _LEAST), bounds.get("exclusiveMinimum", _LEAST - 1) + 1)
        high = min(bounds.get("maximum", _MOST), bounds.get("exclusiveMaximum", _MOST + 1) - 1)
        if low > high:
            raise SchemaError(path, "no integer lies between the bounds")
        return int_range(low, high)

    def bound(self, keywords: dict[str, Any], name: str, path: str) -> int:
        value = keywords[name]
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise SchemaError(_under(path, name), f"expected a whole number, found {json_text(value)}")
        return value

    def array(self, keywords: dict[str, Any], path: str) -> Node:
        if "items" not in keywords:
            raise SchemaError(path, "an array without `items` allows any elements, which is not supported")
        low, high = self.count(keywords, "minItems", path), self.count(keywords, "maxItems", path)
        element = self.node(keywords["items"], _under(path, "items"))
        try:
            return json_nodes.array(element, low, high)
        except RegexError as error:
            raise SchemaError(path, error.message) from None

    def count(self, keywords: dict[str, Any], name: str, path: str) -> int | None:
        if name not in keywords:
            return None
        value = self.bound(keywords, name, path)
        if value < 0:
            raise SchemaError(_under(path, name), f"expected a count, found {value}")
        return value

    def object(self, keywords: dict[str, Any], path: str) -> Node:
        properties, required = keywords.get("properties", {}), keywords.get("required", [])
        others = keywords.get("additionalProperties", False)
        if not isinstance(properties, dict) or not isinstance(required, list):
            raise SchemaError(path, "expected `properties` to be an object and `required` a list")
        unknown = [name for name in required if name not in properties]
        if unknown:
            raise SchemaError(_under(path, "required"), f"{json_text(unknown[0])} is not in `properties`")
        if others is not False:
            return self.open_object(properties, others, path)
        fields = [
            (json_text(name) + ":", self.node(value, _under(path, f"properties.{name}")), name in required)
            for name, value in properties.items()
        ]
        return json_nodes.partial_record(fields)

    def open_object(self, properties: dict[str, Any], others: Any, path: str) -> Node:
        place = _under(path, "additionalProperties")
        if others is True:
            raise SchemaError(place, "properties of any name and value are not supported; write false")
        if properties:
            raise SchemaError(place, "a schema for further properties beside `properties` is not supported; write false")
        return json_nodes.mapping(json_nodes.string(), self.node(others, place))

    def only(self, keywords: dict[str, Any], allowed: set[str], path: str, where: str) -> None:
        for name in keywords:
            if name not in allowed:
                raise SchemaError(_under(path, name), f"the keyword `{name}` is not supported {where}")


_KEYWORDS: dict[str, frozenset[str]] = {
    "string": frozenset({"minLength", "maxLength", "pattern"}),
    "integer": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}),
    "number": frozenset(),
    "boolean": frozenset(),
    "null": frozenset(),
    "array": frozenset({"items", "minItems", "maxItems"}),
    "object": frozenset({"properties", "required", "additionalProperties"}),
}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_PREDICATES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: _is_number(value) and float(value).is_integer(),
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def _under(path: str, step: str) -> str:
    return f"{path}.{step}" if path else step
