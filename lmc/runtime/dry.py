"""Models without weights, for `lmc run --dry` and for tests.

They keep token and position in the slots where a real model keeps keys and values, and answer from the sequence that they read back
through a row's slots.  So a fault of pool, tree or scheduler is a failed assertion or a different answer.

    slot       0    1    2    3    4
    token      you  are  a    big  man
    position   0    1    2    3    3           a row with the slots [0, 1, 2, 4] reads "you are a man"

`DryModel` writes common words and ends after a few dozen tokens; `ScriptedModel` writes what a test wants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch

from lmc.runtime.batch import Row
from lmc.runtime.dry_text import DRY_POSITIONS, DryTokenizer, dry_tokenizer
from lmc.runtime.token_sets import TokenTable

__all__ = ["DryModel", "DryTokenizer", "ScriptedModel", "answers", "dry_tokenizer"]


class SlotModel:
    """A model whose logits are a function of the token ids alone; see `logits_of`."""

    def __init__(self, vocab_size: int, max_positions: int):
        self.vocab_size = vocab_size
        self.max_positions = max_positions
        self._tokens = self._positions = np.empty(0, np.int64)

    def allocate(self, slots: int) -> None:
        self._tokens = np.zeros(slots, np.int64)
        # No row has this position, so reading a slot that was never written fails.
        self._positions = np.full(slots, self.max_positions, np.int64)

    def slot_bytes(self) -> int:
        return self._tokens.itemsize + self._positions.itemsize

    def forward(self, rows: list[Row]) -> torch.Tensor:
        """Returns logits: (outputs, vocab) float32."""
        for row in rows:
            end = row.start + len(row.tokens)
            assert row.tokens and end == len(row.slots) <= self.max_positions, (row.start, len(row.tokens), len(row.slots))
            own = np.array(row.slots[row.start :])
            self._tokens[own] = row.tokens
            self._positions[own] = np.arange(row.start, end)
        outputs = [self.logits_of(ids[: row.start + i + 1]) for row in rows for ids in [self._read(row)] for i in row.outputs]
        return torch.from_numpy(np.stack(outputs)) if outputs else torch.empty(0, self.vocab_size)

    def logits_of(self, ids: np.ndarray) -> np.ndarray:
        """ids: (positions,) int64 -> (vocab,) float32, for the token that comes next."""
        raise TypeError("a SlotModel is made by a class that says what its logits are")

    def _read(self, row: Row) -> np.ndarray:
        slots = np.array(row.slots)
        wrong = np.flatnonzero(self._positions[slots] != np.arange(len(slots)))
        assert not len(wrong), f"slot {slots[wrong[0]]} holds position {self._positions[slots[wrong[0]]]}, expected {wrong[0]}"
        return self._tokens[slots]


class DryModel(SlotModel):
    """Writes plausible words that depend on every token before them; an end token becomes likelier with each token of a turn."""

    def __init__(self, tokens: TokenTable | None = None, *, max_positions: int = DRY_POSITIONS):
        tokens = tokens or dry_tokenizer()
        super().__init__(tokens.size, max_positions)
        self._taste = np.array([_taste(data) for data in tokens.token_bytes], np.float32)
        self._control = np.array([not data for data in tokens.token_bytes])
        self._ends = np.array(sorted(tokens.end_ids), np.int64)
        self._all = np.arange(tokens.size, dtype=np.uint64)

    def logits_of(self, ids: np.ndarray) -> np.ndarray:
        places = np.arange(len(ids), dtype=np.uint64)
        whole = _mix(ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + places * np.uint64(0xD1B54A32D192ED03)).sum(dtype=np.uint64)
        noise = (_mix(self._all * np.uint64(0xA0761D6478BD642F) + whole) >> np.uint64(40)).astype(np.float32) / np.float32(2**24)
        logits = self._taste + np.float32(_NOISE) * noise
        controls = np.flatnonzero(self._control[ids])
        turn = len(ids) - (int(controls[-1]) if len(controls) else 0)
        logits[self._ends] += np.float32(_END_WITHIN * (turn % _TURN) / _TURN)
        return logits


class ScriptedModel(SlotModel):
    """Logits as `script` gives them: token ids so far -> logit of each id that is not 0."""

    def __init__(self, vocab_size: int, script: Callable[[tuple[int, ...]], Mapping[int, float]], *, max_positions: int = 8192):
        super().__init__(vocab_size, max_positions)
        self._script = script

    def logits_of(self, ids: np.ndarray) -> np.ndarray:
        logits = np.zeros(self.vocab_size, np.float32)
        for token, value in self._script(tuple(int(i) for i in ids)).items():
            logits[token] = value
        return logits


def answers(texts: Mapping[Sequence[int], Sequence[int]], end_id: int) -> Callable[[tuple[int, ...]], Mapping[int, float]]:
    """A script that goes on from each prompt by its answer and then ends; where the ids leave all of them, it ends too."""
    whole = [(tuple(prompt), tuple(prompt) + tuple(answer) + (end_id,)) for prompt, answer in texts.items()]

    def script(ids: tuple[int, ...]) -> Mapping[int, float]:
        for prompt, line in whole:
            if len(prompt) <= len(ids) < len(line) and line[: len(ids)] == ids:
                return {line[len(ids)]: 10.0}
        return {end_id: 10.0}

    return script


#: How far noise lifts a token; more than the distances between tastes, so that every kind of token comes up.
_NOISE = 3.0
#: What an end token gains over a turn of so many tokens: at the end it beats every word.
_END_WITHIN, _TURN = 6.0, 48


def _taste(data: bytes) -> float:
    """How much the stand-in likes a token: words most, then punctuation, then single letters and digits; bytes outside ASCII least."""
    if not data:
        return 1.0
    if data in (b".", b",", b"\n", b'"', b": "):
        return 4.2
    if len(data) > 1 and data[:1] == b" " and data[1:].isalpha():
        return 4.0
    if data.isalpha() or data.isdigit():
        return 2.0 if data.isascii() else 0.5
    return 1.5 if data.isascii() and data.decode().isprintable() else -2.0


def _mix(values: np.ndarray) -> np.ndarray:
    """splitmix64's finaliser.  values: (n,) uint64"""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
