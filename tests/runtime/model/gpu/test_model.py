"""The GPU's forward pass against transformers and against the plain one, under the interpreter or on a GPU where there is one."""

import pytest
import torch

from lmc.runtime.batch import Row
from lmc.runtime.model.config import read_config
from lmc.runtime.model.gpu.model import GpuLlama
from lmc.runtime.model.load import load_model
from lmc.runtime.model.named_weights import NamedWeights
from lmc.runtime.model.weights import find_tensors, read_tensors
from tests.runtime.model.tiny import build, ids, reference_logits, save, scattered, whole

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def tiny(folder, family: str, **keys):
    """One layer where two show nothing more: the interpreter takes milliseconds for each program of a launch."""
    reference = build(family, num_hidden_layers=keys.pop("layers", 1), max_position_embeddings=1024, **keys)
    return reference, save(reference, folder)


def on_gpu(folder, *, dtype=torch.float32, deterministic=False) -> GpuLlama:
    weights = NamedWeights(read_tensors(list(find_tensors(folder).values())), dtype, False)
    model = GpuLlama(read_config(folder), weights, DEVICE, deterministic=deterministic)
    weights.assert_all_used()
    model.allocate(1024)
    return model


@pytest.mark.parametrize("family, keys", [("Llama", {"layers": 2}), ("Qwen2", {"tie_word_embeddings": True}), ("Qwen3", {})],
                         ids=str)
def test_logits_are_those_of_transformers(tmp_path, family, keys):
    reference, folder = tiny(tmp_path, family, **keys)
    model = on_gpu(folder)
    tokens, slots = ids(20), scattered(20)
    expected = reference_logits(reference, tokens)
    torch.testing.assert_close(model.forward([whole(tokens, slots)]), expected, rtol=0, atol=2e-4)
    # Decoding over what is there, in one step with a chunk of another row.
    again = model.forward([Row(tokens[19:], 19, slots, [0]), Row(tokens[10:16], 10, slots[:16], [5])])
    torch.testing.assert_close(again, expected[[19, 15]], rtol=0, atol=2e-4)


def test_a_padded_step_gives_what_the_plain_model_gives(tmp_path):
    _, folder = tiny(tmp_path, "Llama")
    plain, model = load_model(folder), on_gpu(folder)
    plain.allocate(1024)
    slots = scattered(600)
    trunk = whole(ids(520), slots[:520])
    branches = [Row([7 + n], 520, slots[:520] + [slots[520 + n]], [0]) for n in range(5)]
    plain.forward([trunk])
    # The trunk's keys and values are computed plainly: the interpreter takes long over 520 tokens.
    model.pool_k[0][:1024], model.pool_v[0][:1024] = plain.pool_k[0], plain.pool_v[0]
    inputs = model._inputs(branches, padded=True)
    # 5 rows and a token of padding; one shared run of 512 keys and five of the rest.
    assert len(inputs.ids) == 8 and len(inputs.plan.single[2]) == 8
    torch.testing.assert_close(model.forward(branches), plain.forward(branches), rtol=0, atol=1e-4)
    torch.testing.assert_close(model.forward(branches[:1]), plain.forward(branches[:1]), rtol=0, atol=1e-4)


def test_deterministic_rows_have_their_own_bits(tmp_path, products_of_one_kind):
    model = on_gpu(tiny(tmp_path, "Qwen3")[1], deterministic=True)
    tokens, slots = ids(12), scattered(100)
    alone = model.forward([whole(tokens, slots[:12])])
    other = whole(ids(5, seed=1), slots[40:45])
    assert torch.equal(model.forward([other, whole(tokens, slots[:12])])[5:], alone)
    parts = [model.forward([Row(tokens[a:b], a, slots[:b], list(range(b - a)))]) for a, b in ((0, 4), (4, 5), (5, 12))]
    assert torch.equal(torch.cat(parts), alone)


def test_bfloat16(tmp_path):
    _, folder = tiny(tmp_path, "Llama")
    plain, model = load_model(folder, dtype="bfloat16"), on_gpu(folder, dtype=torch.bfloat16)
    plain.allocate(64)
    row = whole(ids(12), scattered(12, slots=64))
    torch.testing.assert_close(model.forward([row]), plain.forward([row]), rtol=0, atol=0.25)


def test_a_row_that_wants_nothing(tmp_path):
    model = on_gpu(tiny(tmp_path, "Llama")[1])
    assert model.forward([Row(ids(3), 0, scattered(3), [])]).shape == (0, model.vocab_size)
