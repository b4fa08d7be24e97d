"""The forward pass against transformers, and the bits of deterministic mode."""

import pytest
import torch

from lmc.diagnostics import LmcError
from lmc.runtime.batch import Row
from lmc.runtime.model.linear import ExactLinear, Linear, exact_range
from lmc.runtime.model.load import load_model
from lmc.runtime.model.mlp import GatedMlp
from tests.runtime.model import tiny

FAMILIES = {
    "Llama": {}, "Mistral": dict(sliding_window=None), "Qwen2": {}, "Qwen3": {},
    "Llama with biases": dict(attention_bias=True, mlp_bias=True), "Llama without groups": dict(num_key_value_heads=6),
    "Llama with one key head": dict(num_key_value_heads=1), "Llama tied": dict(tie_word_embeddings=True),
    "Mistral with a window": dict(sliding_window=40),
    "Qwen2 with windows": dict(use_sliding_window=True, sliding_window=50, max_window_layers=1),
    "Mixtral": dict(num_local_experts=5, num_experts_per_tok=2), "Mixtral of one expert": dict(num_local_experts=1, num_experts_per_tok=1),
    "Mixtral with a window, all experts": dict(num_local_experts=3, num_experts_per_tok=3, sliding_window=60),
}


@pytest.fixture(scope="module", params=FAMILIES)
def pair(request, tmp_path_factory):
    """The transformers model and its folder."""
    model = tiny.build(request.param.split()[0], **FAMILIES[request.param])
    return model, tiny.save(model, tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    model = tiny.build("Llama")
    return model, tiny.save(model, tmp_path_factory.mktemp("llama"))


def loaded(folder, slots: int = 1024, **options):
    model = load_model(folder, **options)
    model.allocate(slots)
    return model


@pytest.mark.parametrize("deterministic", [False, True])
def test_logits_equal_transformers(pair, deterministic):
    reference, folder = pair
    tokens = tiny.ids(300)
    got = loaded(folder, deterministic=deterministic).forward([tiny.whole(tokens, tiny.scattered(300))])
    wanted = tiny.reference_logits(reference, tokens)
    assert got.dtype == torch.float32 and got.shape == (300, tiny.VOCAB)
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)


def test_bfloat16_is_near(pair):
    """Mean KL divergence per token; a wrong tensor gives whole nats.  Rounding sends some tokens to another expert."""
    reference, folder = pair
    tokens = tiny.ids(200)
    got = loaded(folder, dtype="bfloat16").forward([tiny.whole(tokens, tiny.scattered(200))]).log_softmax(-1)
    wanted = tiny.reference_logits(reference, tokens).log_softmax(-1)
    assert (wanted.exp() * (wanted - got)).sum(-1).mean() < (3e-2 if "Mixtral" in type(reference).__name__ else 5e-3)


def test_prefix_chunks_and_decoding_in_one_batch(llama):
    """Rows of all kinds side by side, with a shared prefix in the pool."""
    reference, folder = llama
    model = loaded(folder)
    slots = tiny.scattered(1024)
    prefix, tail = tiny.ids(40, 1), tiny.ids(30, 2)
    alone = tiny.ids(200, 3)
    first = model.forward([Row(prefix, 0, slots[:40], []), Row(alone[:70], 0, slots[100:170], [69])])
    got = model.forward([
        Row([tail[0]], 40, slots[:40] + [slots[50]], [0]),
        Row(tail, 40, slots[:40] + slots[60:90], [0, 29]),
        Row(alone[70:200], 70, slots[100:300], [5, 129]),
    ])
    continued, other = tiny.reference_logits(reference, prefix + tail), tiny.reference_logits(reference, alone)
    wanted = torch.stack([other[69], continued[40], continued[40], continued[69], other[75], other[199]])
    torch.testing.assert_close(torch.cat([first, got]), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("deterministic", [False, True])
def test_rows_of_one_step_read_each_others_slots(llama, deterministic):
    """The follower's prefix is computed by the leader in the same step; the follower even stands first."""
    reference, folder = llama
    slots, prefix, tail = tiny.scattered(100), tiny.ids(40, 1), tiny.ids(9, 2)
    got = loaded(folder, deterministic=deterministic).forward([
        Row(tail, 40, slots[:40] + slots[60:69], [8]), Row(prefix, 0, slots[:40], [39]),
    ])
    wanted = tiny.reference_logits(reference, prefix + tail)[[48, 39]]
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)


def test_no_outputs_wanted(llama):
    model = loaded(llama[1])
    assert model.forward([Row(tiny.ids(5), 0, [3, 1, 4, 5, 9], [])]).shape == (0, tiny.VOCAB)


def test_sizes(llama):
    model = loaded(llama[1], slots=600)
    assert (model.vocab_size, model.max_positions) == (128, 512)
    assert model.slot_bytes() == 3 * 2 * 2 * 32 * 4
    assert load_model(llama[1], dtype="bfloat16").slot_bytes() == 3 * 2 * 2 * 32 * 2


def test_longest_context(llama):
    """All positions that the model has, and a pool that is larger than that."""
    reference, folder = llama
    tokens = tiny.ids(512)
    got = loaded(folder, slots=600).forward([Row(tokens, 0, list(range(512)), [511])])
    torch.testing.assert_close(got[0], tiny.reference_logits(reference, tokens)[511], rtol=1e-4, atol=1e-4)


def test_a_broken_row_does_not_touch_its_neighbours(llama):
    """NaN in one request's keys and values (case H-03) stays there, padding included."""
    model = loaded(llama[1])
    good, bad = tiny.ids(30, 1), tiny.ids(31, 2)
    # The broken request owns slot 0, which padding might read.
    model.forward([Row(good, 0, list(range(100, 130)), []), Row(bad[:-1], 0, list(range(30)), [])])
    wanted = model.forward([Row([7], 30, [*range(100, 130), 140], [0])])
    for pool in (*model.pool_k, *model.pool_v):
        pool[:30] = float("nan")
    got = model.forward([Row([bad[-1]], 30, [*range(31)], [0]), Row([7], 30, [*range(100, 130), 140], [0])])
    assert got[0].isnan().all()
    torch.testing.assert_close(got[1], wanted[0], rtol=1e-5, atol=1e-5)


# Deterministic mode: the same bits alone, in a batch, and however the prompt is cut.

@pytest.fixture(scope="module", params=["Llama float32", "Llama bfloat16", "Mixtral float32"])
def exact(request, llama, tmp_path_factory):
    family, dtype = request.param.split()
    if family == "Llama":
        return loaded(llama[1], dtype=dtype, deterministic=True)
    mixtral = tiny.build("Mixtral", num_local_experts=4, sliding_window=30)
    return loaded(tiny.save(mixtral, tmp_path_factory.mktemp("mixtral")), dtype=dtype, deterministic=True)


@pytest.fixture(scope="module")
def alone(exact):
    """Logits of 150 tokens in one row, alone in the batch."""
    return exact.forward([tiny.whole(tiny.ids(150), tiny.scattered(150))])


@pytest.mark.parametrize("cuts", [(1,), (1, 2, 3), (75,), (64, 128), (17, 18, 33, 149), tuple(range(1, 150))])
def test_chunks_do_not_change_bits(exact, alone, cuts):
    tokens, slots = tiny.ids(150), tiny.scattered(150, seed=5)
    edges = [0, *cuts, 150]
    parts = [exact.forward([Row(tokens[a:b], a, slots[:b], list(range(b - a)))]) for a, b in zip(edges, edges[1:])]
    assert torch.equal(torch.cat(parts), alone)


@pytest.mark.parametrize("place", [0, 3, 7])
def test_neighbours_do_not_change_bits(exact, alone, place):
    """In a batch of eight: prefill chunks and decoding rows, before and behind, of other lengths."""
    slots = tiny.scattered(1024, seed=7)
    rows = []
    for i in range(8):
        own = slots[i * 108 : i * 108 + 108]
        start = 0 if i % 2 else 40 + i
        exact.forward([Row(tiny.ids(start or 1, i), 0, own[: start or 1], [])])
        count = 1 if i % 3 else 60
        rows.append(Row(tiny.ids(count, 50 + i), start, own[: start + count], [count - 1]))
    tokens, own = tiny.ids(150), slots[864:1014]
    rows[place] = tiny.whole(tokens, own)
    before = sum(len(row.outputs) for row in rows[:place])
    assert torch.equal(exact.forward(rows)[before : before + 150], alone)


def test_decoding_side_by_side_does_not_change_bits(exact, alone):
    """Eight rows over one shared prefix, each one token further: as alone."""
    tokens, slots = tiny.ids(150), tiny.scattered(1024, seed=9)
    exact.forward([Row(tokens[:149], 0, slots[:149], [])])
    got = exact.forward([Row([tokens[length]], length, slots[:length] + [slots[200 + length]], [0]) for length in range(142, 150)])
    assert torch.equal(got, alone[142:150])


def test_outputs_do_not_change_bits(exact, alone):
    """One wanted token or all: the output matrix sees other row counts."""
    got = exact.forward([Row(tiny.ids(150), 0, tiny.scattered(150), [149])])
    assert torch.equal(got, alone[149:])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("columns", [96, 160, 576])
def test_exact_linear(dtype, columns):
    torch.manual_seed(0)
    weight, bias, x = torch.randn(200, columns).to(dtype), torch.randn(200).to(dtype), torch.randn(600, columns).to(dtype)
    plain = Linear(weight, bias)
    product = ExactLinear(plain, *exact_range(plain, columns, dtype))
    whole = product(x)
    for begin, end in ((0, 1), (0, 2), (5, 6), (100, 133), (17, 590), (300, 600)):
        assert torch.equal(product(x[begin:end]), whole[begin:end])
    wanted = x.double() @ weight.double().T + bias.double()
    assert (whole.double() - wanted).abs().max() < (1e-4 if dtype == torch.float32 else 0.5)


def test_exact_linear_pads_where_the_kernel_is_not_invariant():
    """A product whose bits depend on the number of rows gets one fixed number; one that never agrees is refused."""

    def by_count(x):
        return x * (1.0 + len(x) * 2.0**-20)

    assert exact_range(by_count, 8, torch.float32) == (16, 16)
    product = ExactLinear(by_count, 16, 16)
    x = torch.randn(40, 8)
    assert torch.equal(product(x[:3]), product(x)[:3]) and torch.equal(product(x[20:21]), product(x)[20:21])

    calls = iter(range(10_000))
    with pytest.raises(LmcError) as error:
        exact_range(lambda x: x + next(calls), 8, torch.float32)
    assert error.value.diagnostics[0].code == "E0816"


@pytest.mark.parametrize("fault", ["neighbours", "chunks"])
def test_a_machine_that_is_not_exact_is_refused(llama, monkeypatch, fault):
    """Loading tries the promise on the model itself."""
    plain = GatedMlp._silu

    def by_company(self, x):
        return plain(self, x) * (1.0 + (len(x) if fault == "neighbours" else x.shape[0] == 1) * 2.0**-20)

    monkeypatch.setattr(GatedMlp, "_silu", by_company)
    load_model(llama[1])
    with pytest.raises(LmcError) as error:
        load_model(llama[1], deterministic=True)
    assert error.value.diagnostics[0].code == "E0816"


def test_linear_without_packing(monkeypatch):
    """The fall-back where torch has no oneDNN gives the same numbers."""
    torch.manual_seed(0)
    weight, x = torch.randn(50, 96), torch.randn(7, 96)
    packed = Linear(weight)(x)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    plain = Linear(weight)
    assert plain.packed is None
    torch.testing.assert_close(plain(x), packed, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("family", "keys"), [
    ("Mistral", dict(sliding_window=700)), ("Qwen2", dict(use_sliding_window=True, sliding_window=5000, max_window_layers=0)),
    ("Qwen3", {}), ("Mixtral", dict(num_local_experts=4)),
], ids=lambda value: value if isinstance(value, str) else "")
def test_logits_at_far_positions(tmp_path, family, keys):
    """The scalings of Llama's positions are in test_config.py."""
    reference = tiny.build(family, max_position_embeddings=16384, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
                           head_dim=16, **keys)
    model, tokens, wanted = loaded(tiny.save(reference, tmp_path), slots=8193), tiny.ids(8193), [0, 100, 1000, 8192]
    got = model.forward([Row(tokens, 0, list(range(8193)), wanted)])
    torch.testing.assert_close(got, tiny.reference_logits(reference, tokens)[wanted], rtol=1e-4, atol=1e-4)
