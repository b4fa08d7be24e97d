"""The vocabulary as a trie of bytes, built once per tokenizer, and its collapse by an automaton's byte classes.

    tokens  a  ab  ac  b              collapsed where b and c are one class:
      root -a-> 1 -b-> 3                root -a-> 1 -[bc]-> 3   (tokens ab, ac)
        \\        \\-c-> 4                  \\-[bc]-> 2            (token b)
         -b-> 2

All states that an automaton can be in after each token are then one pass over few nodes, a level at a time.  Control tokens have
no bytes and are in no trie.  This file does not know which states are alive or accepting.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np

from lmc.regex.dfa import DEAD, ByteDfa


class TokenIndex:
    """`token_bytes[id]` are the bytes of a token, empty for control tokens."""

    __slots__ = ("size", "longest", "single_bytes", "ids", "node_of_id", "parent", "byte", "levels", "_sorted", "_order",
                 "_token_bytes")

    def __init__(self, token_bytes: Sequence[bytes]):
        self.size = len(token_bytes)
        self._token_bytes = token_bytes
        self.ids = np.array([i for i, data in enumerate(token_bytes) if data], np.int64)
        spelled = [token_bytes[i] for i in self.ids]
        self.longest = max(map(len, spelled), default=0)
        #: (256,) bool: which bytes are tokens by themselves.
        self.single_bytes = np.zeros(256, bool)
        self.single_bytes[[data[0] for data in spelled if len(data) == 1]] = True
        self._build(spelled)
        order = sorted(range(len(spelled)), key=spelled.__getitem__)
        self._sorted = [spelled[i] for i in order]
        self._order = np.array(order, np.int64)

    def digest(self) -> str:
        """32 hexadecimal digits that two vocabularies share only where each id has the same bytes."""
        data = hashlib.blake2b(digest_size=16)
        data.update(np.array([len(token) for token in self._token_bytes], "<i8").tobytes())
        data.update(b"".join(self._token_bytes))
        return data.hexdigest()

    def _build(self, spelled: list[bytes]) -> None:
        """Node 0 is the root; the nodes of a level stand together, `levels[d]` being the first of depth d + 1."""
        flat = np.frombuffer(b"".join(spelled), np.uint8).astype(np.int64)
        lengths = np.array([len(data) for data in spelled], np.int64)
        starts = np.cumsum(lengths) - lengths
        node = np.zeros(len(spelled), np.int64)
        parents, nodes, self.levels = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)], [1]
        for depth in range(self.longest):
            longer = np.flatnonzero(lengths > depth)
            keys, place = np.unique(node[longer] * 256 + flat[starts[longer] + depth], return_inverse=True)
            node[longer] = self.levels[-1] + place.reshape(-1)
            parents.append(keys // 256)
            nodes.append(keys % 256)
            self.levels.append(self.levels[-1] + len(keys))
        self.parent, self.byte = np.concatenate(parents), np.concatenate(nodes)
        self.node_of_id = node

    def heal_only(self, prefix: bytes) -> np.ndarray:
        """Sorted ids of the tokens that may come first where `prefix` must be spelled and anything may follow."""
        found = [self.exactly(prefix[:cut]) for cut in range(1, len(prefix)) if len(self.heal_only(prefix[cut:]))]
        first, past = self._beginning_with(prefix)
        return np.sort(np.concatenate([*found, self.ids[self._order[first:past]]]))

    def exactly(self, data: bytes) -> np.ndarray:
        """Ids of the tokens with these bytes."""
        return self.ids[self._order[bisect_left(self._sorted, data) : bisect_right(self._sorted, data)]]

    def after_prefix(self, prefix: bytes, dfa: ByteDfa, state: int) -> np.ndarray:
        """For each of `ids` the automaton's state after what follows `prefix` in the token, having been in `state` before it.

        `DEAD` for tokens that do not begin with `prefix`.
        """
        states = np.zeros(len(self.parent), np.int32)
        first, past = self._beginning_with(prefix)
        if first == past:
            return states[self.node_of_id]
        node = self.node_of_id[self._order[first]]
        for _ in range(len(self._sorted[first]) - len(prefix)):
            node = self.parent[node]
        states[node] = state
        # All other nodes of this level are dead, and so is all that hangs on them.
        for begin, end in zip(self.levels[len(prefix) :], self.levels[len(prefix) + 1 :]):
            level = dfa.table[states[self.parent[begin:end]], dfa.byte_class[self.byte[begin:end]]]
            if not level.any():
                break
            states[begin:end] = level
        return states[self.node_of_id]

    def _beginning_with(self, prefix: bytes) -> tuple[int, int]:
        # No token is longer than `longest`, so this bound is above all that begin with `prefix`.
        return bisect_left(self._sorted, prefix), bisect_right(self._sorted, prefix + b"\xff" * self.longest)


class ClassTrie:
    """The trie with equal (parent, byte class) merged, without what no state of the automaton can read.

    `ids` are the tokens left, ascending, `group` the node of each.
    """

    __slots__ = ("dfa", "ids", "group", "with_token", "_parent", "_class", "_levels")

    def __init__(self, index: TokenIndex, dfa: ByteDfa):
        self.dfa = dfa
        readable = (dfa.table != DEAD).any(axis=0)
        classes = dfa.byte_class.astype(np.int64)[index.byte]
        count = dfa.table.shape[1]
        # group -1: cannot be read
        group = np.full(len(index.byte), -1, np.int64)
        group[0] = 0
        parents, own, self._levels = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)], [1]
        for first, past in zip(index.levels, index.levels[1:]):
            above = group[index.parent[first:past]]
            kept = np.flatnonzero((above >= 0) & readable[classes[first:past]])
            if not len(kept):
                break
            keys, place = np.unique(above[kept] * count + classes[first:past][kept], return_inverse=True)
            group[first + kept] = self._levels[-1] + place.reshape(-1)
            parents.append(keys // count)
            own.append(keys % count)
            self._levels.append(self._levels[-1] + len(keys))
        self._parent, self._class = np.concatenate(parents), np.concatenate(own)
        token_group = group[index.node_of_id]
        left = token_group >= 0
        self.ids, self.group = index.ids[left], token_group[left]
        self.with_token = np.zeros(len(self._parent), bool)
        self.with_token[self.group] = True

    def walk(self, state: int) -> np.ndarray:
        """The automaton's state at each node, having been in `state` at the root.  (nodes,) int32"""
        states = np.zeros(len(self._parent), np.int32)
        states[0] = state
        for first, past in zip(self._levels, self._levels[1:]):
            level = self.dfa.table[states[self._parent[first:past]], self._class[first:past]]
            if not level.any():
                break
            states[first:past] = level
        return states
