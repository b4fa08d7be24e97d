"""Which tokens may come next: an automaton over bytes, seen through a vocabulary.

    constraint = TokenConstraint(compile_regex("yes|no"), TokenIndex([b"y", b"es", b"yes", b"n", b"no", b"nope"]))
    constraint.allowed(START)                # 0, 2, 4: `n` is not there, since no token would spell the `o` after it
    constraint.advance(START, b"y")          # a state from which only `es` is allowed

A state is alive where a path of tokens leads to acceptance; only tokens into living states are allowed, so that a generation that
follows the masks can always be completed.  Masks are made on first use and kept by state, in a store too where there is one.  This
file knows no end tokens.
"""

from __future__ import annotations

import math

import numpy as np

from lmc.diagnostics import Diagnostic, LmcError, Span
from lmc.regex.dfa import DEAD, START, ByteDfa
from lmc.runtime.mask_store import MaskStore
from lmc.runtime.token_index import ClassTrie, TokenIndex

__all__ = ["START", "TokenConstraint", "TokenIndex"]

# Bytes of masks that one constraint keeps; beyond, it begins anew.
_KEEP_BYTES = 64 << 20
# Masks for reopened bytes that one constraint keeps: few prompts end alike.
_KEEP_HEALING = 256
# Forced texts that one constraint keeps, and bytes of one: more than a draft ever takes.
_KEEP_FORCED, _LONGEST_FORCED = 1 << 14, 256
# States that `min_tokens` looks at, about 0.3 ms each; only a value that hardly fits needs the search.
_MAX_SEARCH = 3000


class TokenConstraint:
    """The masks of one automaton over one vocabulary.  `store`: where masks of earlier runs are, and those of this one go by `save`.

    Raises `LmcError` (E0642) where the vocabulary cannot spell any accepted text.
    """

    __slots__ = (
        "dfa", "index", "_alive", "_trie_made", "_masks", "_shared", "_kept_bytes", "_healing", "_fewest", "_some_way", "_cells",
        "_to_class", "_forced", "_store", "_stored", "__weakref__",
    )

    def __init__(self, dfa: ByteDfa, index: TokenIndex, store: MaskStore | None = None):
        self.dfa, self.index = dfa, index
        self._store = store
        # How many masks the store holds already; None before it was asked.
        self._stored: int | None = None if store else 0
        self._trie_made: ClassTrie | None = None
        self._masks: dict[int, np.ndarray] = {}
        # Equal masks of different states are one array: the bits of the mask -> its ids.
        self._shared: dict[bytes, np.ndarray] = {}
        self._kept_bytes = 0
        self._healing: dict[tuple[int, bytes], np.ndarray] = {}
        self._fewest: dict[int, int] = {}
        self._some_way: dict[int, float] = {}
        self._forced: dict[int, bytes] = {}
        # Stepping byte by byte reads single cells, which a memoryview does several times faster than numpy.
        self._cells = memoryview(np.ascontiguousarray(dfa.table))
        self._to_class = dfa.byte_class.tobytes()
        self._alive = self._living_states()
        if not self._alive[START]:
            message = f"the model's tokens cannot spell any text that matches {_short(dfa.source)}: none spells {_obstacle(dfa, index)}"
            raise LmcError(Diagnostic("E0642", message, None, help="allow other characters, or take a model with byte tokens"))

    def allowed(self, state: int, prefix: bytes = b"") -> np.ndarray:
        """Sorted ids (int64) of the tokens that first spell `prefix`, or a beginning of it, and then keep the state alive.

        The array is shared: do not write to it.
        """
        if prefix:
            key = (state, prefix)
            if key not in self._healing:
                if len(self._healing) >= _KEEP_HEALING:
                    self._healing.clear()
                self._healing[key] = self._allowed_healing(state, prefix)
            return self._healing[key]
        if state not in self._masks:
            self._masks[state] = self._mask(state)
        return self._masks[state]

    def advance(self, state: int, data: bytes) -> int:
        """The state after `data`; `DEAD` where no accepted text goes on like this."""
        cells = self._cells
        for number in data.translate(self._to_class):
            state = cells[state, number]
        return state if self._alive[state] else DEAD

    def accepting(self, state: int) -> bool:
        """Whether what was read up to here is a whole value."""
        return bool(self.dfa.accepting[state])

    def complete(self, state: int) -> bool:
        """Accepting, and no token leads on."""
        return self.accepting(state) and (self.dfa.complete(state) or not len(self.allowed(state)))

    def forced(self, state: int) -> bytes:
        """The bytes that must come next, up to the first state that accepts or has several ways on; at most `_LONGEST_FORCED`."""
        if state not in self._forced:
            if len(self._forced) >= _KEEP_FORCED:
                self._forced.clear()
            data, after = bytearray(), state
            while len(data) < _LONGEST_FORCED and (byte := self._only_byte(after)) is not None:
                data.append(byte)
                after = self._cells[after, self._to_class[byte]]
            self._forced[state] = bytes(data)
        return self._forced[state]

    def min_tokens(self, state: int = START, *, enough: int = 0) -> int:
        """The fewest tokens that lead from `state` to acceptance.

        Where a way of at most `enough` tokens is found at once, the answer is the length of that way, which need not be the
        shortest.  In an automaton with very many states the search is cut, and the answer is certainly not too high.
        """
        if state not in self._some_way:
            self._some_way[state] = self._greedy(state)
        if self._some_way[state] <= enough:
            return self._some_way[state]
        if state not in self._fewest:
            self._fewest[state] = self._search(state)
        return self._fewest[state]

    def save(self) -> None:
        """Put the masks into the store, where some are new."""
        if self._store is not None and len(self._masks) > (self._stored or 0):
            self._store.save(self.dfa, self._masks)
            self._stored = len(self._masks)

    @property
    def held_bytes(self) -> int:
        """Of the automaton and of the masks that are kept, about."""
        return self.dfa.table.nbytes + self._kept_bytes

    def _only_byte(self, state: int) -> int | None:
        """The byte that must come next, if no other may and the value cannot end."""
        if self.dfa.accepting[state]:
            return None
        classes = np.flatnonzero(self.dfa.table[state])
        if len(classes) != 1:
            return None
        bytes_of_class = np.flatnonzero(self.dfa.byte_class == classes[0])
        return int(bytes_of_class[0]) if len(bytes_of_class) == 1 else None

    @property
    def _trie(self) -> ClassTrie:
        if self._trie_made is None:
            self._trie_made = ClassTrie(self.index, self.dfa)
        return self._trie_made

    def _mask(self, state: int) -> np.ndarray:
        if self._stored is None:
            found = self._store.load(self.dfa)
            self._stored = len(found)
            self._masks.update(found)
            if state in found:
                return found[state]
        return self._make_mask(state)

    def _make_mask(self, state: int) -> np.ndarray:
        open_nodes = self._alive[self._trie.walk(state)]
        key = np.packbits(open_nodes).tobytes()
        if key not in self._shared:
            ids = self._trie.ids[open_nodes[self._trie.group]]
            if self._kept_bytes > _KEEP_BYTES:
                self._masks.clear()
                self._shared.clear()
                self._kept_bytes = self._stored = 0
            self._shared[key] = ids
            self._kept_bytes += ids.nbytes + len(key)
        return self._shared[key]

    def _allowed_healing(self, state: int, prefix: bytes) -> np.ndarray:
        if not self._alive[state]:
            return np.zeros(0, np.int64)
        # A token that spells only a beginning is good where another can spell on from there.
        parts = [self.index.exactly(prefix[:cut]) for cut in range(1, len(prefix)) if len(self.allowed(state, prefix[cut:]))]
        spelled = self.index.ids[self._alive[self.index.after_prefix(prefix, self.dfa, state)]]
        return np.sort(np.concatenate([*parts, spelled]))

    def _greedy(self, state: int) -> float:
        """The length of the way that comes as near to acceptance, in bytes, as each token can; infinite where it gets lost."""
        length, distance = 0, self._distances()
        while not self.dfa.accepting[state]:
            targets = self._successors(state)
            targets = targets[self._alive[targets]]
            nearest = int(targets[distance[targets].argmin()])
            if distance[nearest] >= distance[state]:
                return math.inf
            state, length = nearest, length + 1
        return length

    def _distances(self) -> np.ndarray:
        """(states,) int: bytes on the shortest way to acceptance."""
        states, classes = np.nonzero(self.dfa.table != DEAD)
        steps = np.unique(np.stack([states, self.dfa.table[states, classes]]), axis=1)
        sources = _by_target(self.dfa.states, steps[0], steps[1])
        distance = np.full(self.dfa.states, self.dfa.states)
        level = np.flatnonzero(self.dfa.accepting).tolist()
        distance[level] = 0
        for state in level:
            for source in sources[state]:
                if distance[source] == self.dfa.states:
                    distance[source] = distance[state] + 1
                    level.append(source)
        return distance

    def _search(self, start: int) -> int:
        """Breadth first; a level is what is reached by one more token."""
        seen, level, fewest, looked = {start}, [start], 0, 0
        while not any(self.dfa.accepting[state] for state in level):
            fewest += 1
            looked += len(level)
            if looked > _MAX_SEARCH:
                return fewest
            reached = {target for state in level for target in self._successors(state).tolist()}
            level = sorted(target for target in reached - seen if self._alive[target])
            assert level, "a living state leads to acceptance"
            seen |= reached
        return fewest

    def _successors(self, state: int) -> np.ndarray:
        """The states that one token leads to, living or not."""
        reached = np.zeros(self.dfa.states, bool)
        reached[self._trie.walk(state)[self._trie.with_token]] = True
        reached[DEAD] = False
        return np.flatnonzero(reached)

    def _living_states(self) -> np.ndarray:
        """(states,) bool: from where a path of tokens leads to acceptance.

        Bytes are nearly always tokens, and where each class of bytes has such a byte, what bytes can reach, tokens can.  Only
        states that need another class are looked at through the vocabulary.
        """
        spelled = np.zeros(self.dfa.table.shape[1], bool)
        spelled[self.dfa.byte_class[self.index.single_bytes]] = True
        if spelled[(self.dfa.table != DEAD).any(axis=0)].all():
            alive = np.ones(self.dfa.states, bool)
            alive[DEAD] = False
            return alive
        states, classes = np.nonzero((self.dfa.table != DEAD) & spelled)
        sources = _by_target(self.dfa.states, states, self.dfa.table[states, classes])
        alive = _reaching(self.dfa.accepting, sources)
        for state in range(START, self.dfa.states):
            if not alive[state]:
                for target in self._successors(state).tolist():
                    sources[target].append(state)
        return _reaching(alive, sources)


def too_few_tokens(fewest: int, most: int, span: Span | None = None) -> Diagnostic:
    """Of a value whose shortest form has `fewest` tokens where `most` may come."""
    message = f"the shortest value that the constraint allows has {fewest} tokens, {most} may be generated"
    return Diagnostic("E0641", message, span, help="raise `max_tokens` or shorten the prompt")


def _obstacle(dfa: ByteDfa, index: TokenIndex) -> str:
    """The character of the shortest accepted text that no tokens lead past."""
    data = _shortest_text(dfa)
    reached = [True] + [False] * len(data)
    for start in range(len(data)):
        if reached[start]:
            for end in range(start + 1, min(len(data), start + index.longest) + 1):
                reached[end] = reached[end] or len(index.exactly(data[start:end])) > 0
    stuck = max(place for place, yes in enumerate(reached) if yes)
    while 0x80 <= data[stuck] < 0xC0:
        stuck -= 1  # inside a character
    character = data[stuck:].decode()[0]
    code = f"U+{ord(character):04X}"
    return f"`{character}` ({code})" if character.isprintable() else code


def _shortest_text(dfa: ByteDfa) -> bytes:
    """Of the shortest accepted texts the first one in the order of bytes."""
    byte_of = [int(np.flatnonzero(dfa.byte_class == number)[0]) for number in range(dfa.table.shape[1])]
    texts, level = {START: b""}, [START]
    for state in level:
        if dfa.accepting[state]:
            return texts[state]
        for byte, target in sorted(zip(byte_of, dfa.table[state].tolist())):
            if target != DEAD and target not in texts:
                texts[target] = texts[state] + bytes([byte])
                level.append(target)
    raise AssertionError("an automaton without a text")


def _by_target(count: int, states: np.ndarray, targets: np.ndarray) -> list[list[int]]:
    sources: list[list[int]] = [[] for _ in range(count)]
    for state, target in zip(states.tolist(), targets.tolist()):
        sources[target].append(state)
    return sources


def _reaching(goals: np.ndarray, sources: list[list[int]]) -> np.ndarray:
    """Which states lead to one of the goals, along `sources[target]`."""
    reached = goals.copy()
    stack = np.flatnonzero(goals).tolist()
    while stack:
        for state in sources[stack.pop()]:
            if not reached[state]:
                reached[state] = True
                stack.append(state)
    return reached


def _short(source: str) -> str:
    return f"`{source}`" if len(source) <= 60 else f"`{source[:57]}…`"
