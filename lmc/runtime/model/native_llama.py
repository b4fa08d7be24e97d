"""The forward pass of Llama-like models by the native CPU step: the same contract as `Llama`, one call of C for a step.

    model = NativeLlama(weights, library, level="amx", threads=2)
    model.allocate(8192)
    logits = model.forward(rows)

A row's bits do not depend on its neighbours, on chunking, on slots or on the number of threads, in either dtype; docs/kernels.md says
why.  The pool is (layers, kv_heads, slots, head_dim): the keys of one head lie side by side, as attention reads them.
This file does not know files or how the library came to be.
"""

from __future__ import annotations

import ctypes
import weakref
from array import array
from dataclasses import dataclass

import torch

from lmc.runtime.batch import Interrupted, Row
from lmc.runtime.model.config import ModelConfig
from lmc.runtime.model.large_memory import Recycled, zeros
from lmc.runtime.model.packed import LANES, Packed
from lmc.runtime.model.rope import rope_table
from lmc.runtime.native import library as native


# Of the head's blocks: beyond this share, asking for all is as fast and needs no list.
_MOST_BLOCKS = 0.5


@dataclass(frozen=True, slots=True)
class PackedMlp:
    """`gate_up`: blocks of gate and value by turns."""

    gate_up: Packed
    down: Packed


@dataclass(frozen=True, slots=True)
class PackedExperts:
    """`router`: (experts, hidden); chosen: how many of the experts a token goes through."""

    router: Packed
    experts: tuple[PackedMlp, ...]
    chosen: int


@dataclass(frozen=True, slots=True)
class PackedLayer:
    """Weights of one layer; the norms are float32, padded to a multiple of sixteen, `query_norm` and `key_norm` may be None."""

    attention_norm: torch.Tensor
    qkv: Packed
    query_norm: torch.Tensor | None
    key_norm: torch.Tensor | None
    output: Packed
    mlp_norm: torch.Tensor
    mlp: PackedMlp | PackedExperts


@dataclass(frozen=True, slots=True)
class PackedWeights:
    """embedding: (vocab, hidden) of the compute dtype; final_norm: as the layers' norms."""

    config: ModelConfig
    embedding: torch.Tensor
    layers: list[PackedLayer]
    final_norm: torch.Tensor
    head: Packed


class NativeLlama:
    """A `lmc.runtime.batch.Model`.  `allocate` comes before the first `forward`."""

    __slots__ = ("config", "dtype", "vocab_size", "max_positions", "weights", "library", "level", "threads", "pool_k", "pool_v",
                 "_engine", "_kept", "_logits", "__weakref__")
    #: Always: see the head of this file.
    deterministic = True

    def __init__(self, weights: PackedWeights, library: native.Library, *, level: str, threads: int):
        self.config, self.dtype = weights.config, weights.embedding.dtype
        self.vocab_size, self.max_positions = self.config.vocab_size, self.config.max_positions
        self.weights, self.library, self.level, self.threads = weights, library, level, threads
        self.pool_k = self.pool_v = self._engine = self._kept = None
        self._logits = Recycled()

    def slot_bytes(self) -> int:
        """Bytes of keys and values of one token over all layers."""
        return self.config.slot_bytes(self.dtype.itemsize)

    def allocate(self, slots: int) -> None:
        """Make the pool, once: keys and values of `slots` tokens in each layer.  Raises `MemoryError`."""
        assert self._engine is None, "the pool is there already"
        config = self.config
        shape = (config.layers, config.kv_heads, slots, config.head_dim)
        self.pool_k, self.pool_v = zeros(shape, self.dtype), zeros(shape, self.dtype)
        angles = rope_table(config.rope, config.head_dim, min(slots, self.max_positions))
        layers = (native.Layer * config.layers)(*map(_layer, self.weights.layers, config.windows))
        model = native.Model(
            bf16=self.dtype == torch.bfloat16, layers=config.layers, hidden=config.hidden, heads=config.heads, kv_heads=config.kv_heads,
            head_dim=config.head_dim, slots=slots, norm_eps=config.norm_eps, scale=config.head_dim ** -0.5,
            embedding=self.weights.embedding.data_ptr(), layer=layers, final_norm=self.weights.final_norm.data_ptr(),
            head=_matrix(self.weights.head), cosines=angles[0].data_ptr(), sines=angles[1].data_ptr(),
            keys=self.pool_k.data_ptr(), values=self.pool_v.data_ptr())
        self._engine = self.library.open(ctypes.byref(model), self.library.level_number(self.level), self.threads)
        if self._engine is None:
            raise MemoryError("no memory for the buffers of the native step")
        # The C side holds bare addresses.
        self._kept = (layers, angles)
        weakref.finalize(self, self.library.close, self._engine)

    def forward(self, rows: list[Row]) -> torch.Tensor:
        """Compute the rows' tokens; logits (outputs, vocab) float32 of the wanted ones, in the order of the rows.

        Where a row asks for few logits, the others are -inf.  Raises `Interrupted`, `MemoryError`.
        """
        assert self._engine is not None, "allocate comes first"
        ids, slots, row_token, row_start, row_slot = (array("i") for _ in range(5))
        for row in rows:
            assert len(row.slots) == row.start + len(row.tokens), "a row has one slot for each position"
            row_token.append(len(ids))
            row_start.append(row.start)
            row_slot.append(len(slots))
            ids.fromlist(row.tokens)
            slots.fromlist(row.slots)
        row_token.append(len(ids))
        wanted = _wanted(rows, self.weights.head.words.shape[0])
        logits = self._logits.empty(len(wanted.tokens), self.vocab_size)
        for place in wanted.places[wanted.whole :]:
            logits[place] = -torch.inf
        step = native.Step(
            tokens=len(ids), rows=len(rows), outputs=len(wanted.tokens), whole=wanted.whole, head_block_count=len(wanted.blocks),
            ids=_address(ids), row_token=_address(row_token), row_start=_address(row_start), row_slot=_address(row_slot),
            slots=_address(slots), wanted=_address(wanted.tokens), places=_address(wanted.places),
            head_blocks=_address(wanted.blocks), logits=logits.data_ptr())
        _check(self.library.run(self._engine, ctypes.byref(step)))
        return logits

    def interrupt(self) -> None:
        """End the pass in progress between two layers, or else the next one, from any thread."""
        if self._engine is not None:
            self.library.cancel(self._engine)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """tokens: indexes of the tokens whose logits are wanted, the `whole` ones first; places: their rows of the logits; blocks: of the
    head, for the others."""

    tokens: array
    places: array
    whole: int
    blocks: array


def _wanted(rows: list[Row], head_blocks: int) -> _Wanted:
    whole: list[tuple[int, int]] = []
    narrow: list[tuple[int, int]] = []
    blocks: set[int] = set()
    first = place = 0
    for row in rows:
        for output, ids in zip(row.outputs, row.few or [None] * len(row.outputs), strict=True):
            (whole if ids is None else narrow).append((first + output, place))
            place += 1
            if ids is not None:
                blocks.update((ids // LANES).tolist())
        first += len(row.tokens)
    if len(blocks) > _MOST_BLOCKS * head_blocks:
        whole, narrow, blocks = whole + narrow, [], set()
    tokens, places = zip(*whole, *narrow) if whole or narrow else ((), ())
    return _Wanted(array("i", tokens), array("i", places), len(whole), array("i", sorted(blocks)))


def _check(outcome: int) -> None:
    if outcome == native.CANCELLED:
        raise Interrupted("the step was interrupted")
    if outcome == native.NO_MEMORY:
        raise MemoryError("no memory for the tokens of this step")


def _layer(layer: PackedLayer, window: int | None) -> native.Layer:
    found = native.Layer(
        attention_norm=layer.attention_norm.data_ptr(), mlp_norm=layer.mlp_norm.data_ptr(), query_norm=_pointer(layer.query_norm),
        key_norm=_pointer(layer.key_norm), qkv=_matrix(layer.qkv), output=_matrix(layer.output), window=window or 0)
    mlp = layer.mlp
    if isinstance(mlp, PackedMlp):
        found.gate_up, found.down = _matrix(mlp.gate_up), _matrix(mlp.down)
    else:
        found.router, found.expert_count, found.chosen = _matrix(mlp.router), len(mlp.experts), mlp.chosen
        found.experts = (native.Expert * len(mlp.experts))(*((_matrix(one.gate_up), _matrix(one.down)) for one in mlp.experts))
    return found


def _matrix(packed: Packed) -> native.Matrix:
    blocks, words, _ = packed.words.shape
    return native.Matrix(packed=packed.words.data_ptr(), bias=_pointer(packed.bias), outputs=packed.outputs, blocks=blocks, words=words)


def _pointer(tensor: torch.Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


def _address(numbers: array) -> int:
    return numbers.buffer_info()[0]
