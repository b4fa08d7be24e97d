"""Arrays and objects of a schema as syntax trees: elements by place, members in order, the others behind them.

    {"a":1,"c":true,"other":null}      declared members in their order, those that may be missing left out; then further ones

That the keys of the further members differ is more than a finite automaton can tell: where one comes twice, the last counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lmc.regex.nodes import EMPTY, Node, Repeat, Words, alternate, concat, optional, text


@dataclass(frozen=True, slots=True)
class Marks:
    """The signs between values; with one blank behind them where that is allowed."""

    comma: Node
    colon: Node

    @classmethod
    def of(cls, *, spaced: bool) -> Marks:
        return cls(Words((",", ", ")), Words((":", ": "))) if spaced else cls(text(","), text(":"))


@dataclass(frozen=True, slots=True)
class Member:
    """A declared member, its key and colon included."""

    node: Node
    required: bool


def array_node(element: Callable[[int], Node | None], prefix: int, low: int, high: int | None, marks: Marks) -> Node | None:
    """An array of `low` to `high` elements; `element(i)` is that of a place below `prefix`, `element(prefix)` of all later ones."""
    nodes: list[Node] = []
    for place in range(prefix + 1):
        node = element(place) if high is None or place < high else None
        if node is None:
            high = place if high is None else min(high, place)
            break
        nodes.append(node)
    if high is not None and low > high:
        return None
    after: Node = EMPTY
    if len(nodes) > prefix:
        most = None if high is None else high - prefix
        more = concat(marks.comma, nodes[prefix])
        after = Repeat(more, max(low - prefix, 0), most)
        if prefix == 0:
            rest = Repeat(more, max(low - 1, 0), None if most is None else most - 1)
            after = concat(nodes[0], rest) if low else optional(concat(nodes[0], rest))
    for place in reversed(range(min(prefix, len(nodes)))):
        item = concat(nodes[place], after) if place == 0 else concat(marks.comma, nodes[place], after)
        after = item if place < low else optional(item)
    return concat(text("["), after, text("]"))


def distinct_array(words: tuple[str, ...], low: int, high: int, marks: Marks) -> Node | None:
    """An array of different ones of a few texts, in any order."""
    made: dict[frozenset[str], Node] = {}

    def after(used: frozenset[str]) -> Node:
        if used not in made:
            options: list[Node] = [EMPTY] if len(used) >= low else []
            if len(used) < high:
                comma = [marks.comma] if used else []
                options += [concat(*comma, text(word), after(used | {word})) for word in words if word not in used]
            made[used] = alternate(options)
        return made[used]

    return concat(text("["), after(frozenset()), text("]")) if low <= min(high, len(words)) else None


def object_node(members: list[Member], others: Node | None, low: int, high: int | None, marks: Marks) -> Node | None:
    """An object of `low` to `high` members: the declared ones in order, then any number of `others`."""
    least = sum(member.required for member in members)
    if high is not None and high < max(low, least) or others is None and low > len(members):
        return None
    if low <= least and (high is None or others is None and high >= len(members)):
        return _uncounted(members, others, marks)
    return _counted(members, others, low, high, marks)


def _uncounted(members: list[Member], others: Node | None, marks: Marks) -> Node:
    tail = [] if others is None else [Repeat(concat(marks.comma, others), 0, None)]
    later = [
        concat(marks.comma, member.node) if member.required else optional(concat(marks.comma, member.node)) for member in members
    ]
    first = next((number for number, member in enumerate(members) if member.required), None)
    if first is not None:
        # Before the first member that is certain, each brings the comma behind it; after it, the comma before it.
        earlier = [optional(concat(member.node, marks.comma)) for member in members[:first]]
        return concat(text("{"), *earlier, members[first].node, *later[first + 1 :], *tail, text("}"))
    bodies = [concat(member.node, *later[number + 1 :], *tail) for number, member in enumerate(members)]
    if others is not None:
        bodies.append(concat(others, *tail))
    return concat(text("{"), alternate([*bodies, EMPTY]), text("}"))


def _counted(members: list[Member], others: Node | None, low: int, high: int | None, marks: Marks) -> Node | None:
    made: dict[tuple[int, int], Node | None] = {}
    more = None if others is None else concat(marks.comma, others)

    def behind(place: int, count: int) -> Node | None:
        """What follows once `count` members are there and those before `place` are done."""
        key = (place, count)
        if key not in made:
            made[key] = end(count) if place == len(members) else new(place, count)
        return made[key]

    def new(place: int, count: int) -> Node | None:
        member, options = members[place], []
        rest = behind(place + 1, count + 1) if high is None or count < high else None
        if rest is not None:
            options.append(concat(marks.comma, member.node, rest) if count else concat(member.node, rest))
        without = None if member.required else behind(place + 1, count)
        if without is not None:
            options.append(without)
        return alternate(options) if options else None

    def end(count: int) -> Node | None:
        fewest, most = max(low - count, 0), None if high is None else high - count
        if others is None or most == 0:
            return EMPTY if fewest == 0 else None
        if count:
            return Repeat(more, fewest, most)
        tail = concat(others, Repeat(more, max(fewest - 1, 0), None if most is None else most - 1))
        return tail if fewest else optional(tail)

    body = behind(0, 0)
    return None if body is None else concat(text("{"), body, text("}"))
