"""What all pure functions share: their error, the form in which they are listed, and how they name what they found.

    plus = PureFunction("add", add)
    plus.call((1, 2), Need(result=INT))      # 3
    plus.call((1, "a"), Need())              # PureError("type", "`+` takes …, found an int and a str")

This file knows no single function.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lmc.types import RecordT, Type, UnionT
from lmc.values import Record, to_json

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
#: More elements or characters than this in one value is an error, not a machine that runs out of memory.
MAX_SIZE = 10_000_000


class PureError(Exception):
    """A pure function cannot give a result.  `kind` is one of `RunError.KINDS` (`index`, `key`, `value`, `type`)."""

    def __init__(self, kind: str, message: str):
        super().__init__(message)
        self.kind, self.message = kind, message


@dataclass(frozen=True, slots=True)
class Need:
    """What a call knows beyond its arguments: the result's static type, and the program's named types."""

    result: Type | None = None
    named: Mapping[str, RecordT | UnionT] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PureFunction:
    """A function of values.  `least` and `most` bound its arguments (None: any number); `typed` ones are also given a `Need`."""

    name: str
    function: Callable[..., Any]
    least: int
    most: int | None
    typed: bool = False

    @property
    def doc(self) -> str:
        return self.function.__doc__ or ""

    def call(self, args: tuple[Any, ...], need: Need) -> Any:
        if len(args) < self.least or self.most is not None and len(args) > self.most:
            raise PureError("type", f"`{self.name}` takes {self._arity()}, found {len(args)}")
        return self.function(*args, need=need) if self.typed else self.function(*args)

    def _arity(self) -> str:
        if self.most is None:
            return f"at least {self.least} arguments"
        if self.least == self.most:
            return f"{self.least} argument{'s' if self.least != 1 else ''}"
        return f"{self.least} to {self.most} arguments"


def kind_of(value: Any) -> str:
    """The value's type for a message: `an int`, `a list`, `a Verdict`."""
    if isinstance(value, Record):
        name = value.type.name.rpartition(".")[2]
        return f"an {name}" if name[0] in "AEIOU" else f"a {name}"
    names = {str: "a str", bool: "a bool", int: "an int", float: "a float", tuple: "a list", dict: "a dict", type(None): "None"}
    return names.get(type(value), "a context")


def shown(value: Any) -> str:
    """The value for a message, cut to one short line."""
    if isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False)
    elif isinstance(value, (Record, tuple, dict, int, float, type(None))):
        text = "None" if value is None else _json_or_kind(value)
    else:
        text = kind_of(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _json_or_kind(value: Any) -> str:
    try:
        return to_json(value)
    except TypeError:  # a list of contexts has no text
        return kind_of(value)


def is_int(value: Any) -> bool:
    """Whether the value is an int; a bool is not."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    return is_int(value) or isinstance(value, float)


def whole(value: int) -> int:
    """The int, which must fit in 64 bits with sign."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise PureError("value", "the result does not fit in a 64-bit int")


def finite(value: float) -> float:
    """The float, which must be a number: JSON and prompts have no infinity."""
    if math.isfinite(value):
        return value
    raise PureError("value", "the result is too large for a float")


def bounded(size: int, what: str) -> None:
    """Refuse to build a value of `size` elements or characters."""
    if size > MAX_SIZE:
        raise PureError("value", f"{what} would have {size:,} elements, more than {MAX_SIZE:,}")


def expect_str(value: Any, function: str) -> str:
    if isinstance(value, str):
        return value
    raise PureError("type", f"`{function}` takes a str, found {kind_of(value)}")


def expect_int(value: Any, function: str) -> int:
    if is_int(value):
        return value
    raise PureError("type", f"`{function}` takes an int, found {kind_of(value)}")


def expect_list(value: Any, function: str) -> tuple[Any, ...]:
    if isinstance(value, tuple):
        return value
    raise PureError("type", f"`{function}` takes a list, found {kind_of(value)}")


def expect_key(value: Any) -> Any:
    if isinstance(value, (str, int, float)):
        return value
    raise PureError("type", f"the keys of a dict are texts or numbers, found {kind_of(value)}")


def expect_dict(value: Any, function: str) -> dict[Any, Any]:
    if isinstance(value, dict):
        return value
    raise PureError("type", f"`{function}` takes a dict, found {kind_of(value)}")
