"""Every key of config.json is used, known not to matter, or an error that names it (cases K-03 and K-01)."""

import json

import pytest
import torch
import transformers

from lmc.diagnostics import LmcError
from lmc.runtime.batch import Row
from lmc.runtime.model.config import read_config
from lmc.runtime.model.load import load_model
from lmc.runtime.model.rope import frequencies, rope_table
from lmc.runtime.model.rope_config import UnsupportedRope, read_rope
from tests.runtime.model import tiny

LLAMA = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 100, "hidden_size": 64, "intermediate_size": 96,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
}


def written(folder, **keys):
    config = {k: v for k, v in {**LLAMA, **keys}.items() if v != "absent"}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def faults(folder, **keys) -> str:
    with pytest.raises(LmcError) as error:
        read_config(written(folder, **keys))
    assert all(str(folder / "config.json") in d.message for d in error.value.diagnostics)
    return "\n".join(f"{d.code} {d.message}" for d in error.value.diagnostics)


def test_reads_the_shape(tmp_path):
    config = read_config(written(tmp_path))
    assert (config.hidden, config.layers, config.heads, config.kv_heads, config.head_dim) == (64, 2, 4, 2, 16)
    assert not (config.qkv_bias or config.output_bias or config.mlp_bias or config.qk_norm or config.tied)
    assert config.norm_eps == 1e-5 and config.rope.theta == 10000.0


@pytest.mark.parametrize("family", ["Llama", "Mistral", "Mixtral", "Qwen2", "Qwen3"])
def test_takes_what_transformers_writes(tmp_path, family):
    getattr(transformers, f"{family}Config")(sliding_window=None).save_pretrained(tmp_path)
    config = read_config(tmp_path)
    assert config.family == family.lower() and config.qkv_bias == (family == "Qwen2") and config.qk_norm == (family == "Qwen3")


def test_takes_the_published_default_models_keys(tmp_path):
    """Those of SmolLM2's own config.json that the Llama family does not have."""
    keys = {"is_llama_config": True, "rope_interleaved": False, "rope_scaling": None, "rope_theta": 100000, "pretraining_tp": 1,
            "transformers.js_config": {"dtype": "q4"}, "torch_dtype": "bfloat16", "use_cache": True}
    assert read_config(written(tmp_path, **keys)).rope.theta == 100000


def test_unknown_key_is_named(tmp_path):
    assert faults(tmp_path, logit_scale=0.5).startswith("E0812") and "`logit_scale` (value 0.5)" in faults(tmp_path, logit_scale=0.5)


def test_all_faults_at_once(tmp_path):
    text = faults(tmp_path, vocab_size="many", num_hidden_layers="absent", attn_logit_softcapping=50, hidden_act="gelu")
    for part in ("`vocab_size` is \"many\"", "`num_hidden_layers` is missing", "`attn_logit_softcapping`", "`hidden_act` is \"gelu\""):
        assert part in text


@pytest.mark.parametrize(("keys", "part"), [
    (dict(model_type="gpt2", architectures=["GPT2LMHeadModel"]), '"gpt2" is not supported'),
    (dict(model_type="gemma2", architectures=["Gemma2ForCausalLM"]), '"gemma2" is not supported'),
    (dict(architectures=["LlamaForSequenceClassification"]), "LlamaForSequenceClassification"),
    (dict(model_type="absent", architectures="absent"), "model type null"),
    (dict(rope_interleaved=True), "`rope_interleaved` = true"),
    (dict(partial_rotary_factor=0.5), "`partial_rotary_factor` = 0.5"),
    (dict(quantization_config={"bits": 4}), "`quantization_config`"),
    (dict(sliding_window=128), "`sliding_window` 128 is shorter"),
    (dict(sliding_window="wide"), "`sliding_window` is 'wide'"),
    (dict(sliding_window=0), "`sliding_window` is 0"),
    (dict(use_sliding_window=True), "`use_sliding_window` = True"),
    (dict(model_type="qwen2", architectures="absent", use_sliding_window="yes"), "`use_sliding_window` is 'yes'"),
    (dict(model_type="qwen2", architectures="absent", use_sliding_window=True, max_window_layers="all"), "`max_window_layers`"),
    (dict(model_type="qwen2", architectures="absent", layer_types=["sliding_attention"] * 2), "there is no window"),
    (dict(model_type="qwen2", architectures="absent", layer_types=["sliding_attention"]), "for each of 2 layers"),
    (dict(model_type="mistral", architectures="absent", sliding_window=8, layer_types=["full_attention"] * 2), "in all layers"),
    (dict(model_type="qwen2", architectures="absent", attention_bias=False), "`attention_bias` = false"),
    (dict(layer_types=["full_attention", "sliding_attention"]), "`layer_types`"),
    (dict(num_local_experts=4), "unknown key `num_local_experts`"),
    (dict(model_type="mixtral", architectures="absent", num_local_experts=2, num_experts_per_tok=3), "at most `num_local_experts`, 2"),
    (dict(model_type="qwen2", architectures="absent", num_key_value_heads="absent"), "`num_key_value_heads` is missing"),
    (dict(num_key_value_heads=3), "not a multiple of `num_key_value_heads`"),
    (dict(hidden_size=65), "not a multiple of `num_attention_heads`"),
    (dict(head_dim=15), "expected an even number"),
    (dict(rms_norm_eps=-1), "`rms_norm_eps` is -1"),
    (dict(tie_word_embeddings="yes"), "`tie_word_embeddings`"),
    (dict(num_attention_heads=True), "`num_attention_heads` is true"),
    (dict(num_attention_heads=0), "`num_attention_heads` is 0"),
    (dict(rope_scaling={"type": "dynamic"}), "`rope_scaling.factor` is None"),
    (dict(rope_scaling={"rope_type": "yarn", "factor": 2.0, "beta_fast": -1}), "`rope_scaling.beta_fast` is -1"),
    (dict(rope_scaling={"rope_type": "yarn", "factor": 2.0, "truncate": 1}), "`rope_scaling.truncate` is 1"),
    (dict(rope_scaling={"rope_type": "yarn", "factor": 2.0, "short_factor": [1]}), "`rope_scaling.short_factor`"),
    (dict(rope_scaling={"rope_type": "wavy"}), "'wavy'"),
    (dict(rope_scaling={"rope_type": "linear"}), "`rope_scaling.factor` is None"),
    (dict(rope_scaling={"rope_type": "linear", "factor": -2}), "`rope_scaling.factor` is -2"),
    (dict(rope_scaling={"rope_type": "linear", "factor": 2.0, "attention_factor": 0.5}), "`rope_scaling.attention_factor`"),
    (dict(rope_scaling={"rope_type": "llama3", "factor": 2.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}), "original_max"),
    (dict(rope_parameters={"rope_type": "default", "rope_theta": 1e4}, rope_theta=5e5), "`rope_theta` is 500000.0"),
    (dict(rope_parameters={"full_attention": {"rope_type": "default"}}), "full_attention"),
    (dict(rope_scaling=[1]), "expected an object"),
])
def test_refuses_by_name(tmp_path, keys, part):
    assert part in faults(tmp_path, **keys)


@pytest.mark.parametrize("keys", [dict(sliding_window=256), dict(sliding_window=4096), dict(sliding_window=None)])
def test_window_longer_than_used(tmp_path, keys):
    config = read_config(written(tmp_path, model_type="mistral", architectures="absent", **keys))
    assert config.max_positions == 256 and config.window is None


@pytest.mark.parametrize(("keys", "windows"), [
    (dict(model_type="mistral", sliding_window=8), (8, 8)),
    (dict(model_type="qwen2", sliding_window=8), (None, None)),
    (dict(model_type="qwen2", sliding_window=8, use_sliding_window=True, max_window_layers=1), (None, 8)),
    (dict(model_type="qwen3", sliding_window=8, use_sliding_window=True), (None, None)),
    (dict(model_type="qwen2", sliding_window=8, use_sliding_window=True, layer_types=["sliding_attention", "full_attention"]), (8, None)),
    (dict(model_type="qwen2", use_sliding_window=True, max_position_embeddings=8192, max_window_layers=0), (4096, 4096)),
])
def test_the_window_of_each_layer(tmp_path, keys, windows):
    assert read_config(written(tmp_path, architectures="absent", **keys)).windows == windows


@pytest.mark.parametrize("text", ["", "{", "[1]", "\x00"])
def test_damaged_config(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(LmcError, match="config.json"):
        read_config(tmp_path)


def test_missing_config(tmp_path):
    with pytest.raises(LmcError) as error:
        read_config(tmp_path)
    assert error.value.diagnostics[0].code == "E0804" and "config.json" in error.value.diagnostics[0].message


SCALINGS = [
    {"rope_type": "default"},
    {"rope_type": "linear", "factor": 4.0},
    {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 1024},
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048},
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048, "beta_fast": 16, "beta_slow": 2, "truncate": False,
     "mscale": 1.2, "mscale_all_dim": 0.7},
    {"rope_type": "yarn", "factor": 2.0, "attention_factor": 1.3},
]
DYNAMIC = {"rope_type": "dynamic", "factor": 4.0}
LONG = 16384
POSITIONS = [0, 100, 1000, 8192]


def name_of(scaling: dict) -> str:
    return "-".join(map(str, scaling.values()))


def rotary(scaling: dict):
    """The rotary module of transformers."""
    config = transformers.LlamaConfig(hidden_size=64, num_attention_heads=1, max_position_embeddings=LONG,
                                      rope_parameters={"rope_theta": 500000.0, **scaling})
    return transformers.models.llama.modeling_llama.LlamaRotaryEmbedding(config)


@pytest.mark.parametrize("scaling", [*SCALINGS, DYNAMIC], ids=name_of)
def test_rotary_table_equals_transformers(scaling):
    module = rotary(scaling)
    wanted = [table[0, :, :32] for table in module(torch.zeros(1), torch.tensor([POSITIONS]))]
    for keys in ({"rope_parameters": {"rope_theta": 500000.0, **scaling}}, {"rope_theta": 500000.0, "rope_scaling": scaling}):
        config = read_rope({"max_position_embeddings": LONG, **keys})
        assert torch.equal(frequencies(config, 64), module.inv_freq)
        for ours, theirs in zip(rope_table(config, 64, 8193), wanted):
            assert torch.equal(ours[POSITIONS], theirs)


def test_scalings_differ_from_one_another():
    tables = [rope_table(read_rope({"rope_scaling": s, "max_position_embeddings": LONG}), 64, 300)[0] for s in SCALINGS]
    assert not any(torch.equal(a, b) for i, a in enumerate(tables) for b in tables[:i])


@pytest.mark.parametrize("scaling", SCALINGS[:2], ids=name_of)
def test_rotary_frequencies_by_the_formula(scaling):
    """Against the formula in float64, not only against transformers."""
    got = frequencies(read_rope({"rope_scaling": scaling, "rope_theta": 500000.0}), 64).double()
    wanted = 500000.0 ** (-torch.arange(0, 64, 2).double() / 64) / scaling.get("factor", 1.0)
    assert ((got - wanted).abs() / wanted).max() < 1e-6


def test_old_and_new_spelling_must_agree():
    with pytest.raises(UnsupportedRope, match="different things"):
        read_rope({"rope_parameters": {"rope_type": "linear", "factor": 2.0}, "rope_scaling": {"type": "linear", "factor": 4.0}})


@pytest.mark.parametrize(("scaling", "positions"), [
    (DYNAMIC, 1024), ({"rope_type": "dynamic", "factor": 1.5, "original_max_position_embeddings": 32}, 384),
    ({"type": "yarn", "factor": 4.0}, 1024), ({"type": "linear", "factor": 4.0}, 256),
    ({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}, 256),
])
def test_the_longest_context(tmp_path, scaling, positions):
    """Dynamic scaling and yarn reach beyond what config.json says."""
    assert read_config(written(tmp_path, rope_scaling=scaling)).max_positions == positions


@pytest.mark.parametrize("scaling", [*SCALINGS, DYNAMIC], ids=name_of)
def test_logits_at_far_positions(tmp_path, scaling):
    """A short prompt looks right even with wrong scaling; 8,193 tokens do not."""
    model = tiny.build("Llama", max_position_embeddings=LONG, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
                       head_dim=16, rope_parameters={"rope_theta": 10000.0, **scaling})
    ours = load_model(tiny.save(model, tmp_path))
    ours.allocate(8193)
    tokens = tiny.ids(8193)
    got = ours.forward([Row(tokens, 0, list(range(8193)), POSITIONS)])
    torch.testing.assert_close(got, tiny.reference_logits(model, tokens)[POSITIONS], rtol=1e-4, atol=1e-4)
