"""The native step against transformers and torch, at every dispatch level of this machine, and its bits."""

import numpy as np
import pytest
import torch

from lmc.embed import cache_folder
from lmc.runtime.batch import Interrupted, Row
from lmc.runtime.model.load import load_model
from tests.runtime.model import tiny
from tests.runtime.model.native import levels, needs_compiler

pytestmark = needs_compiler

FAMILIES = {
    "Llama": {}, "Mistral": dict(sliding_window=None), "Qwen2": {}, "Qwen3": {},
    "Llama with biases": dict(attention_bias=True, mlp_bias=True), "Llama without groups": dict(num_key_value_heads=6),
    "Llama with one key head": dict(num_key_value_heads=1), "Llama tied": dict(tie_word_embeddings=True),
    "Mistral with a window": dict(sliding_window=50), "Mistral with a long window": dict(sliding_window=280),
    "Qwen2 with windows": dict(use_sliding_window=True, sliding_window=37, max_window_layers=1),
    "Mixtral": dict(num_local_experts=5, num_experts_per_tok=2), "Mixtral of odd sizes": dict(
        num_local_experts=18, num_experts_per_tok=3, hidden_size=92, intermediate_size=76, head_dim=22, vocab_size=131, sliding_window=41),
    # Nothing is a multiple of anything: all paddings at once.
    "Llama of odd sizes": dict(hidden_size=90, intermediate_size=74, head_dim=22, vocab_size=131),
    "Qwen3 of odd sizes": dict(hidden_size=52, intermediate_size=40, head_dim=42, vocab_size=143),
}


@pytest.fixture(scope="module", params=FAMILIES)
def pair(request, tmp_path_factory):
    """The transformers model and its folder."""
    model = tiny.build(request.param.split()[0], **FAMILIES[request.param])
    return model, tiny.save(model, tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.save(tiny.build("Llama"), tmp_path_factory.mktemp("llama"))


def native(folder, level: str, dtype: str = "float32", slots: int = 1024):
    model = load_model(folder, dtype=dtype, kernels=f"native:{level}", cache=cache_folder())
    assert model.level == level
    model.allocate(slots)
    return model


def fallback(folder, dtype: str):
    model = load_model(folder, dtype=dtype)
    model.allocate(1024)
    return model


@pytest.mark.parametrize("level", levels())
def test_logits_equal_transformers(pair, level):
    """300 tokens: more than one span of attention."""
    reference, folder = pair
    tokens = tiny.ids(300)
    got = native(folder, level).forward([tiny.whole(tokens, tiny.scattered(300))])
    wanted = tiny.reference_logits(reference, tokens)
    assert got.dtype == torch.float32 and got.shape == wanted.shape
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("level", levels())
def test_a_window_over_several_spans(tmp_path, level):
    """Spans of attention before the window of all queries of a tile, of some, and of none."""
    model = tiny.build("Mistral", sliding_window=300, max_position_embeddings=1024)
    tokens, slots = tiny.ids(900), tiny.scattered(900)
    got = native(tiny.save(model, tmp_path), level).forward([tiny.whole(tokens, slots)])
    torch.testing.assert_close(got, tiny.reference_logits(model, tokens), rtol=1e-4, atol=1e-4)


@pytest.fixture(scope="module")
def torch_divergence(pair):
    """How far torch's bfloat16 is from float32, and from what: see `test_bfloat16_is_near`."""
    wanted = tiny.reference_logits(pair[0], tiny.ids(280)).log_softmax(-1)
    return wanted, divergence(fallback(pair[1], "bfloat16"), wanted)


def divergence(model, wanted: torch.Tensor) -> torch.Tensor:
    """Mean Kullback-Leibler divergence per token.  wanted: (tokens, vocab) log-probabilities"""
    tokens = len(wanted)
    got = model.forward([tiny.whole(tiny.ids(tokens), tiny.scattered(tokens))]).log_softmax(-1)
    return (wanted.exp() * (wanted - got)).sum(-1).mean()


@pytest.mark.parametrize("level", levels())
def test_bfloat16_is_near(pair, torch_divergence, level):
    """As near to float32 as torch's bfloat16 is."""
    wanted, torch_far = torch_divergence
    assert divergence(native(pair[1], level, "bfloat16"), wanted) < max(1.5 * torch_far, 1e-4)


def test_rows_of_one_step_read_each_others_slots(folder):
    """The follower's prefix is computed by the leader in the same step; the follower even stands first."""
    slots, prefix, tail = tiny.scattered(100), tiny.ids(40, 1), tiny.ids(9, 2)
    rows = [Row(tail, 40, slots[:40] + slots[60:69], [8]), Row(prefix, 0, slots[:40], [39])]
    got, wanted = native(folder, levels()[0]).forward(rows), fallback(folder, "float32").forward(rows)
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)


def test_a_broken_row_does_not_touch_its_neighbours(folder):
    """NaN in one request's keys and values (case H-03) stays there."""
    for level in levels():
        model = native(folder, level)
        good, bad = tiny.ids(30, 1), tiny.ids(31, 2)
        model.forward([Row(good, 0, list(range(100, 130)), []), Row(bad[:-1], 0, list(range(30)), [])])
        wanted = model.forward([Row([7], 30, [*range(100, 130), 140], [0])])
        model.pool_k[:, :, :30] = model.pool_v[:, :, :30] = float("nan")
        got = model.forward([Row([bad[-1]], 30, [*range(31)], [0]), Row([7], 30, [*range(100, 130), 140], [0])])
        assert got[0].isnan().all()
        assert torch.equal(got[1], wanted[0])


def test_no_outputs_wanted(folder):
    assert native(folder, levels()[0]).forward([Row(tiny.ids(5), 0, [3, 1, 4, 5, 9], [])]).shape == (0, tiny.VOCAB)


def test_sizes(folder):
    model = native(folder, levels()[0], "bfloat16", slots=600)
    assert (model.vocab_size, model.max_positions, model.slot_bytes()) == (128, 512, 3 * 2 * 2 * 32 * 2)
    torch_model = fallback(folder, "bfloat16")
    assert model.slot_bytes() == torch_model.slot_bytes()
    row = Row(tiny.ids(512), 0, list(range(512)), [511])
    assert model.forward([row]).isfinite().all()


def test_an_interrupted_step_ends_and_the_next_one_runs(folder):
    model = native(folder, levels()[0])
    row = Row(tiny.ids(5), 0, list(range(5)), [4])
    wanted = model.forward([row])
    model.interrupt()
    with pytest.raises(Interrupted):
        model.forward([row])
    assert torch.equal(model.forward([row]), wanted)


# Bits: the same alone, in a batch, at any place of it, in chunks, warm and cold, wherever the slots lie and with any number of threads.

KINDS = {"Llama": dict(max_position_embeddings=1024),
         "Mixtral": dict(num_local_experts=5, sliding_window=30, max_position_embeddings=1024)}


@pytest.fixture(scope="module", params=[(kind, level, dtype) for kind in KINDS for level in levels() for dtype in ("float32", "bfloat16")],
                ids=lambda param: " ".join(param))
def exact(request, tmp_path_factory):
    kind, level, dtype = request.param
    folder = tiny.save(tiny.build(kind, **KINDS[kind]), tmp_path_factory.mktemp("exact"))
    return native(folder, level, dtype, slots=8192)


TOKENS = 290  # over the edge of a span of attention (256)


@pytest.fixture(scope="module")
def alone(exact):
    """Logits of all tokens of one row, alone in the batch."""
    return exact.forward([tiny.whole(tiny.ids(TOKENS), list(range(TOKENS)))])


@pytest.mark.parametrize("cuts", [(1,), (1, 2, 3), (75,), (64, 128), (17, 18, 33, 257, 289), (256,)])
def test_chunks_do_not_change_bits(exact, alone, cuts):
    tokens, slots = tiny.ids(TOKENS), tiny.scattered(TOKENS, seed=5)
    edges = [0, *cuts, TOKENS]
    parts = [exact.forward([Row(tokens[a:b], a, slots[:b], list(range(b - a)))]) for a, b in zip(edges, edges[1:])]
    assert torch.equal(torch.cat(parts), alone)


def test_token_by_token_does_not_change_bits(exact, alone):
    tokens, slots = tiny.ids(TOKENS), tiny.scattered(TOKENS, seed=6)
    parts = [exact.forward([Row(tokens[n : n + 1], n, slots[: n + 1], [0])]) for n in range(TOKENS)]
    assert torch.equal(torch.cat(parts), alone)


@pytest.mark.parametrize("runs", [(290,), (31, 259), (33, 1, 256), (64, 100, 96, 30), (32,) * 9 + (2,)], ids=str)
def test_runs_of_slots_do_not_change_bits(exact, alone, runs):
    """Values are read where they lie as far as slots follow one another.  What lies behind a run is nobody's, and not a number."""
    places = iter(range(1000, 8000, 400))
    slots = [slot for run, first in zip(runs, places) for slot in range(first, first + run)]
    kept = exact.pool_k.clone(), exact.pool_v.clone()
    try:
        exact.pool_k[:] = exact.pool_v[:] = float("nan")
        assert torch.equal(exact.forward([tiny.whole(tiny.ids(TOKENS), slots)]), alone)
        last = Row(tiny.ids(TOKENS)[-1:], TOKENS - 1, slots, [0])
        assert torch.equal(exact.forward([last])[0], alone[-1])
    finally:
        exact.pool_k[:], exact.pool_v[:] = kept


@pytest.mark.parametrize("batch", [2, 8, 32])
def test_neighbours_do_not_change_bits(exact, alone, batch):
    """At every place of the batch, decoding the last token and computing a chunk, beside rows of other lengths."""
    tokens, places = tiny.ids(TOKENS), list(range(TOKENS))
    exact.forward([Row(tokens, 0, places, [])])
    neighbours = [_neighbour(exact, number) for number in range(batch - 1)]
    for place in range(batch):
        for begin in (TOKENS - 1, 250):
            # Its own slots for what is computed again: the prefix is read from the pool (a warm cache).
            row = Row(tokens[begin:], begin, places[:begin] + list(range(7000, 7000 + TOKENS - begin)), list(range(TOKENS - begin)))
            rows = [*neighbours[:place], row, *neighbours[place:]]
            got = exact.forward(rows)
            assert torch.equal(got[place : place + TOKENS - begin], alone[begin:]), (place, begin)


def test_a_shared_prefix_does_not_change_bits(exact):
    """Rows that leave one context at many depths, some with one token and some with several, against each of them alone: attention reads
    what they share once, in one order of the rows and in another."""
    exact.forward([tiny.whole(tiny.ids(600), list(range(600)))])
    branches = [(600, 1), (600, 70), (598, 1), (544, 3), (543, 1), (288, 40), (270, 1), (270, 2), (256, 1), (100, 33), (64, 1), (33, 1), (5, 9), (0, 20)]
    rows, free = [], 600
    for number, (depth, own) in enumerate(branches):
        slots = [*range(depth), *range(free, free + own)]
        rows.append(Row(tiny.ids(own, number), depth, slots, list(range(own))))
        free += own
    twigs = [Row(tiny.ids(1, 90 + number), len(rows[1].slots), [*rows[1].slots, free + number], [0]) for number in range(70)]
    alone = {id(row): exact.forward([row]) for row in [*rows, *twigs]}
    for group in (rows, rows[::-1], twigs[:2], twigs, [*twigs[::2], *rows[2:], *twigs[1::2]]):
        assert torch.equal(exact.forward(group), torch.cat([alone[id(row)] for row in group]))


def _neighbour(model, number: int) -> Row:
    """A row that decodes one token or computes a few, behind a prefix of its own."""
    length, count, first = 3 + 11 * number % 130, 1 if number % 3 else 5, 1000 + 180 * number
    slots = list(range(first, first + length + count))
    model.forward([Row(tiny.ids(length, number + 1), 0, slots[:length], [])])
    return Row(tiny.ids(count, number + 50), length, slots, [count - 1])


@pytest.mark.parametrize("level", levels())
def test_threads_do_not_change_bits(folder, level, monkeypatch):
    rows = [Row(tiny.ids(90, 1), 0, list(range(90)), [5, 89]), Row(tiny.ids(1, 2), 0, [99], [0])]
    logits = []
    for threads in (1, 3):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        model = native(folder, level, "bfloat16")
        assert model.threads == threads
        logits.append(model.forward(rows))
    assert torch.equal(*logits)


def test_few_logits_have_the_bits_of_all(exact):
    """A narrow head, beside outputs that want everything; ids of one block, of the last block and of nearly all."""
    row = Row(tiny.ids(40), 0, list(range(40)), [3, 20, 38, 39])
    wanted = exact.forward([row])
    few = [np.array([17]), None, np.array([0, 100, 127]), np.array([16, 31])]
    got = exact.forward([Row(row.tokens, 0, row.slots, row.outputs, few)])
    for output, ids in enumerate(few):
        kept = slice(None) if ids is None else ids
        assert torch.equal(got[output, kept], wanted[output, kept])
    assert got[0, 50] == -torch.inf and got[1].isfinite().all()
