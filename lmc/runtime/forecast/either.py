"""A value that is one of two, where data decide which.

    "a" or "a"                          "a"
    "a" or "b"                          unknown
    [c1, "x"] or [c2, "x"]              [either context, "x"]
    ["a"] or []                         a list of at most one element
"""

from __future__ import annotations

from typing import Any

from lmc.runtime.forecast.prompts import Foreseen, Foreseer
from lmc.runtime.forecast.values import Cell, Text, Unknown, known, plain
from lmc.types import BOOL, FLOAT, INT, NONE, STR, DictT, ListT, NeverT, Type
from lmc.values import Record


def either_cells(foreseer: Foreseer, first: tuple[Cell, ...], second: tuple[Cell, ...]) -> tuple[Cell, ...]:
    """Each value of the first or each of the second."""
    return tuple(Cell(either_value(foreseer, a.value, b.value), a.varying or b.varying or a.value is not b.value,
                      max(a.ready, b.ready)) for a, b in zip(first, second, strict=True))


def either_value(foreseer: Foreseer, first: Any, second: Any) -> Any:
    """What is known of a value that is one of the two."""
    if first is second:
        return first
    if isinstance(first, Foreseen) and isinstance(second, Foreseen):
        return foreseer.either(first, second)
    first, second = plain(first, STR), plain(second, STR)
    if isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second):
        return tuple(either_value(foreseer, a, b) for a, b in zip(first, second))
    if isinstance(first, Record) and isinstance(second, Record) and first.type == second.type:
        return Record(first.type, tuple(either_value(foreseer, a, b) for a, b in zip(first.values, second.values)))
    if not isinstance(first, Foreseen) and known(first) and known(second) and type(first) is type(second) and first == second:
        return first
    return Unknown(_either_type(_type_of(first), _type_of(second)), None)


def _either_type(first: Type, second: Type) -> Type:
    """A type of both; of lists with the bounds of their lengths."""
    if not isinstance(first, ListT) or not isinstance(second, ListT):
        return first
    most = None if first.max_items is None or second.max_items is None else max(first.max_items, second.max_items)
    element = second.element if isinstance(first.element, NeverT) else first.element
    return ListT(element, min(first.min_items or 0, second.min_items or 0), most)


def _type_of(value: Any) -> Type:
    """A type of the value, for a value of it that is not known."""
    if isinstance(value, Unknown):
        return value.type
    if isinstance(value, Record):
        return value.type
    if isinstance(value, tuple):
        return ListT(_type_of(value[0]) if value else NeverT(), len(value), len(value))
    if isinstance(value, dict):
        return DictT(STR, STR)
    return {str: STR, Text: STR, bool: BOOL, int: INT, float: FLOAT}.get(type(value), NONE)
