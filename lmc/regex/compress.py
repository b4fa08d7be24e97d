"""Forced runs of an automaton: stretches where the text can go one way only.

    compress(compile_regex("ab(c|d)ef"))

        1 --ab--> 3 --c|d--> 4 --ef--> 6          runs: 1 "ab" 3, 4 "ef" 6; 6 states become 4

A state is forced where it is not accepting and exactly one byte leads on.  A run goes from a forced state over forced states to
the first that is not; so nothing inside a run is accepting, and where several ways meet inside one, each has its own run up to
there.  Runs are bytes: they may begin or end inside a character of several bytes, where the others of it are not forced.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from lmc.regex.dfa import DEAD, START, ByteDfa


@dataclass(frozen=True, slots=True)
class Run:
    """From `start`, only `text` can come, which leads to `end`."""

    start: int
    text: bytes
    end: int


@dataclass(frozen=True, slots=True)
class Compressed:
    """`runs` by where they start: in `START`, or where a state that is not forced leads.  `forced`: (states,) bool."""

    dfa: ByteDfa
    forced: np.ndarray
    runs: tuple[Run, ...]

    @property
    def states(self) -> int:
        """States that are left, the dead one not counted: those not forced, and those that a run starts from."""
        return int((~self.forced[START:]).sum()) + len(self.runs)

    @property
    def shortest(self) -> bytes:
        """The shortest accepted text, the first in byte order of those."""
        return _shortest(self.dfa)

    def forced_bytes(self, data: bytes) -> int:
        """How many bytes of an accepted text are forced where they stand."""
        state, count = START, 0
        for byte in data:
            count += bool(self.forced[state])
            state = self.dfa.step(state, bytes([byte]))
        return count


def compress(dfa: ByteDfa) -> Compressed:
    """All forced runs.  A circle of forced states cannot be: every state reaches an accepting one."""
    rows = dfa.table[:, dfa.byte_class]
    forced = ((rows != DEAD).sum(axis=1) == 1) & ~dfa.accepting
    byte_of = (rows != DEAD).argmax(axis=1)
    starts = {START} | set(rows[~forced].reshape(-1).tolist())
    runs = []
    for start in sorted(starts):
        if not forced[start]:
            continue
        state, data = start, bytearray()
        while forced[state]:
            byte = int(byte_of[state])
            data.append(byte)
            state = int(rows[state, byte])
        runs.append(Run(start, bytes(data), state))
    return Compressed(dfa, forced, tuple(runs))


def _shortest(dfa: ByteDfa) -> bytes:
    rows = dfa.table[:, dfa.byte_class]
    before: dict[int, tuple[int, int]] = {}
    queue = deque([START])
    state = START
    while queue:
        state = queue.popleft()
        if dfa.accepting[state]:
            break
        for byte in np.flatnonzero(rows[state]).tolist():
            target = int(rows[state, byte])
            if target != START and target not in before:
                before[target] = (state, byte)
                queue.append(target)
    data = bytearray()
    while state != START:
        state, byte = before[state]
        data.append(byte)
    return bytes(reversed(data))
