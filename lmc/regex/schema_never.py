"""Whether what one schema generates can fulfil another: what makes `oneOf` exact.

    never(reader, {"const": "a"}, {"const": "b"})     # True

The other schema is read as the standard does, with objects open and keys in any order, so the answer True is certain; False says
that it is not known.
"""

from __future__ import annotations

from lmc.regex.build import compile_node
from lmc.regex.product import disjoint
from lmc.regex.schema_flat import Flat, Part, canonical
from lmc.regex.schema_objects import closed, parts_of_key
from lmc.regex.schema_reader import Schemas
from lmc.regex.schema_scalars import interval, scalar_fits, string_contents, string_node, type_name
from lmc.regex.schema_values import value_fits

_MAX_DEPTH = 8


def never(reader: Schemas, made: Flat, other: Flat, depth: int) -> bool:
    """Whether certainly no text generated for `made` fulfils `other`."""
    if depth > _MAX_DEPTH:
        return False
    if made.values is not None:
        return _no_value(reader, made, other, made.values)
    if other.values is not None:
        return _no_value(reader, other, made, other.values)
    tests = {
        "string": lambda: _strings(made, other),
        "integer": lambda: _numbers(made, other),
        "number": lambda: _numbers(made, other),
        "array": lambda: _arrays(reader, made, other, depth),
        "object": lambda: _objects(reader, made, other, depth),
        "boolean": lambda: False,
        "null": lambda: False,
    }
    return all(tests[kind]() for kind in made.types & other.types)


def _no_value(reader: Schemas, listed: Flat, other: Flat, values: list) -> bool:
    known = None if other.values is None else {canonical(value) for value in other.values}
    contents, own = string_contents(other), string_contents(listed)
    for value in values:
        if known is not None and canonical(value) not in known or type_name(value) not in other.types & listed.types:
            continue
        if type_name(value) in ("array", "object"):
            if value_fits(reader, other, value) and value_fits(reader, listed, value):
                return False
        elif scalar_fits(value, other, contents) and scalar_fits(value, listed, own):
            return False
    return True


def _strings(made: Flat, other: Flat) -> bool:
    nodes = [string_node(made), string_node(other)]
    if None in nodes:
        return True
    return disjoint(compile_node(nodes[0], "made"), compile_node(nodes[1], "other"))


def _numbers(made: Flat, other: Flat) -> bool:
    for (low, _), (_, high) in ((interval(made), interval(other)), (interval(other), interval(made))):
        if low is not None and high is not None:
            if low.value > high.value or low.value == high.value and (low.strict or high.strict):
                return True
    return False


def _arrays(reader: Schemas, made: Flat, other: Flat, depth: int) -> bool:
    for a, b in ((made, other), (other, made)):
        if "maxItems" in a.limits and a.limits["maxItems"] < b.limits.get("minItems", 0):
            return True
    for place in range(int(made.limits.get("minItems", 0))):
        parts = [
            tuple(p for p in (r.prefix[place] if place < len(r.prefix) else r.rest for r in flat.arrays) if p is not None)
            for flat in (made, other)
        ]
        if _parts_never(reader, parts[0], parts[1], depth):
            return True
        if place > 8:
            break
    return False


def _objects(reader: Schemas, made: Flat, other: Flat, depth: int) -> bool:
    declared = {*made.properties, *made.required}
    if closed(made) and any(name not in declared for name in other.required):
        return True
    if "maxProperties" in other.limits and len(made.required) > other.limits["maxProperties"]:
        return True
    for name in made.required:
        if _parts_never(reader, parts_of_key(made, name), parts_of_key(other, name), depth):
            return True
    # A key that the other one requires, and has otherwise than it can be made here.
    return any(
        _parts_never(reader, parts_of_key(made, name), parts_of_key(other, name), depth) for name in other.required
        if name in declared
    )


def _parts_never(reader: Schemas, made: tuple[Part, ...], other: tuple[Part, ...], depth: int) -> bool:
    return all(
        never(reader, a, b, depth + 1) for a in reader.alternatives(made) for b in reader.alternatives(other)
    )

