"""Other decoders through transformers, against the attention that transformers has itself."""

import pytest
import torch
import transformers

from lmc.diagnostics import LmcError
from lmc.runtime.batch import Row
from lmc.runtime.model.decoder import Decoder
from lmc.runtime.model.decoder_config import DECODERS, read_decoder_config
from lmc.runtime.model.load import check_model, load_model
from lmc.runtime.model.lazy import lazy_model
from tests.runtime.model import tiny

SIZES = dict(vocab_size=128, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=2048, bos_token_id=1, eos_token_id=2, pad_token_id=0)
GPT2 = dict(vocab_size=128, n_embd=64, n_layer=2, n_head=4, n_positions=2048, scale_attn_by_inverse_layer_idx=True)
MORE = {
    "gpt2": GPT2, "gemma": dict(head_dim=24), "gpt_neox": dict(num_key_value_heads=4, rotary_pct=0.5), "starcoder2": dict(sliding_window=50),
    "phi3": dict(sliding_window=50), "cohere": dict(use_qk_norm=True),
    "gemma3_text": dict(head_dim=24, sliding_window=50, layer_types=["sliding_attention", "full_attention"]),
}


def build(family: str, **keys):
    torch.manual_seed(0)
    sizes = {} if family == "gpt2" else SIZES
    config = transformers.AutoConfig.for_model(family, **{**sizes, **MORE.get(family, {}), **keys})
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            tensor.copy_(torch.randn_like(tensor) * 0.1 + (1.0 if "norm" in name and tensor.dim() == 1 else 0.0))
    return model


def loaded(folder, slots: int = 2048, **options) -> Decoder:
    model = load_model(folder, **options)
    assert isinstance(model, Decoder)
    model.allocate(slots)
    return model


@pytest.fixture(scope="module", params=DECODERS)
def pair(request, tmp_path_factory):
    model = build(request.param)
    return model, tiny.save(model, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    model = build("gpt2")
    return model, tiny.save(model, tmp_path_factory.mktemp("gpt2"))


def test_logits_equal_transformers(pair):
    """To position 1,000, far beyond the windows; then decoding and a chunk side by side, over what is in the pool."""
    reference, folder = pair
    model = loaded(folder)
    tokens, slots, other = tiny.ids(1001), tiny.scattered(1001, slots=2047), 2047
    wanted = tiny.reference_logits(reference, tokens)
    got = model.forward([Row(tokens, 0, slots, [0, 100, 1000])])
    assert got.dtype == torch.float32
    torch.testing.assert_close(got, wanted[[0, 100, 1000]], rtol=1e-4, atol=1e-4)
    got = model.forward([Row([tokens[1000]], 1000, slots, [0]), Row(tokens[70:90], 70, slots[:90], [0, 19]), Row([9], 0, [other], [])])
    torch.testing.assert_close(got, wanted[[1000, 70, 89]], rtol=1e-4, atol=1e-4)


def test_what_the_engine_asks(pair):
    reference, folder = pair
    model, config = loaded(folder, slots=64), check_model(folder)
    assert model.slot_bytes() == sum(pool[0].nbytes for pool in (*model.pool_k, *model.pool_v)) == config.slot_bytes(4)
    assert (model.vocab_size, model.max_positions) == (128, 2048) == (config.vocab_size, config.max_positions)
    assert model.forward([Row(tiny.ids(5), 0, [3, 1, 4, 5, 9], [])]).shape == (0, 128)


def test_two_models_at_once_keep_apart(gpt2, tmp_path):
    """The table of transformers is one for the process: the second model must not answer for the first."""
    other = build("gpt2", n_head=2)
    models = [loaded(gpt2[1]), loaded(tiny.save(other, tmp_path))]
    tokens, slots = tiny.ids(30), tiny.scattered(30)
    for model, reference in zip(models, (gpt2[0], other)):
        wanted = tiny.reference_logits(reference, tokens)
        torch.testing.assert_close(model.forward([tiny.whole(tokens, slots)]), wanted, rtol=1e-4, atol=1e-4)


def test_bfloat16_is_near(gpt2):
    reference, folder = gpt2
    tokens = tiny.ids(100)
    got = loaded(folder, dtype="bfloat16").forward([tiny.whole(tokens, tiny.scattered(100))]).log_softmax(-1)
    wanted = tiny.reference_logits(reference, tokens).log_softmax(-1)
    assert (wanted.exp() * (wanted - got)).sum(-1).mean() < 5e-3


def test_read_late(gpt2):
    lazy = lazy_model(gpt2[1])
    assert not lazy.loaded and lazy.weight_bytes > 100_000 and lazy.max_positions == 2048
    lazy.allocate(64)
    assert lazy.slot_bytes() == 2 * 2 * 64 * 4 and lazy.forward([Row([5], 0, [3], [0])]).shape == (1, 128)


def test_only_torch_computes_it(gpt2, tmp_path):
    with pytest.raises(LmcError, match="a gpt2 model") as error:
        load_model(gpt2[1], kernels="native", cache=tmp_path)
    assert error.value.diagnostics[0].code == "E0822"
    with pytest.warns(UserWarning, match="a gpt2 model"):
        load_model(gpt2[1], kernels="auto", cache=tmp_path)


def test_bits_are_not_promised(gpt2):
    with pytest.raises(LmcError, match="depend on the rows") as error:
        load_model(gpt2[1], deterministic=True)
    assert error.value.diagnostics[0].code == "E0816"


@pytest.mark.parametrize(("keys", "part"), [
    (dict(quantization_config={"bits": 4}), "`quantization_config`"), (dict(add_cross_attention=True), "`add_cross_attention`"),
])
def test_refuses_by_name(gpt2, tmp_path, keys, part):
    folder = tiny.edit_config(tiny.save(gpt2[0], tmp_path), **keys)
    with pytest.raises(LmcError, match=part) as error:
        read_decoder_config(folder)
    assert error.value.diagnostics[0].code == "E0811"


def test_positions_that_hang_on_the_longest_row_are_refused(tmp_path):
    phi3 = build("phi3")
    scaling = {"rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0] * 8, "long_factor": [2.0] * 8, "factor": 2.0}
    folder = tiny.edit_config(tiny.save(phi3, tmp_path), rope_parameters=scaling, original_max_position_embeddings=512)
    with pytest.raises(LmcError, match="'longrope'"):
        load_model(folder)


def test_a_tensor_that_is_not_there(gpt2, tmp_path):
    folder = tiny.edit_config(tiny.save(gpt2[0], tmp_path), n_layer=3)
    with pytest.raises(LmcError, match="h.2.attn") as error:
        load_model(folder)
    assert {d.code for d in error.value.diagnostics} == {"E0815"}


def test_attention_that_asks_for_more_is_refused(gpt2):
    """Capped scores, sinks and masks of a model's own are not computed wrongly."""
    attention = transformers.AttentionInterface()[loaded(gpt2[1]).network.config._attn_implementation]
    x = torch.zeros(1, 4, 1, 16)
    for options, part in (({"softcap": 30.0}, "softcap"), ({"s_aux": x}, "s_aux")):
        with pytest.raises(LmcError, match=part):
            attention(None, x, x, x, None, **options)
    with pytest.raises(LmcError, match="mask of its own"):
        attention(None, x, x, x, x)
