"""Syntax trees to nondeterministic automata over bytes.

    Nfa.of(words(["ab", "cb"]))

        start --a--> * --b--> final        states are built from the end and shared where what follows is the same,
              --c-->                       so `ab|cb` has one `b` (and 5,000 words share their endings)

A state has either byte edges, or free moves to other states, or an anchor.  This file does not determinise.
"""

from __future__ import annotations

import numpy as np

from lmc.regex.dfa import START, ByteDfa
from lmc.regex.nodes import Alternate, Anchor, Chars, Concat, Edge, Embedded, Node, Ranges, Repeat, Words
from lmc.regex.parse import RegexError
from lmc.regex.utf8 import Sequence, byte_sequences

#: One way out of a state: bytes from `low` to `high` lead to `target`.
ByteEdge = tuple[int, int, int]

FINAL = 0
# A larger automaton would pass every later limit too; this keeps `(x{1,999}){1,999}` from being built first.
MAX_STATES = 120_000


class Nfa:
    """For each state s, `edges[s]` are its byte edges, `free[s]` its free moves, `anchors[s]` its anchor, if any.

    It begins in `start` and accepts in `FINAL`.
    """

    __slots__ = ("edges", "free", "anchors", "start", "_shared", "_built")

    def __init__(self) -> None:
        self.edges: list[tuple[ByteEdge, ...]] = [()]
        self.free: list[tuple[int, ...]] = [()]
        self.anchors: dict[int, Edge] = {}
        self.start = FINAL
        self._shared: dict[object, int] = {}
        # (id of a node or the ranges of a class, what follows) -> where it begins
        self._built: dict[object, int] = {}

    @classmethod
    def of(cls, node: Node) -> Nfa:
        """The automaton of a tree.  Raises `RegexError` where it grows too large."""
        nfa = cls()
        nfa.start = nfa._build(node, FINAL)
        return nfa

    def _build(self, node: Node, after: int) -> int:
        """The state from which `node` and then `after` is matched."""
        key = (id(node), after)
        if key not in self._built:
            self._built[key] = self._build_new(node, after)
        return self._built[key]

    def _build_new(self, node: Node, after: int) -> int:
        match node:
            case Chars(ranges):
                return self._chars(ranges, after)
            case Words(words):
                return self._words(words, after)
            case Concat(parts):
                for part in reversed(parts):
                    after = self._build(part, after)
                return after
            case Alternate(options):
                return self._split(tuple(self._build(option, after) for option in options))
            case Repeat(inner, low, high):
                return self._repeat(inner, low, high, after)
            case Anchor(edge):
                state = self._split((after,), key=(edge, after))
                self.anchors[state] = edge
                return state
            case Embedded(dfa):
                return self._embed(dfa, after)
        raise AssertionError(node)

    def _chars(self, ranges: Ranges, after: int) -> int:
        key = (ranges, after)
        if key not in self._built:
            self._built[key] = self._sequences(byte_sequences(ranges), after)
        return self._built[key]

    def _sequences(self, sequences: tuple[Sequence, ...], after: int) -> int:
        # Sequences with the same first range stand side by side.
        grouped: dict[tuple[int, int], list[Sequence]] = {}
        for sequence in sequences:
            grouped.setdefault(sequence[0], []).append(sequence[1:])
        edges = [
            (low, high, self._sequences(tuple(rests), after) if rests[0] else after) for (low, high), rests in grouped.items()
        ]
        return self._bytes(tuple(edges))

    def _words(self, words: tuple[str, ...], after: int) -> int:
        """A trie, each node shared once all that follows it is known: words in order, so that is when the next word leaves it."""
        pending: list[tuple[list[ByteEdge], bool]] = [([], False)]
        previous = b""
        for word in sorted(word.encode() for word in words):
            common = 0
            while common < min(len(word), len(previous)) and word[common] == previous[common]:
                common += 1
            self._close(pending, previous, common, after)
            pending += [([], False) for _ in range(len(word) - common)]
            pending[-1] = (pending[-1][0], True)
            previous = word
        self._close(pending, previous, 0, after)
        return self._trie_state(*pending[0], after)

    def _close(self, pending: list[tuple[list[ByteEdge], bool]], word: bytes, depth: int, after: int) -> None:
        while len(pending) - 1 > depth:
            state = self._trie_state(*pending.pop(), after)
            byte = word[len(pending) - 1]
            pending[-1][0].append((byte, byte, state))

    def _trie_state(self, edges: list[ByteEdge], ends: bool, after: int) -> int:
        if not edges and ends:
            return after
        state = self._bytes(tuple(edges))
        return self._split((state, after)) if ends else state

    def _repeat(self, node: Node, low: int, high: int | None, after: int) -> int:
        entry = after
        if high is None:
            loop = self._new()
            entry = self._build(node, loop)
            self.free[loop] = (entry, after)
            if low == 0:
                return loop
            low -= 1
        else:
            for _ in range(high - low):
                entry = self._split((self._build(node, entry), after))
        for _ in range(low):
            entry = self._build(node, entry)
        return entry

    def _embed(self, dfa: ByteDfa, after: int) -> int:
        outer = {state: self._new() for state in range(START, dfa.states)}
        rows = dfa.table[:, dfa.byte_class]
        for state, outside in outer.items():
            row = rows[state]
            starts = [0, *(np.flatnonzero(row[1:] != row[:-1]) + 1).tolist()]
            ends = [*(s - 1 for s in starts[1:]), 255]
            edges = tuple((low, high, outer[int(row[low])]) for low, high in zip(starts, ends) if row[low])
            inside = self._bytes(edges)
            self.free[outside] = (inside, after) if dfa.accepting[state] else (inside,)
        return outer[START]

    def _bytes(self, edges: tuple[ByteEdge, ...]) -> int:
        if edges not in self._shared:
            self._shared[edges] = self._new()
            self.edges[self._shared[edges]] = edges
        return self._shared[edges]

    def _split(self, targets: tuple[int, ...], key: object = None) -> int:
        if len(targets) == 1 and key is None:
            return targets[0]
        key = key or ("split", targets)
        if key not in self._shared:
            self._shared[key] = self._new()
            self.free[self._shared[key]] = targets
        return self._shared[key]

    def _new(self) -> int:
        if len(self.edges) >= MAX_STATES:
            raise RegexError("the automaton is too large; lower the counts in it", 0)
        self.edges.append(())
        self.free.append(())
        return len(self.edges) - 1
