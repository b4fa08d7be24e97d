"""A model whose weights are read when something is first computed: what never asks the model never pays for it.

    model = lazy_model(folder, dtype="float32")     # config, names and shapes of all tensors are checked
    model.allocate(8192)                            # remembered
    model.forward(rows)                             # reads the weights, makes the pool, computes
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lmc.runtime.batch import Interruptible, Model, Row
from lmc.runtime.model.load import DTYPES, check_model, load_model, stored_numbers

if TYPE_CHECKING:
    import torch


class LazyModel:
    """A `lmc.runtime.batch.Model`.  weight_bytes: what the weights will take; read: gives the model that does the work."""

    __slots__ = ("vocab_size", "max_positions", "weight_bytes", "_slot_bytes", "_slots", "_read", "_model")

    def __init__(self, *, vocab_size: int, max_positions: int, slot_bytes: int, weight_bytes: int, read: Callable[[], Model]):
        self.vocab_size, self.max_positions, self.weight_bytes = vocab_size, max_positions, weight_bytes
        self._slot_bytes, self._read = slot_bytes, read
        self._slots = 0
        self._model: Model | None = None

    @property
    def loaded(self) -> bool:
        """Whether the weights are there."""
        return self._model is not None

    def slot_bytes(self) -> int:
        return self._slot_bytes

    def allocate(self, slots: int) -> None:
        self._slots = slots

    def forward(self, rows: list[Row]) -> torch.Tensor:
        """As the model's own; the first call reads the weights, and raises what that raises."""
        if self._model is None:
            model = self._read()
            model.allocate(self._slots)
            self._model = model
        return self._model.forward(rows)

    def interrupt(self) -> None:
        """As the model's own, where it has it and the weights are there."""
        if isinstance(self._model, Interruptible):
            self._model.interrupt()


def lazy_model(folder: Path, *, dtype: str = "float32", kernels: str = "torch", cache: Path | None = None) -> LazyModel:
    """The model in `folder`.  Arguments and errors are those of `load_model`, and what it checks is checked at once."""
    config = check_model(folder, dtype=dtype)
    number_bytes = DTYPES[dtype].itemsize
    return LazyModel(vocab_size=config.vocab_size, max_positions=config.max_positions,
                     slot_bytes=config.slot_bytes(number_bytes), weight_bytes=stored_numbers(folder) * number_bytes,
                     read=lambda: load_model(folder, dtype=dtype, kernels=kernels, cache=cache))
