"""Deterministic automata over bytes.

This file holds the data type; building one is `lmc.regex.build`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

#: State 0 is dead: no way out, not accepting.
DEAD = 0
#: State 1 is where matching starts.
START = 1


@dataclass(frozen=True, slots=True, eq=False)
class ByteDfa:
    """A minimal, trimmed automaton over UTF-8 bytes that matches whole strings.

    Every state but `DEAD` reaches an accepting one.

    `byte_class`: (256,) uint8, the class of each byte
    `table`: (states, classes) int32, the next state
    `accepting`: (states,) bool
    `source`: what it was made from, for people (a regex, or the text of a type)
    """

    byte_class: np.ndarray
    table: np.ndarray
    accepting: np.ndarray
    source: str

    @property
    def states(self) -> int:
        """How many states there are, the dead one included."""
        return self.table.shape[0]

    def step(self, state: int, data: bytes) -> int:
        """The state after `data`; `DEAD` where it leaves the language."""
        for byte in data:
            state = int(self.table[state, self.byte_class[byte]])
        return state

    def matches(self, data: bytes) -> bool:
        return bool(self.accepting[self.step(START, data)])

    def complete(self, state: int) -> bool:
        """Accepting, and no byte leads on."""
        return bool(self.accepting[state]) and not self.table[state].any()

    def digest(self) -> str:
        """32 hexadecimal digits that two automata share only where they are the same, state by state; `source` does not count."""
        data = hashlib.blake2b(digest_size=16)
        data.update(np.array(self.table.shape, "<i8").tobytes())
        for array, kind in ((self.byte_class, "<u1"), (self.table, "<i4"), (self.accepting, "<u1")):
            data.update(np.ascontiguousarray(array).astype(kind, copy=False).tobytes())
        return data.hexdigest()
