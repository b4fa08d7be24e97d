"""Strings and numbers of a schema as syntax trees, and whether a listed value fits what stands beside the list."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from lmc.regex import json_nodes
from lmc.regex.build import compile_node
from lmc.regex.decimals import Bound, decimal_range, multiples
from lmc.regex.dfa import ByteDfa
from lmc.regex.formats import FORMATS, INTEGER_FORMATS, NUMBER_FORMATS
from lmc.regex.json_nodes import json_text
from lmc.regex.nodes import Embedded, Node, Words
from lmc.regex.numbers import FLOAT, INT, int_range
from lmc.regex.parse import RegexError, parse_regex
from lmc.regex.product import difference, intersection
from lmc.regex.schema_flat import BOUNDS, Flat
from lmc.regex.schema_keywords import BeyondAutomata, SchemaError

# The bounds of a generated int (lmc.regex.numbers.INT), for a range that is open on one side.
_LEAST, _MOST = -(10**18) + 1, 10**18 - 1


def string_node(flat: Flat) -> Node | None:
    """None where no string fits."""
    low, high = flat.limits.get("minLength"), flat.limits.get("maxLength")
    if high is not None and (low or 0) > high:
        return None
    contents = string_contents(flat)
    try:
        return json_nodes.string_of(contents, low, high)
    except RegexError as error:
        if error.message == "nothing matches it":
            return None
        place = (flat.patterns or flat.formats or [("", "")])[0][1]
        raise SchemaError(place, error.message) from None


def string_contents(flat: Flat) -> list[ByteDfa]:
    """What patterns and formats allow between the quotes."""
    found = [_content(pattern, path) for pattern, path in flat.patterns]
    for avoided, path in flat.avoided:
        if isinstance(avoided, str):
            other = _content(avoided, path)
        else:
            other = compile_node(Words(tuple(json_text(value)[1:-1] for value in avoided)), "values")
        try:
            found.append(difference(compile_node(json_nodes.any_content(), "any"), other, f"not {other.source}"))
        except RegexError as error:
            raise SchemaError(path, error.message) from None
    for name, path in flat.formats:
        if name in FORMATS:
            found.append(json_nodes.content(FORMATS[name], search=False))
        elif name not in INTEGER_FORMATS and name not in NUMBER_FORMATS:
            raise SchemaError(path, f"the format {json_text(name)} is not supported; {', '.join(sorted(FORMATS))} are")
    return found


def _content(pattern: str, path: str) -> ByteDfa:
    try:
        # The standard's `pattern` is searched for, unlike a `regex=` of ours.
        return json_nodes.content(pattern, search=True)
    except RegexError as error:
        kind = SchemaError if error.message == "nothing matches it" else BeyondAutomata
        raise kind(path, error.message) from None


def number_node(flat: Flat, *, whole: bool) -> Node | None:
    """None where no number fits, or with `whole` no integer."""
    try:
        nodes = [_whole(flat) if whole else _decimal(flat)]
        if not whole and "integer" not in flat.types:
            nodes.append(parse_regex(r"-?[0-9]+\.[0-9]*[1-9][0-9]*"))
        for step, path in flat.steps:
            try:
                nodes.append(multiples(Decimal(str(step)), whole=whole))
            except RegexError as error:
                raise BeyondAutomata(path, error.message) from None
        if None in nodes:
            return None
        if len(nodes) == 1:
            return nodes[0]
        automata = [compile_node(node, "number") for node in nodes if node is not None]
        both = automata[0]
        for other in automata[1:]:
            both = intersection(both, other, "number")
        return Embedded(both)
    except BeyondAutomata:
        raise
    except RegexError as error:
        if error.message in ("nothing matches it", "no number lies between the bounds"):
            return None
        raise


def _whole(flat: Flat) -> Node | None:
    limits = flat.limits
    bounds = [INTEGER_FORMATS[name] for name, _ in flat.formats if name in INTEGER_FORMATS]
    if not bounds and not any(name in limits for name in BOUNDS):
        return INT
    low = max([math.ceil(limits.get("minimum", _LEAST)), *(low for low, _ in bounds)])
    high = min([math.floor(limits.get("maximum", _MOST)), *(high for _, high in bounds)])
    if "exclusiveMinimum" in limits:
        low = max(low, math.floor(limits["exclusiveMinimum"]) + 1)
    if "exclusiveMaximum" in limits:
        high = min(high, math.ceil(limits["exclusiveMaximum"]) - 1)
    return int_range(low, high) if low <= high else None


def _decimal(flat: Flat) -> Node:
    low, high = interval(flat)
    return FLOAT if low is None and high is None else decimal_range(low, high)


def interval(flat: Flat) -> tuple[Bound | None, Bound | None]:
    """The sharper of the two bounds on each side."""
    limits = {name: Decimal(str(flat.limits[name])) for name in BOUNDS if name in flat.limits}
    lows = [Bound(limits[n], n != "minimum") for n in ("minimum", "exclusiveMinimum") if n in limits]
    highs = [Bound(limits[n], n != "maximum") for n in ("maximum", "exclusiveMaximum") if n in limits]
    low = max(lows, key=lambda b: (b.value, b.strict), default=None)
    high = min(highs, key=lambda b: (b.value, not b.strict), default=None)
    return low, high


def type_name(value: Any) -> str:
    """The narrowest type of a value: 2.0 is an integer."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "integer" if value == int(value) else "number"
    return {str: "string", list: "array", dict: "object"}.get(type(value), "null")


def scalar_fits(value: Any, flat: Flat, contents: list[ByteDfa]) -> bool:
    """Whether a value that is no array and no object fulfils all but the list of values."""
    kind = type_name(value)
    if kind not in flat.types:
        return False
    if kind == "string":
        between = json_text(value)[1:-1].encode()
        low, high = flat.limits.get("minLength", 0), flat.limits.get("maxLength", math.inf)
        return low <= len(value) <= high and all(dfa.matches(between) for dfa in contents)
    if kind in ("integer", "number"):
        low_bound, high_bound = interval(flat)
        exact = Decimal(str(value))
        below = low_bound is not None and (exact < low_bound.value or low_bound.strict and exact == low_bound.value)
        above = high_bound is not None and (exact > high_bound.value or high_bound.strict and exact == high_bound.value)
        ranges = [INTEGER_FORMATS[name] for name, _ in flat.formats if name in INTEGER_FORMATS]
        return not below and not above and all(a <= exact <= b for a, b in ranges) and all(
            exact % Decimal(str(step)) == 0 for step, _ in flat.steps)
    return True
