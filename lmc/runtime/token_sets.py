"""What the engine needs to know about all tokens of a model at once: which may never be drawn, which begin with a given byte.

A model's logits may be wider than its tokenizer (padding): those ids are never drawn either.  Built once per engine; this file knows
no generation and no automaton.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from lmc.runtime.constraint import TokenIndex


_NO_IDS = np.empty(0, np.int64)


class TokenTable(Protocol):
    """The part of a tokenizer that the engine reads.  `token_bytes[id]` is `b""` for a control token."""

    size: int
    token_bytes: Sequence[bytes]
    end_ids: frozenset[int]

    def encode(self, text: str) -> list[int]:
        """Ids of ordinary text.  Raises `ValueError` for text that the tokens cannot spell."""


class TokenSets:
    """`banned`: ids that a free generation never draws, (n,) int64; `banned_and_ends`: those and the end tokens; `ends`: (n,) int64;
    `width`: of the model's logits."""

    def __init__(self, tokens: TokenTable, width: int):
        assert tokens.size <= width, f"the tokenizer has {tokens.size} tokens, the model {width}"
        self.token_bytes = tokens.token_bytes
        self.end_ids = tokens.end_ids
        self.width = width
        silent = np.array([i for i in range(tokens.size) if not tokens.token_bytes[i]], dtype=np.int64)
        self.ends = np.array(sorted(tokens.end_ids), dtype=np.int64)
        self.banned = np.concatenate([np.setdiff1d(silent, self.ends), np.arange(tokens.size, width, dtype=np.int64)])
        self.banned_and_ends = np.union1d(self.banned, self.ends)

    @cached_property
    def index(self) -> TokenIndex:
        """For healing and constraints; takes a moment to build, so it is built when first needed."""
        return TokenIndex(self.token_bytes)

    def starting_with(self, first: bytes) -> np.ndarray:
        """Ids of all tokens that begin with this byte, ascending."""
        return self._by_first_byte.get(first[0], _NO_IDS)

    @cached_property
    def _by_first_byte(self) -> dict[int, np.ndarray]:
        groups: dict[int, list[int]] = {}
        for token, data in enumerate(self.token_bytes):
            if data:
                groups.setdefault(data[0], []).append(token)
        return {byte: np.array(ids, dtype=np.int64) for byte, ids in groups.items()}
