"""Dynamic scaling beyond the trained context: as transformers decodes token by token with a cache, however our rows are cut."""

import pytest
import torch
import transformers

from lmc.embed import cache_folder
from lmc.runtime.batch import Row
from lmc.runtime.model.config import read_config
from lmc.runtime.model.load import load_model
from lmc.runtime.model.rope import rope_table
from lmc.runtime.model.rope_config import UnsupportedRope, read_rope
from tests.runtime.model import tiny
from tests.runtime.model.native import levels

TRAINED, LENGTH = 64, 200
SCALING = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 4.0}
TOKENS = tiny.ids(LENGTH)
CLOSE = dict(rtol=1e-4, atol=1e-4)
KERNELS = ["torch", *(f"native:{level}" for level in levels())]


@pytest.fixture(scope="module")
def reference():
    return tiny.build("Llama", max_position_embeddings=TRAINED, rope_parameters=SCALING)


@pytest.fixture(scope="module")
def folder(reference, tmp_path_factory):
    return tiny.save(reference, tmp_path_factory.mktemp("dynamic"))


@pytest.fixture(scope="module")
def wanted(reference):
    """(LENGTH, vocab): the first tokens in one pass within the trained context, then one token at a time."""
    cache = transformers.DynamicCache(config=reference.config)
    pieces = [TOKENS[:50], *([token] for token in TOKENS[50:])]
    with torch.no_grad():
        return torch.cat([reference(torch.tensor([piece]), cache=cache, use_cache=True).logits[0] for piece in pieces])


@pytest.fixture(params=KERNELS)
def model(folder, request):
    model = load_model(folder, kernels=request.param, cache=cache_folder())
    model.allocate(1024)
    return model


@pytest.mark.parametrize("cuts", [(), (50,), (64, 65), (13, 70, 71, 150), tuple(range(1, LENGTH))], ids=len)
def test_logits_do_not_depend_on_how_a_text_is_cut(model, wanted, cuts):
    """Cold in one pass, in chunks on either side of the trained context, and token by token."""
    slots, edges = tiny.scattered(LENGTH), [0, *cuts, LENGTH]
    got = [model.forward([Row(TOKENS[a:b], a, slots[:b], list(range(b - a)))]) for a, b in zip(edges, edges[1:])]
    torch.testing.assert_close(torch.cat(got), wanted, **CLOSE)


def test_texts_of_all_lengths_share_a_prefix(model, wanted):
    """Kept keys serve rows that end within the trained context, and far beyond it, in one step."""
    slots = tiny.scattered(1024)
    model.forward([Row(TOKENS[:150], 0, slots[:150], [])])
    got = model.forward([Row(TOKENS[length:length + 1], length, slots[:length] + [slots[200 + length]], [0]) for length in (30, 63, 64, 149)]
                        + [Row(TOKENS[140:], 140, slots[:140] + slots[600:660], [59])])
    torch.testing.assert_close(got, wanted[[30, 63, 64, 149, 199]], **CLOSE)


def test_one_pass_of_transformers_has_other_angles(reference, wanted):
    """What docs/models.md says: transformers turns a whole text by the angles of its last token, even the part that was trained."""
    once = tiny.reference_logits(reference, TOKENS)
    assert (once[:TRAINED] - wanted[:TRAINED]).abs().max() > 0.01


def test_rows_of_the_table_equal_transformers():
    """At the positions of the other scalings, each as the last of its text."""
    config = transformers.LlamaConfig(hidden_size=64, num_attention_heads=1, max_position_embeddings=256, rope_parameters=SCALING)
    module = transformers.models.llama.modeling_llama.LlamaRotaryEmbedding(config)
    tables = rope_table(read_rope({"max_position_embeddings": 256, "rope_parameters": SCALING}), 64, 8193)
    for position in (0, 100, 255, 256, 1000, 8192):
        for ours, theirs in zip(tables, module(torch.zeros(1), torch.tensor([[position]]))):
            # An angle of 8,192 radians in float32 is known to half a thousandth.
            torch.testing.assert_close(ours[position], theirs[0, 0, :32], rtol=0, atol=2e-7 * max(position, 50))


def test_the_trained_context_does_not_know_of_the_scaling():
    plain = rope_table(read_rope({"max_position_embeddings": 256}), 64, 300)[0]
    scaled = rope_table(read_rope({"max_position_embeddings": 256, "rope_scaling": {"type": "dynamic", "factor": 2.0}}), 64, 300)[0]
    assert torch.equal(plain[:256], scaled[:256]) and not torch.isclose(plain[256:], scaled[256:]).all(-1).any()


def test_a_lone_pair_of_dimensions():
    """The exponent of theta has head_dim - 2 below the line."""
    table = rope_table(read_rope({"max_position_embeddings": 8, "rope_scaling": {"type": "dynamic", "factor": 2.0}}), 2, 20)[0]
    torch.testing.assert_close(table[:, 0], torch.arange(20.0).cos())


def test_the_context_ends_at_the_factor(folder):
    assert read_config(folder).max_positions == 256
    assert load_model(folder).max_positions == 256


def test_the_trained_context_must_be_there():
    with pytest.raises(UnsupportedRope, match="`max_position_embeddings` is None"):
        read_rope({"rope_scaling": {"type": "dynamic", "factor": 2.0}})
