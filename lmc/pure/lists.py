"""Builtins on lists, dicts and numbers.

    sorted_((3, 1, 2)) == (1, 2, 3)
    majority(("a", "b", "a")) == "a"
    top(("x", "y", "z"), (1, 3, 3), 2) == ("y", "z")

Text is `strings.py`, JSON is `json.py`.
"""

from __future__ import annotations

import builtins
import functools
import math
import re
from typing import Any

from lmc.pure.core import (
    PureError, bounded, expect_dict, expect_int, expect_key, expect_list, finite, is_int, is_number, kind_of, shown, whole,
)
from lmc.pure.operators import add, eq, gt, lt, truth
from lmc.values import text_of


def len_(value: Any) -> int:
    """Elements of a list or dict, characters of a str."""
    if isinstance(value, (str, tuple, dict)):
        return builtins.len(value)
    raise PureError("type", f"`len` takes a str, list or dict, found {kind_of(value)}")


def range_(first: Any, second: Any = None, step: Any = 1) -> tuple[int, ...]:
    """`range(stop)` or `range(start, stop, step)`, as a list."""
    start, stop = (0, first) if second is None else (first, second)
    for bound in (start, stop, step):
        expect_int(bound, "range")
    if step == 0:
        raise PureError("value", "the step of `range` cannot be 0")
    # Counted here: `len` of a Python range stops at 2**63.
    bounded(-((start - stop) // step) if step > 0 else -((stop - start) // -step), "the range")
    return tuple(builtins.range(start, stop, step))


def enumerate_(items: Any, start: Any = 0) -> tuple[tuple[int, Any], ...]:
    """Pairs of index and element."""
    return tuple(builtins.enumerate(expect_list(items, "enumerate"), expect_int(start, "enumerate")))


def zip_(*lists: Any) -> tuple[tuple[Any, ...], ...]:
    """Elements side by side, as many as the shortest list has."""
    return tuple(builtins.zip(*(expect_list(part, "zip") for part in lists)))


def min_(*values: Any) -> Any:
    """The smallest of a list, or of the arguments; the first of equals."""
    return functools.reduce(lambda best, x: x if lt(x, best) else best, _several("min", values))


def max_(*values: Any) -> Any:
    """The largest of a list, or of the arguments; the first of equals."""
    return functools.reduce(lambda best, x: x if gt(x, best) else best, _several("max", values))


def sum_(items: Any, start: Any = 0) -> Any:
    """All numbers of a list added up."""
    return functools.reduce(add, expect_list(items, "sum"), start)


def sorted_(items: Any, reverse: Any = False) -> tuple[Any, ...]:
    """The elements in ascending order (descending with `reverse`), equal ones in the order they had."""
    def compare(a: Any, b: Any) -> int:
        return -1 if lt(a, b) else 1 if lt(b, a) else 0

    return tuple(builtins.sorted(expect_list(items, "sorted"), key=functools.cmp_to_key(compare), reverse=truth(reverse)))


def abs_(value: Any) -> Any:
    """The number without its sign."""
    if is_number(value):
        return whole(builtins.abs(value)) if is_int(value) else builtins.abs(value)
    raise PureError("type", f"`abs` takes a number, found {kind_of(value)}")


def round_(value: Any, digits: Any = None) -> Any:
    """The nearest int, halves to the even one; with `digits`, rounded to that many decimals and of the number's own type."""
    if not is_number(value):
        raise PureError("type", f"`round` takes a number, found {kind_of(value)}")
    if digits is None:
        return whole(builtins.round(value))
    # Beyond these bounds rounding gives the number itself or 0; Python would build 10**digits.
    places = max(-400, min(400, expect_int(digits, "round")))
    result = builtins.round(value, places)
    return whole(result) if is_int(result) else finite(result)


def str_(value: Any = "") -> str:
    """The value as a prompt shows it; only str, int, float, bool and None have such a text (None is `None`)."""
    if value is None:
        return "None"
    if isinstance(value, (str, int, float)):
        return text_of(value)
    raise PureError("type", f"{kind_of(value)} has no text; use `json(x)`")


def int_(value: Any = 0) -> int:
    """A whole number: a float without its fraction, or decimal digits in a str with an optional sign and spaces around."""
    if isinstance(value, str):
        if re.fullmatch(r"\s*[+-]?[0-9]+\s*", value) is None:
            raise PureError("value", f"{shown(value)} is not an int")
        # Longer cannot fit, and Python refuses to read thousands of digits.
        return whole(int(value) if builtins.len(value.strip().lstrip("+-0")) < 30 else 2**64)
    if isinstance(value, (int, float)):
        return whole(math.trunc(value))
    raise PureError("type", f"`int` takes a str or number, found {kind_of(value)}")


def float_(value: Any = 0.0) -> float:
    """A number from decimal text, an int or a float."""
    if isinstance(value, str):
        if re.fullmatch(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*", value) is None:
            raise PureError("value", f"{shown(value)} is not a number")
        return finite(float(value))
    if isinstance(value, (int, float)):
        return float(value)
    raise PureError("type", f"`float` takes a str or number, found {kind_of(value)}")


def majority(items: Any) -> Any:
    """The most frequent element; of equally frequent ones the one that appears first."""
    distinct: list[Any] = []
    counts: list[int] = []
    for item in expect_list(items, "majority"):
        place = next((i for i, seen in builtins.enumerate(distinct) if eq(seen, item)), None)
        if place is None:
            distinct.append(item)
            counts.append(1)
        else:
            counts[place] += 1
    if not distinct:
        raise PureError("value", "`majority` of an empty list")
    return distinct[counts.index(builtins.max(counts))]


def argmax(items: Any) -> int:
    """The index of the largest element; of equals the first."""
    values = expect_list(items, "argmax")
    if not values:
        raise PureError("value", "`argmax` of an empty list")
    return functools.reduce(lambda best, i: i if gt(values[i], values[best]) else best, builtins.range(builtins.len(values)))


def top(items: Any, scores: Any, k: Any) -> tuple[Any, ...]:
    """The `k` elements with the highest scores, best first; of equal scores the one that stands first."""
    items, scores = expect_list(items, "top"), expect_list(scores, "top")
    if builtins.len(items) != builtins.len(scores):
        raise PureError("value", f"`top` takes a score for each element, found {len(items)} elements and {len(scores)} scores")
    if expect_int(k, "top") < 0:
        raise PureError("value", f"`top` takes a count, found {k}")
    best = sorted_(tuple(builtins.zip(scores, builtins.range(0, -builtins.len(scores), -1))), True)
    return tuple(items[-place] for _, place in best[:k])


def keys(value: Any) -> tuple[Any, ...]:
    """The keys of a dict, in the order they were set."""
    return tuple(expect_dict(value, "keys"))


def values(value: Any) -> tuple[Any, ...]:
    """The values of a dict, in the order of its keys."""
    return tuple(expect_dict(value, "values").values())


def items(value: Any) -> tuple[tuple[Any, Any], ...]:
    """Pairs of key and value."""
    return tuple(expect_dict(value, "items").items())


def get(value: Any, key: Any, default: Any = None) -> Any:
    """`value[key]`, or `default` where the dict has no such key."""
    return expect_dict(value, "get").get(expect_key(key), default)


def _several(function: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    if builtins.len(values) == 1:
        values = expect_list(values[0], function)
    if not values:
        raise PureError("value", f"`{function}` of an empty list")
    return values
