"""What the engine gives a model in one step, and what a model must do.

A step extends some requests by some tokens: prefill chunks, decoding and scoring are the same thing.

    row   tokens   slots                              start   outputs
    A     [7]      [40, 41, 42, 90]                   3       [0]          decoding: one new token at position 3
    B     [5, 9]   [40, 41, 91, 92]                   2       []           a prefill chunk behind a shared prefix
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    import torch


@dataclass(frozen=True, slots=True)
class Row:
    """Tokens of one request in this step.

    tokens: ids to compute, at positions `start`, `start + 1`, …
    start: how many positions before them are in the pool already
    slots: pool slots of positions `0 … start + len(tokens) - 1`; the keys and values of `tokens` go to the last ones.
        A slot may hold a token that another row of this same step computes: all keys and values of a layer are written before its
        attention reads.
    outputs: indexes into `tokens` whose logits are wanted
    few: for each output the sorted ids of which one will be drawn, or None where it may be any; the logits of other ids need not be
        computed and may be -inf.  Empty: None for all
    """

    tokens: list[int]
    start: int
    slots: list[int]
    outputs: list[int]
    few: Sequence[np.ndarray | None] = ()


class Model(Protocol):
    """A causal language model over a pool of key-value slots.  It owns the tensors of the pool; the engine owns which slot is whose."""

    vocab_size: int
    max_positions: int

    def allocate(self, slots: int) -> None:
        """Make room for the keys and values of `slots` tokens, once."""

    def slot_bytes(self) -> int:
        """Bytes of keys and values per slot."""

    def forward(self, rows: list[Row]) -> torch.Tensor:
        """Compute the rows' tokens.  Returns logits: (number of outputs over all rows in order, vocab) float32.

        A logit that `Row.few` asks for has the bits that it has where all are asked for."""


class Interrupted(Exception):
    """A forward pass was ended before its end; keys and values that it wrote are not to be used."""


@runtime_checkable
class Interruptible(Protocol):
    """A model whose forward pass can be ended between two layers."""

    def interrupt(self) -> None:
        """End the pass in progress, or else the next one, from any thread: `forward` raises `Interrupted`."""
