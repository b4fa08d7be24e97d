"""What the prompts of calls share: how much of each is computed before, and where and why the sharing of branches ends.

    … Judge only its| clarity
    … Judge only its| originality          214 tokens shared, up to `${d}` at judge.lmp:28:30

All prompts go into one tree of units, in program order; what a prompt finds there it shares with an earlier one.  A cache that
forgets nothing is taken for granted, as the engine's is while the pool has room.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lmc.diagnostics import Span
from lmc.runtime.forecast.prompts import Part, Segment, Unit, Written
from lmc.runtime.forecast.tree import Call, Group, calls_of
from lmc.runtime.forecast.values import Piece


@dataclass(frozen=True, slots=True)
class SharingEnd:
    """tokens: what all branches share, the known part; open: whether text that only the run knows is shared too; span, source: the
    piece that differs, None and empty where the branches share all they have"""

    tokens: int
    open: bool
    span: Span | None
    source: str


class PromptTree:
    """A tree of units in which neighbouring ones without a branch between them are one edge."""

    __slots__ = ("_root",)

    def __init__(self) -> None:
        self._root = _Node(())

    def insert(self, units: Sequence[Unit]) -> int:
        """Add a prompt; gives how many of its units were there."""
        node, place = self._root, 0
        while place < len(units):
            child = node.children.get(units[place])
            if child is None:
                node.children[units[place]] = _Node(tuple(units[place:]))
                return place
            first, length = units[place], common_length(child.units, units, place)
            place += length
            if length < len(child.units):
                node.children[first] = upper = child.split(length)
                if place < len(units):
                    upper.children[units[place]] = _Node(tuple(units[place:]))
                return place
            node = child
        return place


class _Node:
    __slots__ = ("units", "children")

    def __init__(self, units: tuple[Unit, ...]):
        self.units = units
        self.children: dict[Unit, _Node] = {}

    def split(self, length: int) -> _Node:
        """The upper part, of `length` units, with this node as its only child."""
        upper = _Node(self.units[:length])
        self.units = self.units[length:]
        upper.children[self.units[0]] = self
        return upper


def common_length(edge: Sequence[Unit], units: Sequence[Unit], start: int) -> int:
    """How many units of `edge` stand in `units` from `start` on."""
    most = min(len(edge), len(units) - start)
    # Nearly always all or none differ; comparing whole slices is fast.
    if tuple(edge[:most]) == tuple(units[start : start + most]):
        return most
    return next(i for i in range(most) if edge[i] != units[start + i])


@dataclass(frozen=True, slots=True)
class Sharing:
    """Of one call: `shared`, known tokens of its prompt that an earlier prompt begins with; `saved`, those that need no computing,
    over all its requests."""

    shared: int
    saved: int


def shared_tokens(calls: Iterable[Call]) -> list[Sharing]:
    """What each call shares with those before it.

    Each option of a choice is a request of its own, and of every prompt the last token is computed.
    """
    tree = PromptTree()
    found = []
    for call in calls:
        units = call.prompt.units
        length = tree.insert([*units, call.written])
        length = min(length, len(units))
        saved = _tokens(units[: min(length, len(units) - 1)]) if units else 0
        if call.prompt.options:
            saved += (len(call.prompt.options) - 1) * max(0, _tokens(units[:-1]))
        found.append(Sharing(_tokens(units[:length]), saved))
    return found


def sharing_end(group: Group) -> SharingEnd | None:
    """Where what the members of a group have in common ends, by the first call of each; None where there is nothing to compare."""
    members = [*group.members, *([group.twin] if group.twin is not None else [])]
    firsts = [call for member in members if (call := next(calls_of(member), None)) is not None]
    if len(firsts) < 2:
        return None
    first = firsts[0].prompt
    units = first.units
    ends = [(common_length(units, other.prompt.units, 0), other.prompt) for other in firsts[1:]]
    length, other = min(ends, key=lambda end: end[0])
    piece = _differing(first.parts, other.parts)
    gaps = not all(isinstance(unit, int) for unit in units[:length])
    span, source = (piece.span, piece.source) if piece is not None else (None, "")
    return SharingEnd(_tokens(units[:length]), gaps, span, source)


def _differing(first: tuple[Part, ...], second: tuple[Part, ...]) -> Piece | None:
    """The piece of the first prompt where the two part."""
    for one, other in zip(first, second):
        if one is other:
            continue
        if isinstance(one, Written) or isinstance(other, Written):
            return Piece(None, True, one.span if isinstance(one, Written) else None, "what a generation wrote")
        found = _differing_piece(one, other)
        if found is not None:
            return found
    return None


def _differing_piece(one: Segment, other: Segment) -> Piece | None:
    for a, b in zip(one.pieces, other.pieces):
        if not a.same(b):
            # Of text that one of them only has more of, the longer one tells the place.
            return a if a.span is not None else b
    more = one.pieces[len(other.pieces):] or other.pieces[len(one.pieces):]
    return more[0] if more else None


def _tokens(units: Sequence[Unit]) -> int:
    return sum(isinstance(unit, int) for unit in units)
