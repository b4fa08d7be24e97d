"""The forward pass of Llama-like models over a pool of keys and values.

    rows -> one ragged batch of tokens -> embedding
         -> per layer: norm, q k v, rotation, write k and v to the pool, attend, output; norm, MLP or experts
         -> norm, output matrix at the wanted tokens -> logits

Prefill chunks, decoding and scoring are the same thing: a row has tokens behind a start.  A layer's keys and values are written before
its attention reads, so rows of one step may read each other's slots.  This file does not know files, requests or sampling.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from lmc.runtime.batch import Row
from lmc.runtime.model.attention import Tile, attend, plan_tiles
from lmc.runtime.model.config import ModelConfig
from lmc.runtime.model.head import Head
from lmc.runtime.model.linear import ExactLinear, Linear
from lmc.runtime.model.mlp import Experts, GatedMlp
from lmc.runtime.model.rope import rope_table, rotate


@dataclass(frozen=True, slots=True)
class Layer:
    """Weights of one layer.  `qkv` gives queries, keys and values side by side; the norms are (hidden,) float32, `query_norm` and
    `key_norm` (head_dim,) float32 or None."""

    attention_norm: torch.Tensor
    qkv: Linear | ExactLinear
    query_norm: torch.Tensor | None
    key_norm: torch.Tensor | None
    output: Linear | ExactLinear
    mlp_norm: torch.Tensor
    mlp: GatedMlp | Experts


@dataclass(frozen=True, slots=True)
class _Step:
    """What all layers of one forward pass share.  cosines, sines: (tokens, 1, head_dim / 2); new_slots: (tokens,); tiles: by the
    layer's window."""

    cosines: torch.Tensor
    sines: torch.Tensor
    new_slots: torch.Tensor
    tiles: dict[int | None, list[Tile]]


class Llama:
    """A `lmc.runtime.batch.Model`.  `allocate` comes before the first `forward`.

    embedding: (vocab, hidden) of the compute dtype; final_norm: (hidden,) float32
    deterministic: a row's logits have the same bits alone, in any batch, and however its prompt is cut into chunks
    """

    __slots__ = ("config", "dtype", "deterministic", "vocab_size", "max_positions", "embedding", "layers", "final_norm", "head",
                 "pool_k", "pool_v", "cosines", "sines")

    def __init__(self, config: ModelConfig, embedding: torch.Tensor, layers: list[Layer], final_norm: torch.Tensor,
                 head: Head, *, deterministic: bool):
        self.config, self.dtype, self.deterministic = config, embedding.dtype, deterministic
        self.vocab_size, self.max_positions = config.vocab_size, config.max_positions
        self.embedding, self.layers, self.final_norm, self.head = embedding, layers, final_norm, head
        self.pool_k = self.pool_v = self.cosines = self.sines = None

    def slot_bytes(self) -> int:
        """Bytes of keys and values of one token over all layers."""
        return self.config.layers * self._layer_slot_bytes()

    def allocate(self, slots: int) -> None:
        """Make the pool, once: keys and values of `slots` tokens in each layer."""
        assert self.pool_k is None, "the pool is there already"
        shape = (slots, self.config.kv_heads, self.config.head_dim)
        # Zeros, not empty: masked keys are multiplied by zero, and zero times a stray NaN would not be zero.
        self.pool_k = [torch.zeros(shape, dtype=self.dtype) for _ in self.layers]
        self.pool_v = [torch.zeros(shape, dtype=self.dtype) for _ in self.layers]
        # No row is longer than the pool.
        self.cosines, self.sines = rope_table(self.config.rope, self.config.head_dim, min(slots, self.max_positions))

    @torch.inference_mode()
    def forward(self, rows: list[Row]) -> torch.Tensor:
        """Compute the rows' tokens; logits (outputs, vocab) float32 of the wanted ones, in the order of the rows."""
        assert self.pool_k is not None, "allocate comes first"
        step = self._step(rows)
        ids = torch.from_numpy(np.concatenate([np.asarray(row.tokens, np.int64) for row in rows]))
        # The residual stream stays in float32 under bfloat16 weights: it costs nothing beside the products and halves the error.
        x = self.embedding.index_select(0, ids).float()
        for number, layer in enumerate(self.layers):
            x = self._layer(number, layer, x, step)
        wanted = torch.from_numpy(output_indexes(rows))
        x = rms_norm(x.index_select(0, wanted), self.final_norm, self.config.norm_eps)
        if len(wanted) == 0:
            return torch.empty(0, self.vocab_size)
        return self.head(x.to(self.dtype), [ids for row in rows for ids in row.few or [None] * len(row.outputs)])

    def _step(self, rows: list[Row]) -> _Step:
        positions = torch.from_numpy(np.concatenate([np.arange(row.start, row.start + len(row.tokens)) for row in rows]))
        new_slots = torch.from_numpy(np.concatenate([np.asarray(row.slots[row.start :], np.int64) for row in rows]))
        assert len(positions) == len(new_slots), "a row has one slot for each position"
        tiles = {window: plan_tiles(rows, group=self.config.heads // self.config.kv_heads, dtype=self.dtype, window=window,
                                    slot_bytes=self._layer_slot_bytes(), exact_rows=self.deterministic)
                 for window in set(self.config.windows)}
        cosines, sines = self.cosines.index_select(0, positions), self.sines.index_select(0, positions)
        return _Step(cosines[:, None], sines[:, None], new_slots, tiles)

    def _layer_slot_bytes(self) -> int:
        return 2 * self.config.kv_heads * self.config.head_dim * self.dtype.itemsize

    def _layer(self, number: int, layer: Layer, x: torch.Tensor, step: _Step) -> torch.Tensor:
        # x: (tokens, hidden) float32 -> the same
        x = x + self._attention(number, layer, rms_norm(x, layer.attention_norm, self.config.norm_eps), step)
        return x + layer.mlp(rms_norm(x, layer.mlp_norm, self.config.norm_eps).to(self.dtype))

    def _attention(self, number: int, layer: Layer, x: torch.Tensor, step: _Step) -> torch.Tensor:
        # x: (tokens, hidden) float32 -> (tokens, hidden) of the compute dtype
        config, pool_k, pool_v = self.config, self.pool_k[number], self.pool_v[number]
        heads, kv_heads = config.heads, config.kv_heads
        qkv = layer.qkv(x.to(self.dtype)).view(len(x), heads + 2 * kv_heads, config.head_dim)
        qk = qkv[:, : heads + kv_heads].float()
        if layer.query_norm is not None:
            qk = torch.cat((rms_norm(qk[:, :heads], layer.query_norm, config.norm_eps),
                            rms_norm(qk[:, heads:], layer.key_norm, config.norm_eps)), dim=1)
        qk = rotate(qk, step.cosines, step.sines).to(self.dtype)
        pool_k.index_copy_(0, step.new_slots, qk[:, heads:])
        pool_v.index_copy_(0, step.new_slots, qkv[:, heads + kv_heads :])
        return layer.output(attend(qk[:, :heads], pool_k, pool_v, step.tiles[config.windows[number]], scale=config.head_dim ** -0.5))


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """`x / sqrt(mean(x²) + eps) * weight` over the last dimension; x and the result float32."""
    return weight * (x * torch.rsqrt((x * x).mean(dim=-1, keepdim=True) + eps))


def output_indexes(rows: list[Row]) -> np.ndarray:
    """Indexes of the wanted tokens in the flattened batch."""
    wanted, first = [], 0
    for row in rows:
        wanted += [first + index for index in row.outputs]
        first += len(row.tokens)
    return np.asarray(wanted, np.int64)
