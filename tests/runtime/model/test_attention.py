"""`attend` against a naive implementation in float64, on ragged batches, scattered and shared slots, and all head groupings."""

import numpy as np
import pytest
import torch

from lmc.runtime.batch import Row
from lmc.runtime.model.attention import attend, plan_tiles

SLOTS, HEAD_DIM = 2048, 16


def naive(q, pool_k, pool_v, rows, scale, window=SLOTS) -> torch.Tensor:
    """One query, one head at a time, in float64."""
    heads, kv_heads = q.shape[1], pool_k.shape[1]
    results = []
    for row in rows:
        for i in range(len(row.tokens)):
            slots = torch.tensor(row.slots[max(0, row.start + i + 1 - window) : row.start + i + 1])
            token = q[len(results)].double()
            for_heads = []
            for head in range(heads):
                keys = pool_k[slots, head // (heads // kv_heads)].double()
                values = pool_v[slots, head // (heads // kv_heads)].double()
                weights = torch.softmax(keys @ token[head] * scale, 0)
                for_heads.append(weights @ values)
            results.append(torch.cat(for_heads))
    return torch.stack(results)


def tensors(tokens: int, heads: int, kv_heads: int, dtype):
    g = torch.Generator().manual_seed(tokens)
    q = torch.randn(tokens, heads, HEAD_DIM, generator=g)
    k, v = (torch.randn(SLOTS, kv_heads, HEAD_DIM, generator=g) for _ in range(2))
    return q.to(dtype), k.to(dtype), v.to(dtype)


def rows_of(*shapes: tuple[int, int]) -> list[Row]:
    """Rows of (start, tokens) with slots in no order, none shared."""
    free = torch.randperm(SLOTS, generator=torch.Generator().manual_seed(3)).tolist()
    rows = []
    for start, count in shapes:
        rows.append(Row([0] * count, start, [free.pop() for _ in range(start + count)], []))
    return rows


def run(rows, q, k, v, *, exact: bool, slot_bytes: int = 128, window: int | None = None) -> torch.Tensor:
    tiles = plan_tiles(rows, group=q.shape[1] // k.shape[1], dtype=q.dtype, slot_bytes=slot_bytes, exact_rows=exact, window=window)
    return attend(q, k, v, tiles, scale=0.3)


BATCHES = {
    "one token": [(0, 1)],
    "first tokens": [(0, 5)],
    "decoding": [(300, 1)],
    "decoding of many lengths": [(n, 1) for n in (0, 1, 2, 15, 16, 17, 40, 41, 44, 200, 201)],
    "long prefill": [(0, 300)],
    "chunk behind a prefix": [(130, 140)],
    "tile edges": [(3, 1), (3, 2), (4, 4), (5, 8), (15, 1), (16, 1), (14, 3), (12, 20)],
    "mixed": [(100, 1), (0, 40), (7, 3), (250, 1), (60, 129), (0, 1), (101, 1)],
    "equal rows": [(64, 8)] * 5,
}


@pytest.mark.parametrize("exact", [False, True], ids=["fast", "exact"])
@pytest.mark.parametrize("heads", [(6, 2), (4, 4), (8, 1), (9, 3)], ids=str)
@pytest.mark.parametrize("shapes", BATCHES.values(), ids=list(BATCHES))
def test_ragged_batches(shapes, heads, exact):
    rows = rows_of(*shapes)
    q, k, v = tensors(sum(len(r.tokens) for r in rows), *heads, torch.float32)
    assert (run(rows, q, k, v, exact=exact) - naive(q, k, v, rows, 0.3)).abs().max() < 5e-6


@pytest.mark.parametrize("exact", [False, True], ids=["fast", "exact"])
@pytest.mark.parametrize("window", [1, 7, 16, 100, 299])
@pytest.mark.parametrize("shapes", BATCHES.values(), ids=list(BATCHES))
def test_a_window_hides_what_lies_before_it(shapes, window, exact):
    rows = rows_of(*shapes)
    q, k, v = tensors(sum(len(r.tokens) for r in rows), 6, 2, torch.float32)
    got = run(rows, q, k, v, exact=exact, window=window)
    assert (got - naive(q, k, v, rows, 0.3, window)).abs().max() < 5e-6


@pytest.mark.parametrize("exact", [False, True], ids=["fast", "exact"])
def test_keys_before_every_window_are_not_read(exact):
    """Decoding behind a long prefix costs as much as the window."""
    tile, = plan_tiles(rows_of((1000, 1)), group=1, dtype=torch.float32, slot_bytes=128, exact_rows=exact, window=64)
    assert tile.shape[2] <= 64 + 2 * 16


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-13), (torch.bfloat16, 2e-2)])
def test_other_dtypes(dtype, bound, exact):
    rows = rows_of(*BATCHES["mixed"])
    q, k, v = tensors(sum(len(r.tokens) for r in rows), 6, 2, dtype)
    assert (run(rows, q, k, v, exact=exact).double() - naive(q, k, v, rows, 0.3)).abs().max() < bound


@pytest.mark.parametrize("exact", [False, True])
def test_shared_slots(exact):
    """Branches of one prefix, at different depths, and one slot list used twice."""
    free = torch.randperm(SLOTS).tolist()
    prefix = free[:90]
    rows = [Row([0] * n, 90 - back, prefix[: 90 - back] + free[100 * i + 100 :][:n], [])
            for i, (n, back) in enumerate([(1, 0), (7, 0), (20, 30), (1, 89), (1, 0)])]
    rows.append(rows[1])
    q, k, v = tensors(sum(len(r.tokens) for r in rows), 6, 2, torch.float32)
    assert (run(rows, q, k, v, exact=exact) - naive(q, k, v, rows, 0.3)).abs().max() < 5e-6


@pytest.mark.parametrize("seed", range(8))
def test_random_batches(seed):
    g = np.random.default_rng(seed)
    shapes = [(int(g.integers(0, 150)), int(g.choice([1, 1, 1, 2, 9, 60]))) for _ in range(int(g.integers(1, 9)))]
    rows = rows_of(*shapes)
    q, k, v = tensors(sum(len(r.tokens) for r in rows), 6, 2, torch.float32)
    wanted = naive(q, k, v, rows, 0.3)
    for exact in (False, True):
        # A small bound on tiles splits the groups.
        for slot_bytes in (128, 100_000):
            assert (run(rows, q, k, v, exact=exact, slot_bytes=slot_bytes) - wanted).abs().max() < 5e-6


def test_every_token_is_covered_once():
    rows = rows_of(*BATCHES["mixed"])
    for exact in (False, True):
        tiles = plan_tiles(rows, group=1, dtype=torch.float32, slot_bytes=128, exact_rows=exact)
        real = torch.cat([t.tokens if t.kept is None else t.tokens[t.kept] for t in tiles])
        assert sorted(real.tolist()) == list(range(sum(len(r.tokens) for r in rows)))


def test_a_tile_reads_only_slots_of_its_rows():
    rows = rows_of((3, 2), (70, 1), (66, 1), (0, 9))
    own = {slot for row in rows for slot in row.slots}
    for exact in (False, True):
        for tile in plan_tiles(rows, group=1, dtype=torch.float32, slot_bytes=128, exact_rows=exact):
            assert set(tile.slots.tolist()) <= own


def test_large_values_do_not_overflow():
    rows = rows_of((20, 3), (90, 1))
    q, k, v = tensors(4, 6, 2, torch.float32)
    q, k = q * 1e4, k * 1e4
    out = run(rows, q, k, v, exact=False)
    assert out.isfinite().all()
    assert (out - naive(q, k, v, rows, 0.3)).abs().max() < 1e-4


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_exact_bits(dtype):
    """In exact mode a query's bits depend on its position and its keys alone."""
    row = rows_of((0, 200))[0]
    q, k, v = tensors(200, 6, 2, dtype)
    whole = run([row], q, k, v, exact=True)
    for begin, end in ((0, 1), (150, 151), (150, 153), (37, 120), (199, 200), (128, 200)):
        part = Row([0] * (end - begin), begin, row.slots[:end], [])
        assert torch.equal(run([part], q[begin:end], k, v, exact=True), whole[begin:end])
        others = [(5, 1), (begin, 1), (begin, 6), (0, 30), (begin + 3, 1)]
        beside = [Row([0] * n, s, list(range(s + n)), []) for s, n in others]
        count = sum(n for _, n in others)
        batch = torch.cat([q[:count], q[begin:end]])
        assert torch.equal(run([*beside, part], batch, k, v, exact=True)[count:], whole[begin:end])
