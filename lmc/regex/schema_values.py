"""Whether a listed value (`enum`, `const`) fulfils what stands beside the list, as the standard reads it.

    value_fits(reader, {"type": "object", "required": ["a"]}, {"b": 1})     # False
"""

from __future__ import annotations

from typing import Any

from lmc.regex.schema_flat import Flat, Part, canonical
from lmc.regex.schema_objects import parts_of_key
from lmc.regex.schema_reader import Schemas
from lmc.regex.schema_scalars import scalar_fits, string_contents, type_name


def value_fits(reader: Schemas, flat: Flat, value: Any) -> bool:
    """All of `flat` but its own list of values."""
    kind = type_name(value)
    if kind not in flat.types:
        return False
    if kind == "array":
        return _array_fits(reader, flat, value)
    if kind == "object":
        return _object_fits(reader, flat, value)
    return scalar_fits(value, flat, string_contents(flat) if kind == "string" else [])


def _array_fits(reader: Schemas, flat: Flat, value: list[Any]) -> bool:
    if not flat.limits.get("minItems", 0) <= len(value) <= flat.limits.get("maxItems", len(value)):
        return False
    if flat.unique and len({canonical(one) for one in value}) < len(value):
        return False
    for place, one in enumerate(value):
        parts = [rule.prefix[place] if place < len(rule.prefix) else rule.rest for rule in flat.arrays]
        if not _parts_fit(reader, tuple(part for part in parts if part is not None), one):
            return False
    return True


def _object_fits(reader: Schemas, flat: Flat, value: dict[str, Any]) -> bool:
    if not flat.limits.get("minProperties", 0) <= len(value) <= flat.limits.get("maxProperties", len(value)):
        return False
    if any(name not in value for name in flat.required):
        return False
    if not all(_parts_fit(reader, parts_of_key(flat, name), inner) for name, inner in value.items()):
        return False
    return all(_parts_fit(reader, tuple(flat.names), name) for name in value)


def _parts_fit(reader: Schemas, parts: tuple[Part, ...], value: Any) -> bool:
    for flat in reader.alternatives(parts) if parts else [Flat()]:
        listed = flat.values is None or canonical(value) in {canonical(one) for one in flat.values}
        if listed and value_fits(reader, flat, value):
            return True
    return False

