"""Attention over the pool of keys and values: the plain kernel, in torch, behind the one contract `attend`.

    row A (decoding)   start 3, one query      ->  tile of one query over slots 0 … 3
    row B (prefill)    start 16, 300 queries   ->  tiles of at most 128 queries, each over the slots up to its last position

The queries of a step are planned into tiles once and attended layer by layer.  A tile is a rectangle (rows, queries, keys), so that
rows of about the same length share one call.  With `exact_rows` tiles stand at fixed absolute positions and have fixed shapes, so
that the bits of a query depend on nothing but its position, its keys and its values: not on neighbours, not on chunking.
With a window a query sees the last tokens only; keys before the window of a tile's first query are not read.
This file does not know models; slots are handed to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F

from lmc.runtime.batch import Row


@dataclass(frozen=True, slots=True)
class Tile:
    """Some queries of some rows over the keys that they see.

    tokens: (rows * queries,) which token of the step each query is (a position that is not in this step repeats a neighbour)
    kept: (real,) which of those are real, or None where all are
    slots: (rows * keys,) pool slots; padding repeats a slot of the row itself, so that no row ever reads a stranger's numbers
    mask: (rows, 1, queries * group, keys), 0 where the query sees the key and -inf elsewhere, or None where all is seen
    shape: (rows, queries, keys)
    """

    tokens: torch.Tensor
    kept: torch.Tensor | None
    slots: torch.Tensor
    mask: torch.Tensor | None
    shape: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Positions `first … first + queries - 1` of one row over `keys` of its slots from `first_key` on; `token` is the token at
    `first`, which may lie before the row's tokens of this step (`begin` is the first that does not)."""

    row: Row
    token: int
    first: int
    begin: int
    queries: int
    first_key: int
    keys: int


# Longer query runs waste work on keys that the causal mask hides; shorter ones pay for more calls.
_QUERIES = 128
# In exact mode every query costs as much as a tile: four are at most 1.8 times the price of one in decoding, and keep prefill's
# number of calls bearable.
_EXACT_QUERIES = 4
# In exact mode the number of keys is rounded up to this, so that tiles of one size can share a call.
_EXACT_KEYS = 16
# Padded tiles of more gathered keys and values were measured to be erratic, up to five times slower than single rows.
_TILE_BYTES = 8 << 20
# Rows whose lengths differ by more are not padded to one another.
_PADDING = 1.25


def plan_tiles(rows: list[Row], *, group: int, dtype: torch.dtype, slot_bytes: int, exact_rows: bool = False,
               window: int | None = None) -> list[Tile]:
    """The tiles that cover every token of `rows`, in the flattened order of a step.

    group: query heads per key head; dtype: of queries and pool
    slot_bytes: bytes of keys and values of one slot in one layer; bounds a tile
    window: how many tokens a query sees, its own included; None for all
    """
    pieces = []
    token = 0
    for row in rows:
        pieces += _exact_pieces(row, token, window) if exact_rows else _pieces(row, token, window)
        token += len(row.tokens)
    return [_tile(alike, group, dtype, window) for alike in _groups(pieces, slot_bytes, exact_rows)]


def attend(q: torch.Tensor, pool_k: torch.Tensor, pool_v: torch.Tensor, tiles: list[Tile], *, scale: float) -> torch.Tensor:
    """Causal attention of each query over its row's slots.

    q: (tokens, heads, head_dim); pool_k, pool_v: (slots, kv_heads, head_dim), same dtype as q; scale: factor of q · k
    Returns (tokens, heads * head_dim).  Sums are kept in float32 or wider.  Query head h reads key head h // (heads / kv_heads).
    """
    tokens, heads, head_dim = q.shape
    out = q.new_empty(tokens, heads * head_dim)
    flat = q.reshape(tokens, heads * head_dim)
    for tile in tiles:
        result = _attend_tile(flat.index_select(0, tile.tokens), pool_k, pool_v, tile, heads, scale)
        if tile.kept is None:
            out.index_copy_(0, tile.tokens, result)
        else:
            out.index_copy_(0, tile.tokens.index_select(0, tile.kept), result.index_select(0, tile.kept))
    return out


def _attend_tile(q: torch.Tensor, pool_k: torch.Tensor, pool_v: torch.Tensor, tile: Tile, heads: int, scale: float) -> torch.Tensor:
    # q: (rows * queries, heads * head_dim) -> the same shape
    rows, queries, keys = tile.shape
    _, kv_heads, head_dim = pool_k.shape
    group = heads // kv_heads
    # The heads that share a key head become further queries: one product reads each key once for all of them.
    q = q.view(rows, queries, kv_heads, group, head_dim).transpose(1, 2).reshape(rows, kv_heads, queries * group, head_dim)
    k = _gather(pool_k, tile).transpose(1, 2)
    v = _gather(pool_v, tile).transpose(1, 2)
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=tile.mask, scale=scale)
    out = out.view(rows, kv_heads, queries, group, head_dim).transpose(1, 2)
    return out.reshape(rows * queries, heads * head_dim)


def _gather(pool: torch.Tensor, tile: Tile) -> torch.Tensor:
    # `index_select` of whole rows is three to five times as fast as `pool[slots]`.
    slots, kv_heads, head_dim = pool.shape
    rows, _, keys = tile.shape
    return pool.view(slots, kv_heads * head_dim).index_select(0, tile.slots).view(rows, keys, kv_heads, head_dim)


def _pieces(row: Row, token: int, window: int | None) -> Iterator[_Piece]:
    for done in range(0, len(row.tokens), _QUERIES):
        queries = min(_QUERIES, len(row.tokens) - done)
        first = row.start + done
        first_key = _first_key(first, window)
        yield _Piece(row, token + done, first, first, queries, first_key, first + queries - first_key)


def _exact_pieces(row: Row, token: int, window: int | None) -> Iterator[_Piece]:
    end = row.start + len(row.tokens)
    for first in range(row.start - row.start % _EXACT_QUERIES, end, _EXACT_QUERIES):
        keys = -(-(first + _EXACT_QUERIES) // _EXACT_KEYS) * _EXACT_KEYS
        first_key = _first_key(first, window) // _EXACT_KEYS * _EXACT_KEYS
        yield _Piece(row, token + first - row.start, first, max(first, row.start), _EXACT_QUERIES, first_key, keys - first_key)


def _first_key(position: int, window: int | None) -> int:
    return 0 if window is None else max(0, position - window + 1)


def _groups(pieces: list[_Piece], slot_bytes: int, exact_rows: bool) -> Iterator[list[_Piece]]:
    """Pieces of one shape, or of nearly one, whose rectangle is small enough."""
    limit = 1.0 if exact_rows else _PADDING
    group: list[_Piece] = []
    for piece in sorted(pieces, key=lambda p: (p.queries, p.keys)):
        fits = group and (piece.queries == group[0].queries and piece.keys <= limit * group[0].keys
                          and (len(group) + 1) * piece.keys * slot_bytes <= _TILE_BYTES)
        if group and not fits:
            yield group
            group = []
        group.append(piece)
    if group:
        yield group


def _tile(pieces: list[_Piece], group: int, dtype: torch.dtype, window: int | None) -> Tile:
    queries, keys = pieces[0].queries, pieces[-1].keys
    slots = np.empty((len(pieces), keys), np.int64)
    for own, piece in zip(slots, pieces):
        there = piece.row.slots[piece.first_key : piece.first_key + keys]
        own[: len(there)] = there
        own[len(there) :] = there[0]
    # positions: (rows, queries)
    positions = np.array([piece.first for piece in pieces])[:, None] + np.arange(queries)
    begin = np.array([piece.begin for piece in pieces])[:, None]
    last = np.array([piece.row.start + len(piece.row.tokens) - 1 for piece in pieces])[:, None]
    shift = np.array([piece.token - piece.first for piece in pieces])[:, None]
    real = (positions >= begin) & (positions <= last)
    kept = None if real.all() else torch.from_numpy(np.flatnonzero(real))
    tokens = torch.from_numpy((np.clip(positions, begin, last) + shift).ravel())
    key_positions = np.array([piece.first_key for piece in pieces])[:, None] + np.arange(keys)
    mask = _mask(positions, key_positions, group, dtype, window)
    return Tile(tokens, kept, torch.from_numpy(slots.ravel()), mask, (len(pieces), queries, keys))


def _mask(positions: np.ndarray, key_positions: np.ndarray, group: int, dtype: torch.dtype,
          window: int | None) -> torch.Tensor | None:
    # positions: (rows, queries) of the queries; key_positions: (rows, keys) -> (rows, 1, queries * group, keys)
    ahead = key_positions[:, None, :] - np.repeat(positions, group, axis=1)[:, :, None]
    hidden = torch.from_numpy(ahead > 0 if window is None else (ahead > 0) | (ahead <= -window))
    return torch.zeros(hidden.shape, dtype=dtype).masked_fill_(hidden, float("-inf"))[:, None] if hidden.any() else None
