"""The syntax tree that automata are built from: regexes, types and schemas all become these nodes.

    concat(text('"'), Repeat(ANY, 0, None), text('"'))      # any characters between quotes
    words(["yes", "no"])                                    # one of some strings
    Chars(((48, 57),))                                      # a digit

A node stands for a set of strings of Unicode code points; code points are ints and surrogates are in no set.  A node that stands
in two places is one object, and nodes are compared by identity, so that big trees stay cheap.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmc.regex.dfa import ByteDfa

#: Inclusive ranges of code points, ascending, with a gap between two.
Ranges = tuple[tuple[int, int], ...]

#: Every Unicode scalar value: UTF-8 cannot hold surrogates.
ALL_RANGES: Ranges = ((0, 0xD7FF), (0xE000, 0x10FFFF))


class Node:
    """Base of all nodes."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class Chars(Node):
    """One character of a set.  The empty set matches nothing."""

    ranges: Ranges


@dataclass(frozen=True, slots=True, eq=False)
class Words(Node):
    """One of some strings, which may be many; the empty string may be among them."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Concat(Node):
    """The parts one after another; no parts match the empty string."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Alternate(Node):
    """Any of the options, at least one."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Repeat(Node):
    """`node` from `low` to `high` times; `high` None: any number of times."""

    node: Node
    low: int
    high: int | None


class Edge(Enum):
    """The ends of the whole text: `^` and `$`."""

    START = "start"
    END = "end"


@dataclass(frozen=True, slots=True, eq=False)
class Anchor(Node):
    """The empty string, at one end of the text only."""

    edge: Edge


@dataclass(frozen=True, slots=True, eq=False)
class Embedded(Node):
    """What a finished automaton accepts."""

    dfa: ByteDfa


EMPTY = Concat(())
ANY = Chars(ALL_RANGES)


def text(value: str) -> Node:
    """Exactly this string."""
    return Words((value,))


def concat(*parts: Node) -> Node:
    return parts[0] if len(parts) == 1 else Concat(parts)


def alternate(options: Iterable[Node]) -> Node:
    """Any of the options; single strings among them are gathered, so that thousands of words stay cheap."""
    rest: list[Node] = []
    single: list[str] = []
    for option in options:
        if isinstance(option, Words):
            single += option.words
        else:
            rest.append(option)
    if single:
        rest.append(Words(tuple(dict.fromkeys(single))))
    return rest[0] if len(rest) == 1 else Alternate(tuple(rest))


def optional(node: Node) -> Node:
    return Repeat(node, 0, 1)


def normalise(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The same code points as ascending ranges without overlap, surrogates left out."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return intersect(tuple(merged), ALL_RANGES)


def intersect(a: Ranges, b: Ranges) -> Ranges:
    """Code points in both."""
    found: list[tuple[int, int]] = []
    i = j = 0
    while i < len(a) and j < len(b):
        low, high = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if low <= high:
            found.append((low, high))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return tuple(found)


def complement(ranges: Ranges) -> Ranges:
    """Every other code point."""
    found: list[tuple[int, int]] = []
    start = 0
    for low, high in ranges:
        if start < low:
            found.append((start, low - 1))
        start = high + 1
    if start <= 0x10FFFF:
        found.append((start, 0x10FFFF))
    return intersect(tuple(found), ALL_RANGES)
