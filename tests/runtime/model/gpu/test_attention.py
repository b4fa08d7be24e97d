"""The Triton kernel of attention against a naive one in float64, under the interpreter or on a GPU where there is one."""

import numpy as np
import pytest
import torch

from lmc.runtime.batch import Row
from lmc.runtime.model.gpu.attention import attend, few_blocks, many_blocks, place
from lmc.runtime.model.gpu.tiles import plan_attention
from tests.runtime.model.test_attention import naive

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SLOTS = 700
TOLERANCE = {torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 2e-2}


class Slots:
    """Hands out slots in no order, so that a kernel which mistakes positions for slots is wrong."""

    def __init__(self, seed: int):
        self.free = np.random.default_rng(seed).permutation(SLOTS).tolist()

    def row(self, start: int, tokens: int, *, after: Row | None = None, shared: int = 0) -> Row:
        """`shared` of the slots are the first of the row `after`."""
        common = after.slots[:shared] if after else []
        return Row([0] * tokens, start, common + [self.free.pop() for _ in range(start + tokens - shared)], [])


def run(rows, *, heads, kv_heads, head_dim, dtype=torch.float32, keys_of_run=64, exact=False, seed=0) -> torch.Tensor:
    """The kernel's result, after comparing it with the naive one."""
    g = torch.Generator().manual_seed(seed)
    tokens = sum(len(row.tokens) for row in rows)
    q = torch.randn(tokens, heads, head_dim, generator=g).to(dtype)
    k, v = (torch.randn(SLOTS, kv_heads, head_dim, generator=g).to(dtype) for _ in range(2))
    group = heads // kv_heads
    plan = plan_attention(rows, few=few_blocks(dtype, head_dim, group).m // group, many=many_blocks(dtype, head_dim).m // group,
                          run=keys_of_run, exact=exact)
    placed = place(plan, heads=heads, head_dim=head_dim, device=DEVICE)
    got = attend(q.to(DEVICE), k.to(DEVICE), v.to(DEVICE), placed, scale=head_dim ** -0.5).cpu()
    torch.testing.assert_close(got.double(), naive(q, k, v, rows, head_dim ** -0.5), rtol=0, atol=TOLERANCE[dtype])
    return got


@pytest.mark.parametrize("shapes", [
    [(0, 1)], [(0, 5)], [(63, 1), (64, 1), (65, 1)], [(130, 1)], [(0, 40)], [(70, 30)], [(62, 3), (63, 2), (100, 2)],
    [(0, 1), (17, 1), (0, 33), (129, 1), (64, 20)],
], ids=str)
def test_ragged_rows(shapes):
    slots = Slots(1)
    run([slots.row(*shape) for shape in shapes], heads=3, kv_heads=1, head_dim=64)


@pytest.mark.parametrize("head_dim", [16, 64, 80, 128])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_head_sizes(head_dim, dtype):
    slots = Slots(2)
    run([slots.row(70, 1), slots.row(20, 12)], heads=4, kv_heads=2, head_dim=head_dim, dtype=dtype)


@pytest.mark.parametrize("group", range(1, 9))
def test_query_heads_per_key_head(group):
    slots = Slots(3)
    run([slots.row(66, 1), slots.row(3, 1), slots.row(10, 9)], heads=2 * group, kv_heads=2, head_dim=16)


def test_branches_of_one_context_read_its_runs_once():
    slots = Slots(4)
    trunk = slots.row(128, 1)
    rows = [trunk] + [slots.row(128 + n, 1, after=trunk, shared=128) for n in range(1, 5)]
    nested = slots.row(140, 1, after=rows[-1], shared=130)
    rows += [nested, slots.row(30, 1), slots.row(60, 5, after=trunk, shared=60)]
    plan = plan_attention(rows, few=5, many=20, run=64)
    # Two shared runs of 64 keys with six queries each, and what each row sees alone.
    assert sorted(plan.many.tile_count) == [6, 6] and all(plan.many.tile_keys == 64)
    run(rows, heads=3, kv_heads=1, head_dim=32)


def test_random_batches():
    for seed in range(12):
        random = np.random.default_rng(seed)
        slots, rows = Slots(seed), []
        for _ in range(random.integers(1, 5)):
            start, tokens = int(random.integers(0, 90)), int(random.choice([1, 1, 2, 7, 25]))
            after = rows[random.integers(len(rows))] if rows and random.random() < 0.6 else None
            rows.append(slots.row(start, tokens, after=after, shared=min(start, len(after.slots)) if after else 0))
        kv_heads, group = int(random.integers(1, 3)), int(random.integers(1, 5))
        run(rows, heads=kv_heads * group, kv_heads=kv_heads, head_dim=int(random.choice([8, 24, 64])),
            keys_of_run=int(random.choice([16, 32, 64])), seed=seed)


def test_exact_rows_do_not_depend_on_neighbours_and_chunks(products_of_one_kind):
    """A token's bits are the same alone, among others, in one chunk and in several."""
    slots = Slots(5)
    whole = slots.row(0, 90)
    other = slots.row(50, 1)
    shape = dict(heads=2, kv_heads=1, head_dim=16, keys_of_run=32, exact=True)

    def results(rows):
        # The same q for a token wherever it stands: drawn for the whole row, cut for its chunks.
        g = torch.Generator().manual_seed(9)
        q = torch.randn(90, 2, 16, generator=g)
        k, v = (torch.randn(SLOTS, 1, 16, generator=g) for _ in range(2))
        own = torch.cat([q[row.start : row.start + len(row.tokens)] for row in rows])
        plan = plan_attention(rows, few=8, many=16, run=shape["keys_of_run"], exact=True)
        placed = place(plan, heads=2, head_dim=16, device=DEVICE)
        return attend(own.to(DEVICE), k.to(DEVICE), v.to(DEVICE), placed, scale=0.25).cpu()

    alone = results([whole])
    assert torch.equal(results([other, whole])[1:], alone)
    cut = [Row([0] * (end - begin), begin, whole.slots[:end], []) for begin, end in ((0, 7), (7, 40), (40, 41), (41, 90))]
    assert torch.equal(torch.cat([results([row]) for row in cut]), alone)
    run([whole, other], **shape)
