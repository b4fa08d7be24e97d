"""Operators: arithmetic, comparison, membership, index and slice, with Python's meaning on values.

    add(2, 3) == 5          add("a", "b") == "ab"        add((1,), (2,)) == (1, 2)
    div(7, 2) == 3.5        floordiv(-7, 2) == -4        index(("a", "b"), -1) == "b"

What differs from Python, on purpose: a bool is no number, ints have 64 bits, floats are finite; what goes over is an error.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from lmc.pure.core import (
    PureError, bounded, expect_int, expect_key, expect_list, finite, is_int, is_number, kind_of, shown, whole,
)
from lmc.values import Record


def add(a: Any, b: Any) -> Any:
    """`a + b`: numbers, strings, lists."""
    if isinstance(a, str) and isinstance(b, str) or isinstance(a, tuple) and isinstance(b, tuple):
        bounded(len(a) + len(b), "the result of `+`")
        return a + b
    return _arithmetic("+", operator.add, a, b, "two numbers, two strings or two lists")


def sub(a: Any, b: Any) -> Any:
    """`a - b`"""
    return _arithmetic("-", operator.sub, a, b)


def mul(a: Any, b: Any) -> Any:
    """`a * b`: numbers, or a string or list repeated."""
    if is_int(a) and isinstance(b, (str, tuple)):
        a, b = b, a
    if isinstance(a, (str, tuple)) and is_int(b):
        bounded(len(a) * b, "the result of `*`")
        return a * b
    return _arithmetic("*", operator.mul, a, b, "two numbers, or a string or list and an int")


def div(a: Any, b: Any) -> float:
    """`a / b`, always a float."""
    return _arithmetic("/", operator.truediv, a, b)


def floordiv(a: Any, b: Any) -> Any:
    """`a // b`, rounded down."""
    return _arithmetic("//", operator.floordiv, a, b)


def mod(a: Any, b: Any) -> Any:
    """`a % b`, with the sign of `b`."""
    if isinstance(a, str):
        raise PureError("type", "`%` takes two numbers, found a str; text is built with \"${…}\"")
    return _arithmetic("%", operator.mod, a, b)


def pow(a: Any, b: Any) -> Any:
    """`a ** b`; an int where both are ints and `b` is not negative, else a float."""
    if is_int(a) and is_int(b) and b >= 64 and abs(a) >= 2:
        whole(2**64)  # certainly too large: computing it could take for ever
    value = _arithmetic("**", operator.pow, a, b)
    if isinstance(value, complex):
        raise PureError("value", f"{shown(a)} ** {shown(b)} is not a real number")
    return value


def neg(a: Any) -> Any:
    """`-a`"""
    return sub(0, a) if is_int(a) else -_number("-", a)


def pos(a: Any) -> Any:
    """`+a`"""
    return _number("+", a)


def not_(a: Any) -> bool:
    """`not a`"""
    return not truth(a)


def truth(a: Any) -> bool:
    """Whether `a` counts as true: zero, empty and None do not."""
    return bool(a) if isinstance(a, (bool, int, float, str, tuple, dict, type(None))) else True


def eq(a: Any, b: Any) -> bool:
    """`a == b`; `True` and `1` differ."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(eq, a, b))
    if isinstance(a, Record) and isinstance(b, Record):
        return a.type == b.type and eq(a.values, b.values)
    if isinstance(a, dict) and isinstance(b, dict):
        return len(a) == len(b) and all(k in b and eq(v, b[k]) for k, v in a.items())
    return isinstance(a, bool) == isinstance(b, bool) and a == b


def ne(a: Any, b: Any) -> bool:
    """`a != b`"""
    return not eq(a, b)


def lt(a: Any, b: Any) -> bool:
    """`a < b`: numbers, strings, or lists of them."""
    return _ordered("<", operator.lt, a, b)


def le(a: Any, b: Any) -> bool:
    """`a <= b`"""
    return _ordered("<=", operator.le, a, b)


def gt(a: Any, b: Any) -> bool:
    """`a > b`"""
    return _ordered(">", operator.gt, a, b)


def ge(a: Any, b: Any) -> bool:
    """`a >= b`"""
    return _ordered(">=", operator.ge, a, b)


def in_(item: Any, container: Any) -> bool:
    """`item in container`: part of a string, element of a list, key of a dict."""
    if isinstance(container, str):
        if not isinstance(item, str):
            raise PureError("type", f"`in` looks for a str in a str, found {kind_of(item)}")
        return item in container
    if isinstance(container, tuple):
        return any(eq(item, element) for element in container)
    if isinstance(container, dict):
        return expect_key(item) in container
    raise PureError("type", f"`in` looks in a str, list or dict, found {kind_of(container)}")


def not_in(item: Any, container: Any) -> bool:
    """`item not in container`"""
    return not in_(item, container)


def index(value: Any, key: Any) -> Any:
    """`value[key]` of a list, string or dict; a negative index counts from the end."""
    if isinstance(value, dict):
        if expect_key(key) in value:
            return value[key]
        raise PureError("key", f"the dict has no key {shown(key)}; it has {_keys(value)}")
    return value[_position(value, key)]


def slice_(value: Any, start: Any, stop: Any, step: Any) -> Any:
    """`value[start:stop:step]`; what is left out is None."""
    if not isinstance(value, (str, tuple)):
        raise PureError("type", f"a slice is of a list or str, found {kind_of(value)}")
    bounds = [None if b is None else expect_int(b, "[:]") for b in (start, stop, step)]
    if bounds[2] == 0:
        raise PureError("value", "the step of a slice cannot be 0")
    return value[slice(*bounds)]


def set_item(value: Any, key: Any, item: Any) -> Any:
    """What `value[key] = item` makes of `value`: a new list or dict."""
    if isinstance(value, dict):
        return {**value, expect_key(key): item}
    if isinstance(value, tuple):
        place = _position(value, key)
        return value[:place] + (item,) + value[place + 1 :]
    raise PureError("type", f"only a list or dict takes `[…] = …`, found {kind_of(value)}")


def flatten(lists: Any) -> tuple[Any, ...]:
    """A list of lists as one list."""
    return tuple(element for part in expect_list(lists, "flatten") for element in expect_list(part, "flatten"))


def _position(value: Any, key: Any) -> int:
    if not isinstance(value, (str, tuple)):
        raise PureError("type", f"only a list, str or dict has elements, found {kind_of(value)}")
    place, count = expect_int(key, "[]"), len(value)
    if -count <= place < count:
        return place % count
    what = f"a list of {count} element" if isinstance(value, tuple) else f"a str of {count} character"
    raise PureError("index", f"index {place} is out of range for {what}{'s' if count != 1 else ''}")


def _keys(value: dict[Any, Any]) -> str:
    names = [shown(k) for k in value]
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "") if names else "no keys"


def _number(sign: str, a: Any) -> Any:
    if is_number(a):
        return a
    raise PureError("type", f"`{sign}` takes a number, found {kind_of(a)}")


def _arithmetic(sign: str, apply: Callable[[Any, Any], Any], a: Any, b: Any, wanted: str = "two numbers") -> Any:
    if not (is_number(a) and is_number(b)):
        raise PureError("type", f"`{sign}` takes {wanted}, found {kind_of(a)} and {kind_of(b)}")
    try:
        value = apply(a, b)
    except ZeroDivisionError:
        raise PureError("value", f"division by zero: {shown(a)} {sign} {shown(b)}") from None
    except OverflowError:
        raise PureError("value", "the result is too large for a float") from None
    if isinstance(value, complex):
        return value
    return whole(value) if isinstance(value, int) else finite(value)


def _ordered(sign: str, apply: Callable[[Any, Any], bool], a: Any, b: Any) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        for x, y in zip(a, b):
            if not eq(x, y):
                return _ordered(sign, apply, x, y)
        return apply(len(a), len(b))
    alike = is_number(a) and is_number(b) or type(a) is type(b) and isinstance(a, (str, bool))
    if not alike:
        raise PureError("type", f"`{sign}` cannot order {kind_of(a)} and {kind_of(b)}")
    return apply(a, b)
