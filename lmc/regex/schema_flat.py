"""A schema without its joints: what `$ref`, `allOf` and siblings say together, in one record.

    {"allOf": [{"type": "number", "minimum": 1}, {"type": "integer", "minimum": 3}]}
        ->  Flat(types={"integer"}, limits={"minimum": 3})

Alternatives (`anyOf`, `oneOf`) are kept aside as groups, to be chosen from by the reader.  This file builds no automata.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from lmc.regex.schema_keywords import SchemaError, shown, under

#: A schema and where it stands.
Part = tuple[Any, str]

TYPES: dict[str, frozenset[str]] = {
    "string": frozenset({"string"}), "integer": frozenset({"integer"}), "number": frozenset({"integer", "number"}),
    "boolean": frozenset({"boolean"}), "null": frozenset({"null"}), "array": frozenset({"array"}), "object": frozenset({"object"}),
}
ALL_TYPES = frozenset().union(*TYPES.values())
COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


#: Keywords that only this package writes, where it takes `not` apart; no document may hold them.
NOT_PATTERN, NOT_VALUES, NOT_REFERENCE, NOT_TYPES = "$not-pattern", "$not-values", "$not-ref", "$not-types"


@dataclass(frozen=True, slots=True)
class ObjectRule:
    """What one schema says of keys: `additional` is for those neither among `names` nor matched by one of `patterns`."""

    names: frozenset[str]
    patterns: tuple[tuple[str, Part], ...]
    additional: Part | None


@dataclass(frozen=True, slots=True)
class ArrayRule:
    """What one schema says of elements: the first ones each, all others alike."""

    prefix: tuple[Part, ...]
    rest: Part | None


@dataclass(frozen=True, slots=True)
class Group:
    """A choice: some of the options hold, or exactly one."""

    options: tuple[Part, ...]
    exclusive: bool
    path: str


@dataclass(slots=True)
class Flat:
    """All that must hold together; `values` None: not listed."""

    types: frozenset[str] = ALL_TYPES
    values: list[Any] | None = None
    limits: dict[str, int | float] = field(default_factory=dict)
    steps: list[tuple[Any, str]] = field(default_factory=list)
    patterns: list[tuple[str, str]] = field(default_factory=list)
    formats: list[tuple[str, str]] = field(default_factory=list)
    #: Patterns that must not be found, and strings that the value must not be (`schema_not.py`).
    avoided: list[tuple[str | tuple[str, ...], str]] = field(default_factory=list)
    properties: dict[str, tuple[Part, ...]] = field(default_factory=dict)
    required: dict[str, None] = field(default_factory=dict)
    rules: list[ObjectRule] = field(default_factory=list)
    names: list[Part] = field(default_factory=list)
    arrays: list[ArrayRule] = field(default_factory=list)
    unique: bool = False
    groups: list[Group] = field(default_factory=list)


def canonical(value: Any) -> str:
    """Equal texts for values that JSON Schema holds equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{canonical(value[key])}" for key in sorted(value)) + "}"
    return json.dumps(value)


def merge(a: Flat, b: Flat) -> Flat:
    """Both together."""
    values = a.values if b.values is None else b.values if a.values is None else _common(a.values, b.values)
    limits = dict(a.limits)
    for name, limit in b.limits.items():
        least = name.startswith("min") or name == "exclusiveMinimum"
        limits[name] = limit if name not in limits else max(limits[name], limit) if least else min(limits[name], limit)
    properties = dict(a.properties)
    for name, parts in b.properties.items():
        known = properties.get(name, ())
        properties[name] = known + tuple(p for p in parts if all(p[0] is not k[0] for k in known))
    return Flat(
        a.types & b.types, values, limits, a.steps + b.steps, a.patterns + b.patterns, a.formats + b.formats,
        a.avoided + b.avoided, properties, a.required | b.required, a.rules + b.rules, a.names + b.names, a.arrays + b.arrays, a.unique or b.unique,
        a.groups + b.groups,
    )


def _common(a: list[Any], b: list[Any]) -> list[Any]:
    there = {canonical(value) for value in b}
    return [value for value in a if canonical(value) in there]


def own_flat(schema: dict[str, Any], path: str) -> Flat:
    """What the keywords of one schema say, `$ref` and `allOf` left out.  Raises `SchemaError` where one is malformed."""
    flat = Flat()
    if "type" in schema:
        flat.types = _types(schema["type"], under(path, "type"))
        if schema.get("nullable") is True:
            flat.types |= {"null"}
    if NOT_TYPES in schema:
        flat.types -= _types(schema[NOT_TYPES], path)
    if "enum" in schema:
        if not isinstance(schema["enum"], list) or not schema["enum"]:
            raise SchemaError(under(path, "enum"), "expected a list of values")
        flat.values = schema["enum"]
    if "const" in schema:
        flat.values = [schema["const"]] if flat.values is None else _common([schema["const"]], flat.values)
    _numbers(schema, path, flat)
    _strings(schema, path, flat)
    _objects(schema, path, flat)
    _arrays(schema, path, flat)
    for name in ("anyOf", "oneOf"):
        if name in schema:
            place = under(path, name)
            flat.groups.append(Group(parts_of(schema[name], place), name == "oneOf", place))
    return flat


def parts_of(schemas: Any, path: str) -> tuple[Part, ...]:
    if not isinstance(schemas, list) or not schemas:
        raise SchemaError(path, "expected a list of schemas")
    return tuple((schema, under(path, str(number))) for number, schema in enumerate(schemas))


def _types(kinds: Any, path: str) -> frozenset[str]:
    names = kinds if isinstance(kinds, list) else [kinds]
    for name in names:
        if not isinstance(name, str) or name not in TYPES:
            raise SchemaError(path, f"expected one of {', '.join(TYPES)}, found {shown(name)}")
    if not names:
        raise SchemaError(path, "expected the name of a type")
    return frozenset().union(*(TYPES[name] for name in names))


def _numbers(schema: dict[str, Any], path: str, flat: Flat) -> None:
    for name in COUNTS:
        if name in schema:
            value = _number(schema[name], under(path, name))
            if value < 0 or value != int(value):
                raise SchemaError(under(path, name), f"expected a count, found {shown(value)}")
            flat.limits[name] = int(value)
    for name in BOUNDS:
        # In draft 4 the exclusive ones were switches of the other two.
        if isinstance(schema.get(name), bool):
            other = "minimum" if name == "exclusiveMinimum" else "maximum"
            if schema[name] and other in flat.limits:
                flat.limits[name] = flat.limits.pop(other)
        elif name in schema:
            flat.limits[name] = _number(schema[name], under(path, name))
    if "multipleOf" in schema:
        place = under(path, "multipleOf")
        if _number(schema["multipleOf"], place) <= 0:
            raise SchemaError(place, f"expected a number above 0, found {shown(schema['multipleOf'])}")
        flat.steps.append((schema["multipleOf"], place))


def _number(value: Any, path: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value in (float("inf"), -float("inf")):
        raise SchemaError(path, f"expected a number, found {shown(value)}")
    return value


def _strings(schema: dict[str, Any], path: str, flat: Flat) -> None:
    for name, found in (("pattern", flat.patterns), ("format", flat.formats)):
        if name in schema:
            if not isinstance(schema[name], str):
                raise SchemaError(under(path, name), f"expected a {'regex' if name == 'pattern' else 'name'}")
            found.append((schema[name], under(path, name)))
    if NOT_PATTERN in schema:
        flat.avoided.append((schema[NOT_PATTERN], path))
    if NOT_VALUES in schema:
        flat.avoided.append((tuple(schema[NOT_VALUES]), path))


def _objects(schema: dict[str, Any], path: str, flat: Flat) -> None:
    properties, patterns = _mapping(schema, "properties", path), _mapping(schema, "patternProperties", path)
    flat.properties = {name: ((inner, under(path, f"properties.{name}")),) for name, inner in properties.items()}
    flat.required = dict.fromkeys(_names(schema.get("required", []), under(path, "required")))
    additional = None
    if "additionalProperties" in schema:
        additional = (schema["additionalProperties"], under(path, "additionalProperties"))
    if patterns or additional is not None:
        rules = tuple((pattern, (inner, under(path, f"patternProperties.{pattern}"))) for pattern, inner in patterns.items())
        flat.rules.append(ObjectRule(frozenset(properties), rules, additional))
    if "propertyNames" in schema:
        flat.names.append((schema["propertyNames"], under(path, "propertyNames")))
    for keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
        for name, wanted in _mapping(schema, keyword, path).items():
            place = under(path, f"{keyword}.{name}")
            then = {"required": [name, *_names(wanted, place)]} if isinstance(wanted, list) else {
                "allOf": [{"required": [name]}, wanted]}
            flat.groups.append(Group((({"properties": {name: False}}, place), (then, place)), False, place))


def _mapping(schema: dict[str, Any], name: str, path: str) -> dict[str, Any]:
    found = schema.get(name, {})
    if not isinstance(found, dict):
        raise SchemaError(under(path, name), f"expected an object, found {shown(found)}")
    return found


def _names(names: Any, path: str) -> list[str]:
    if isinstance(names, bool):
        return []  # draft 3 said of a property that it is required
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise SchemaError(path, f"expected a list of names, found {shown(names)}")
    return names


def _arrays(schema: dict[str, Any], path: str, flat: Flat) -> None:
    flat.unique = schema.get("uniqueItems") is True
    items, place = schema.get("items"), under(path, "items")
    prefix: tuple[Part, ...] = ()
    rest = (items, place) if "items" in schema else None
    if isinstance(items, list):
        # Up to draft 2019-09.
        prefix = parts_of(items, place) if items else ()
        more = schema.get("additionalItems")
        rest = None if more is None else (more, under(path, "additionalItems"))
    elif "prefixItems" in schema:
        prefix = parts_of(schema["prefixItems"], under(path, "prefixItems"))
    if prefix or rest is not None:
        flat.arrays.append(ArrayRule(prefix, rest))
