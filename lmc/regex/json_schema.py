"""JSON Schema to syntax trees: the part of it that a finite automaton holds.

    schema_node({"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}, "required": ["age"]})

Every text accepted fulfils the schema, in one of its spellings: an object that declares `properties` is closed unless it says
otherwise, its keys come in the order declared, values without a schema nest to a bounded depth.  A keyword is enforced or refused
with its path.  What stands where is `schema_flat.py`, strings and numbers are `schema_scalars.py`, arrays and objects
`schema_arrays.py`; docs/constraints.md has the whole list.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from lmc.regex import json_nodes
from lmc.regex.json_nodes import json_text
from lmc.regex.nodes import Chars, Node, Repeat, Words, alternate, concat, optional, text
from lmc.regex.schema_arrays import Marks, array_node, distinct_array, object_node
from lmc.regex.schema_flat import ALL_TYPES, NOT_REFERENCE, Flat, Group, Part, canonical, merge, own_flat, parts_of
from lmc.regex.schema_keywords import REFUSED, BeyondAutomata, SchemaError, shown, under
from lmc.regex.schema_never import never
from lmc.regex.schema_not import conditional, negated
from lmc.regex.schema_objects import members_of, others_of
from lmc.regex.schema_references import References, check_keywords
from lmc.regex.schema_scalars import number_node, scalar_fits, string_contents, string_node, type_name
from lmc.regex.schema_values import value_fits

__all__ = ["BeyondAutomata", "SchemaError", "schema_node"]

#: How deep arrays and objects nest in a value without a schema.
FREE_DEPTH = 4
_MAX_FREE_DEPTH = 6
# Alternatives of one value, nested schemas and members: more is a mistake or an attack.
_MAX_ALTERNATIVES = 400
_MAX_NESTING = 100
_DIGIT = Chars(((48, 57),))
# Values whose order in an array without repeats is remembered: a state for each set of them.
_MAX_DISTINCT = 8
_CONDITION = ("if", "then", "else")
# In a value without a schema a number may be long, as a string may: bounded digits would cost a state each, many times over.
_FREE_NUMBER = concat(
    optional(text("-")), alternate([text("0"), concat(Chars(((49, 57),)), Repeat(_DIGIT, 0, None))]),
    optional(concat(text("."), Repeat(_DIGIT, 1, None))),
)


def schema_node(schema: Any) -> Node:
    """The tree of all texts that fulfil the schema (see above).

    Raises `SchemaError`, and `BeyondAutomata` where the schema may be right but is more than an automaton holds.
    """
    reader = Reader(schema)
    check_keywords(schema, reader.references)
    node = reader.node(((schema, ""),))
    if node is None:
        raise SchemaError("", "no value fulfils it")
    return node


class Reader:
    """One schema document.  Nodes are made once for each schema, so that parts used often stay shared."""

    __slots__ = ("references", "marks", "depth", "_nodes", "_open", "_alternatives", "_kept", "_free")

    def __init__(self, document: Any):
        self.references = References(document)
        notes = document if isinstance(document, dict) else {}
        self.marks = Marks.of(spaced=_note(notes, "x-lmc-spaces", bool, False))
        self.depth = _note(notes, "x-lmc-depth", int, FREE_DEPTH)
        if not 0 <= self.depth <= _MAX_FREE_DEPTH:
            raise SchemaError("x-lmc-depth", f"expected 0 to {_MAX_FREE_DEPTH}, found {self.depth}")
        self._nodes: dict[tuple[int, ...], Node | None] = {}
        self._alternatives: dict[tuple[int, ...], list[Flat]] = {}
        self._open: list[tuple[int, ...]] = []
        # What was made here and is known by its id.
        self._kept: list[Any] = []
        self._free: dict[int, Node] = {}

    def node(self, parts: tuple[Part, ...]) -> Node | None:
        """The texts that fulfil all of some schemas; None where there are none."""
        key = self._key(parts)
        if key not in self._nodes:
            path = parts[0][1] if parts else ""
            if key in self._open:
                raise BeyondAutomata(path, "the schema contains itself, which no finite automaton holds")
            if len(self._open) > _MAX_NESTING:
                raise BeyondAutomata(path, f"more than {_MAX_NESTING} schemas inside one another")
            self._open.append(key)
            found = [self._value(flat, path) for flat in self.alternatives(parts)]
            nodes = [node for node in found if node is not None]
            self._nodes[key] = alternate(nodes) if nodes else None
            self._open.pop()
        return self._nodes[key]

    def alternatives(self, parts: tuple[Part, ...]) -> list[Flat]:
        """What may hold, each without choices in it; none where nothing fits."""
        key = self._key(parts)
        if key not in self._alternatives:
            self._alternatives[key] = self._chosen(self._together(parts))
        return self._alternatives[key]

    def free(self, depth: int) -> Node:
        """Any value that nests so deep."""
        if depth not in self._free:
            options: list[Node] = [json_nodes.string(), _FREE_NUMBER, Words(("true", "false", "null"))]
            if depth > 0:
                inner = self.free(depth - 1)
                member = concat(json_nodes.string(), self.marks.colon, inner)
                options += [node for node in (
                    array_node(lambda _: inner, 0, 0, None, self.marks), object_node([], member, 0, None, self.marks)) if node]
            self._free[depth] = alternate(options)
        return self._free[depth]

    def _key(self, parts: tuple[Part, ...]) -> tuple[int, ...]:
        self._kept.append(parts)
        # `true` and `false` are two objects only.
        return tuple(sorted({id(schema) for schema, _ in parts}))

    # ------------------------------------------------------------------ choices

    def _together(self, parts: tuple[Part, ...]) -> Flat:
        flat = Flat()
        for schema, path in parts:
            flat = merge(flat, self._flat(schema, path, ()))
        return flat

    def _flat(self, schema: Any, path: str, following: tuple[int, ...]) -> Flat:
        """One schema with what it refers to and all of `allOf`."""
        if schema is True:
            return Flat()
        if schema is False:
            return Flat(types=frozenset())
        if not isinstance(schema, dict):
            raise SchemaError(path, f"expected a schema, found {shown(schema)}")
        if id(schema) in following:
            raise SchemaError(path, "the schema refers to itself without anything between")
        following += (id(schema),)
        for name in schema:
            if name in REFUSED and not (name in _CONDITION and "if" in schema):
                raise BeyondAutomata(under(path, name), f"the keyword `{name}` is not supported")
        flat = own_flat(schema, path)
        if "$ref" in schema:
            place = under(path, "$ref")
            flat = merge(self._flat(self.references.find(schema["$ref"], place), place, following), flat)
        for inner, place in self._instead(schema, path):
            flat = merge(flat, self._flat(inner, place, following))
        for inner, place in parts_of(schema["allOf"], under(path, "allOf")) if "allOf" in schema else ():
            flat = merge(flat, self._flat(inner, place, following))
        return flat

    def _instead(self, schema: dict[str, Any], path: str) -> Iterator[Part]:
        """Schemas that say the same as `not` and `if`."""
        if "not" in schema:
            yield negated(schema["not"], under(path, "not")), under(path, "not")
        if NOT_REFERENCE in schema:
            place = under(path, "$ref")
            yield negated(self.references.find(schema[NOT_REFERENCE], place), place), place
        if "if" in schema:
            yield conditional(schema), under(path, "if")

    def _chosen(self, flat: Flat) -> list[Flat]:
        if not flat.types or flat.values == []:
            return []
        if not flat.groups:
            return [flat]
        group, flat.groups = flat.groups[0], flat.groups[1:]
        options = []
        for schema, path in group.options:
            option = self._flat(schema, path, ())
            options.append(self._chosen(merge(flat, option)))
            if sum(map(len, options)) > _MAX_ALTERNATIVES:
                raise BeyondAutomata(group.path, f"more than {_MAX_ALTERNATIVES} alternatives")
        if group.exclusive:
            self._check_exclusive(options, group)
        return [one for option in options for one in option]

    def _check_exclusive(self, options: list[list[Flat]], group: Group) -> None:
        for n, first in enumerate(options):
            for m, second in enumerate(options):
                if n != m and not all(never(self, a, b, 0) for a in first for b in second):
                    raise BeyondAutomata(group.path, f"the options {min(n, m)} and {max(n, m)} may both hold; use `anyOf`")

    # ------------------------------------------------------------------- values

    def _value(self, flat: Flat, path: str) -> Node | None:
        if flat.values is not None:
            return self._listed(flat)
        readers: dict[str, Callable[[], Node | None]] = {
            "string": lambda: string_node(flat),
            "integer": lambda: None if "number" in flat.types else number_node(flat, whole=True),
            "number": lambda: number_node(flat, whole=False),
            "boolean": lambda: Words(("true", "false")),
            "null": lambda: text("null"),
            "array": lambda: self._array(flat, path),
            "object": lambda: self._object(flat, path),
        }
        if flat.types == ALL_TYPES and flat == Flat():
            return self.free(self.depth)
        found = [readers[name]() for name in readers if name in flat.types]
        nodes = [node for node in found if node is not None]
        return alternate(nodes) if nodes else None

    def _listed(self, flat: Flat) -> Node | None:
        contents = string_contents(flat) if any(isinstance(value, str) for value in flat.values or ()) else []
        texts = []
        for value in flat.values or ():
            kind = type_name(value)
            if kind not in ("array", "object"):
                if scalar_fits(value, flat, contents):
                    texts.append(json_text(value))
            elif value_fits(self, flat, value):
                texts.append(json_text(value))
        return Words(tuple(texts)) if texts else None

    def _array(self, flat: Flat, path: str) -> Node | None:
        low, high = int(flat.limits.get("minItems", 0)), flat.limits.get("maxItems")
        high = None if high is None else int(high)
        prefix = max((len(rule.prefix) for rule in flat.arrays), default=0)

        def parts(place: int) -> tuple[Part, ...]:
            found = [rule.prefix[place] if place < len(rule.prefix) else rule.rest for rule in flat.arrays]
            return tuple(part for part in found if part is not None)

        if flat.unique and (high is None or high > 1):
            return self._distinct(parts(0), prefix, low, high, path)

        def element(place: int) -> Node | None:
            return self.node(parts(place)) if parts(place) else self.free(max(self.depth - 1, 0))

        return array_node(element, prefix, low, high, self.marks)

    def _distinct(self, parts: tuple[Part, ...], prefix: int, low: int, high: int | None, path: str) -> Node | None:
        options = self.alternatives(parts) if parts and not prefix else [Flat()]
        listed = [self._value(flat, path) if flat.values is not None else None for flat in options]
        words = {word for node in listed if isinstance(node, Words) for word in node.words}
        whole = all(isinstance(node, Words) or flat.values is not None for flat, node in zip(options, listed))
        if not whole or len(words) > _MAX_DISTINCT or len({canonical(json.loads(word)) for word in words}) < len(words):
            raise BeyondAutomata(under(path, "uniqueItems"), f"needs `items` with an `enum` of at most {_MAX_DISTINCT} values")
        return distinct_array(tuple(sorted(words)), low, len(words) if high is None else high, self.marks)

    def _object(self, flat: Flat, path: str) -> Node | None:
        members = members_of(self, flat)
        if members is None:
            return None
        others = others_of(self, flat)
        low, high = int(flat.limits.get("minProperties", 0)), flat.limits.get("maxProperties")
        if others is not None and low > max(1, len([m for m in members if m.required])):
            raise BeyondAutomata(under(path, "minProperties"), "further keys may repeat; declare the properties")
        return object_node(members, others, low, None if high is None else int(high), self.marks)




def _note(notes: dict[str, Any], name: str, kind: type, default: Any) -> Any:
    value = notes.get(name, default)
    if type(value) is not kind:
        raise SchemaError(name, f"expected {'true or false' if kind is bool else 'a whole number'}, found {shown(value)}")
    return value
