"""Taking JSON data apart without trusting it: every field is named, typed and used up.

    fields = Fields(data, "a function")
    name = fields.take("name", str)
    fields.end()                         # raises BadData where a field is left that this version does not know
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class BadData(ValueError):
    """The data are not what a compiled program holds; the message says what was found."""


class Fields:
    """A JSON object that is being read."""

    __slots__ = ("left", "what")

    def __init__(self, data: Any, what: str):
        if not isinstance(data, dict):
            raise BadData(f"{what} that is no object")
        self.left, self.what = dict(data), what

    def take(self, name: str, *kinds: type) -> Any:
        """The field, of one of the kinds (`bool` is no `int`)."""
        if name not in self.left:
            raise BadData(f"{self.what} without `{name}`")
        value = self.left.pop(name)
        if type(value) not in kinds:
            raise BadData(f"{self.what} whose `{name}` is a {type(value).__name__}")
        return value

    def each(self, name: str, read: Callable[[Any], T]) -> tuple[T, ...]:
        """The elements of a list, read one by one."""
        return tuple(read(item) for item in self.take(name, list))

    def end(self) -> None:
        if self.left:
            raise BadData(f"{self.what} with the unknown field `{min(self.left)}`")


def text(data: Any) -> str:
    """An element that is a string."""
    if not isinstance(data, str):
        raise BadData("a list of strings that holds something else")
    return data


def count(data: Any) -> int:
    """An element that is a whole number from 0 on."""
    if type(data) is not int or data < 0:
        raise BadData("a list of numbers that holds something else")
    return data
