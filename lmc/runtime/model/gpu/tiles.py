"""The plan of a step's attention: tiles of queries over runs of keys.

    decoding A   [c0 c1 c2]      c0 and c1 are the same slots as B's: one tile each, with A's and B's query in it
    decoding B   [c0 c1 c3]      c2 and c3: a tile for each; a token's partial results are merged in the order of their positions
    prefill C    40 new tokens   tiles of some queries each over all they see, written at once

Runs are cut at fixed positions, so that what a token adds up, and in which order, hangs on its own position alone.  Two rows share a run
where their slots of it are the same, which the radix tree makes true of branches of one context: no tree is needed to find them.
With `exact` prefill is cut in the same way as decoding, so that a row's bits do not depend on how its prompt came in chunks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lmc.runtime.batch import Row

# Keys of a run.  Measured nowhere yet: long enough that merging is small beside it, short enough that one row of 8,192 positions
# fills the processors of a GPU.
RUN = 512


@dataclass(frozen=True, slots=True)
class Tiles:
    """What `attend_tiles` reads of its tiles: int32, as named and shaped there; queries: of the plan, as (token, position)."""

    query_tokens: np.ndarray
    query_positions: np.ndarray
    tile_query: np.ndarray
    tile_count: np.ndarray
    tile_slot: np.ndarray
    tile_keys: np.ndarray
    tile_position: np.ndarray
    tile_partial: np.ndarray


@dataclass(frozen=True, slots=True)
class AttentionPlan:
    """A step's tiles.

    slots: (…,) int32, those of all rows; single: tiles of few queries; many: tiles of many queries
    partials: how many partial results the step has
    merged_tokens, merge_first, merge_rows: int32, as `merge_partials` reads them
    """

    slots: np.ndarray
    single: Tiles
    many: Tiles
    partials: int
    merged_tokens: np.ndarray
    merge_first: np.ndarray
    merge_rows: np.ndarray


@dataclass(slots=True)
class _Building:
    """Tiles as they are found; `partial` counts over both kinds."""

    queries: list[tuple[int, int]] = field(default_factory=list)
    tiles: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)

    def add(self, queries: list[tuple[int, int]], slot: int, keys: int, position: int, partial: int) -> None:
        self.tiles.append((len(self.queries), len(queries), slot, keys, position, partial))
        self.queries += queries

    def tiles_now(self) -> Tiles:
        queries = np.array(self.queries, np.int32).reshape(-1, 2).T
        tiles = np.array(self.tiles, np.int32).reshape(-1, 6).T
        return Tiles(*np.ascontiguousarray(queries), *np.ascontiguousarray(tiles))


def plan_attention(rows: list[Row], *, few: int, many: int, run: int = RUN, exact: bool = False) -> AttentionPlan:
    """The tiles that cover every token of `rows`, in the flattened order of a step.

    few, many: how many queries a tile of either kind holds at most; run: keys of a run
    """
    slots = np.concatenate([np.asarray(row.slots, np.int32) for row in rows])
    single, wide = _Building(), _Building()
    shared: dict[tuple[int, bytes], list[tuple[int, int, int]]] = {}
    token = first_slot = 0
    for row in rows:
        end = row.start + len(row.tokens)
        if exact or len(row.tokens) <= few:
            _note_runs(shared, slots, row, token, first_slot, run)
        else:
            for begin in range(row.start, end, many):
                queries = [(token + p - row.start, p) for p in range(begin, min(begin + many, end))]
                wide.add(queries, first_slot, queries[-1][1] + 1, 0, -1)
        token, first_slot = token + len(row.tokens), first_slot + end
    partials = _add_runs(shared, single, wide, few, many, run, exact)
    return AttentionPlan(slots, single.tiles_now(), wide.tiles_now(), len(partials), *_merges(partials))


def _note_runs(shared: dict, slots: np.ndarray, row: Row, token: int, first_slot: int, run: int) -> None:
    """Add the row's queries to the runs that they see, each known by its number and the slots in it."""
    end = row.start + len(row.tokens)
    for number, begin in enumerate(range(0, end, run)):
        own = slots[first_slot + begin : first_slot + min(begin + run, end)]
        queries = [(token + p - row.start, p, first_slot + begin) for p in range(max(row.start, begin), end)]
        shared.setdefault((number, own.tobytes()), []).extend(queries)


def _add_runs(shared: dict, single: _Building, wide: _Building, few: int, many: int, run: int, exact: bool) -> list[tuple[int, int]]:
    """Make tiles of the runs.  Returns the token and the position of the run of each partial result."""
    partials: list[tuple[int, int]] = []
    for (number, own), queries in shared.items():
        into, size = (wide, many) if exact or len(queries) > few else (single, few)
        for begin in range(0, len(queries), size):
            tile = queries[begin : begin + size]
            # All queries of a tile see the same slots, those of its first.
            into.add([(token, p) for token, p, _ in tile], tile[0][2], len(own) // 4, number * run, len(partials))
            partials += [(token, number) for token, _, _ in tile]
    return partials


def _merges(partials: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each token's partial results in the order of their runs."""
    order = sorted(range(len(partials)), key=partials.__getitem__)
    tokens, counts = np.unique(np.array([partials[i][0] for i in order], np.int32), return_counts=True)
    first = np.concatenate(([0], np.cumsum(counts)))
    return tokens.astype(np.int32), first.astype(np.int32), np.array(order, np.int32)
