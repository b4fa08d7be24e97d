"""The smallest automaton with the same language.

States start in two sets, accepting and not; a set is split while the edges into some set tell its members apart.  Only edges that
exist are looked at, so the cost is about (edges) x log(edges), also for long chains such as `[^"]{0,1000}`.
Method: Valmari, "Fast brief practical DFA minimization", 2012.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def equivalent_states(count: int, accepting: Sequence[bool], edges: Sequence[tuple[int, int, int]]) -> list[int]:
    """For each of `count` states the number of its class; states of one class accept the same strings.

    edges: (state, label, target), at most one for a state and label; every state must reach an accepting one.
    """
    blocks = _Partition(count)
    blocks.split_off(state for state in range(count) if accepting[state])
    # Edges in sets of equal label: a set whose targets are one class tells sources apart from all others.
    order = sorted(range(len(edges)), key=lambda e: edges[e][1])
    cords = _Partition(len(edges))
    cords.start_with(order, [edges[e][1] for e in order])
    into: list[list[int]] = [[] for _ in range(count)]
    for number, (_, _, target) in enumerate(edges):
        into[target].append(number)
    done_blocks, done_cords = 1, 0
    while done_cords < cords.sets:
        blocks.split_off(edges[e][0] for e in cords.members(done_cords))
        done_cords += 1
        while done_blocks < blocks.sets:
            cords.split_off(e for state in blocks.members(done_blocks) for e in into[state])
            done_blocks += 1
    return blocks.set_of


class _Partition:
    """Elements 0 … n-1 in disjoint sets, each a stretch of one list, so that a set is split in time of the part moved."""

    __slots__ = ("elements", "place", "set_of", "first", "past", "sets")

    def __init__(self, count: int):
        self.elements = list(range(count))
        self.place = list(range(count))
        self.set_of = [0] * count
        self.first, self.past = [0], [count]
        self.sets = 1 if count else 0

    def start_with(self, order: list[int], labels: list[int]) -> None:
        """Take the elements in this order, a new set at each change of label."""
        self.elements = order
        self.first, self.past, self.sets = [], [], 0
        for at, element in enumerate(order):
            if at == 0 or labels[at] != labels[at - 1]:
                self.first.append(at)
                self.past.append(at)
                self.sets += 1
            self.place[element] = at
            self.set_of[element] = self.sets - 1
            self.past[-1] = at + 1

    def members(self, number: int) -> list[int]:
        return self.elements[self.first[number] : self.past[number]]

    def split_off(self, marked: Iterable[int]) -> None:
        """Part every set into its marked and its other elements; the smaller part becomes a new set."""
        counts: dict[int, int] = {}
        for element in marked:
            number, place = self.set_of[element], self.place[element]
            border = self.first[number] + counts.get(number, 0)
            if place < border:
                continue  # marked already
            other = self.elements[border]
            self.elements[border], self.elements[place] = element, other
            self.place[element], self.place[other] = border, place
            counts[number] = counts.get(number, 0) + 1
        for number, count in counts.items():
            self._part(number, count)

    def _part(self, number: int, count: int) -> None:
        first, past = self.first[number], self.past[number]
        border = first + count
        if border == past:
            return
        if count <= past - border:
            self.first[number] = border
            start, end = first, border
        else:
            self.past[number] = border
            start, end = border, past
        self.first.append(start)
        self.past.append(end)
        for at in range(start, end):
            self.set_of[self.elements[at]] = self.sets
        self.sets += 1
