"""The list of pure functions, by the names that `pure.call` uses, and the one way to call them.

    call_pure("add", (1, 2)) == 3
    call_pure("sum", ((1, 2),), result=FLOAT) == 3.0
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lmc.pure import json_text, lists, operators, strings
from lmc.pure.core import Need, PureError, PureFunction, is_int
from lmc.types import FloatT, RecordT, Type, UnionT

# name: (function, least arguments, most arguments or None)
_PLAIN: dict[str, tuple[Callable[..., Any], int, int | None]] = {
    "add": (operators.add, 2, 2),
    "sub": (operators.sub, 2, 2),
    "mul": (operators.mul, 2, 2),
    "div": (operators.div, 2, 2),
    "floordiv": (operators.floordiv, 2, 2),
    "mod": (operators.mod, 2, 2),
    "pow": (operators.pow, 2, 2),
    "neg": (operators.neg, 1, 1),
    "pos": (operators.pos, 1, 1),
    "not": (operators.not_, 1, 1),
    "eq": (operators.eq, 2, 2),
    "ne": (operators.ne, 2, 2),
    "lt": (operators.lt, 2, 2),
    "le": (operators.le, 2, 2),
    "gt": (operators.gt, 2, 2),
    "ge": (operators.ge, 2, 2),
    "in": (operators.in_, 2, 2),
    "not_in": (operators.not_in, 2, 2),
    "index": (operators.index, 2, 2),
    "slice": (operators.slice_, 4, 4),
    "set_item": (operators.set_item, 3, 3),
    "flatten": (operators.flatten, 1, 1),
    "bool": (operators.truth, 1, 1),
    "len": (lists.len_, 1, 1),
    "range": (lists.range_, 1, 3),
    "enumerate": (lists.enumerate_, 1, 2),
    "zip": (lists.zip_, 0, None),
    "min": (lists.min_, 1, None),
    "max": (lists.max_, 1, None),
    "sum": (lists.sum_, 1, 2),
    "sorted": (lists.sorted_, 1, 2),
    "abs": (lists.abs_, 1, 1),
    "round": (lists.round_, 1, 2),
    "str": (lists.str_, 0, 1),
    "int": (lists.int_, 0, 1),
    "float": (lists.float_, 0, 1),
    "majority": (lists.majority, 1, 1),
    "argmax": (lists.argmax, 1, 1),
    "top": (lists.top, 3, 3),
    "keys": (lists.keys, 1, 1),
    "values": (lists.values, 1, 1),
    "items": (lists.items, 1, 1),
    "get": (lists.get, 2, 3),
    "strip": (strings.strip, 1, 2),
    "lstrip": (strings.lstrip, 1, 2),
    "rstrip": (strings.rstrip, 1, 2),
    "split": (strings.split, 1, 3),
    "splitlines": (strings.splitlines, 1, 1),
    "lower": (strings.lower, 1, 1),
    "upper": (strings.upper, 1, 1),
    "title": (strings.title, 1, 1),
    "startswith": (strings.startswith, 2, 2),
    "endswith": (strings.endswith, 2, 2),
    "replace": (strings.replace, 3, 4),
    "join": (strings.join, 2, 2),
    "find": (strings.find, 2, 4),
    "count": (strings.count, 2, 2),
    "removeprefix": (strings.removeprefix, 2, 2),
    "removesuffix": (strings.removesuffix, 2, 2),
    "bullets": (strings.bullets, 1, 1),
    "lines": (strings.lines, 1, 1),
    "findall": (strings.findall, 2, 2),
    "matches": (strings.matches, 2, 2),
}

_TYPED: dict[str, tuple[Callable[..., Any], int, int | None]] = {
    "json": (json_text.json_, 1, 2),
    "parse_json": (json_text.parse_json, 1, 1),
    "schema": (json_text.schema, 1, 1),
    "fields": (json_text.fields, 1, 1),
}

#: Every function that `pure.call` may name.
PURE: dict[str, PureFunction] = {
    **{name: PureFunction(name, *entry) for name, entry in _PLAIN.items()},
    **{name: PureFunction(name, *entry, typed=True) for name, entry in _TYPED.items()},
}


def call_pure(
    name: str, args: tuple[Any, ...], result: Type | None = None, named: Mapping[str, RecordT | UnionT] | None = None
) -> Any:
    """The result of the pure function `name`.

    `result` is the static type of the result: `parse_json` reads by it, and an int where a float is expected becomes one.
    `named` holds the program's records and unions, for arguments that are types.
    Raises `PureError`.
    """
    try:
        value = PURE[name].call(args, Need(result, named or {}))
    except RecursionError:
        raise PureError("value", f"`{name}`: the value is nested too deeply") from None
    return float(value) if isinstance(result, FloatT) and is_int(value) else value
