"""Reading GGUF: blocks as the `gguf` package reads them, rows as Hugging Face wants them, and the converted folder."""

import json

import gguf
import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file

from lmc.diagnostics import LmcError
from lmc.runtime.model.convert import build_tokenizer, write_folder
from lmc.runtime.model.folder import check_folder
from lmc.runtime.model.gguf import GgufTensor, dequantise, named_weights, open_gguf
from lmc.runtime.model.gguf_config import generation_config, tokenizer_config
from lmc.runtime.model.load import load_model
from lmc.runtime.tokenizer import load_tokenizer
from tests.runtime.model.tiny import reference_logits, whole
from tests.runtime.model.tiny_gguf import HEADS, HIDDEN, KIND, shapes, write_gguf


@pytest.mark.parametrize("kind", [KIND.Q4_1, KIND.Q8_0, KIND.F16, KIND.F32, KIND.BF16, KIND.Q4_0, KIND.Q5_1])
def test_blocks_are_read_as_the_gguf_package_reads_them(tmp_path, kind):
    rng = np.random.default_rng(3)
    raw = gguf.quantize((rng.standard_normal((50, 96)) * 10).astype(np.float32), kind)
    expected = gguf.dequantize(raw, kind)
    ours = dequantise(tmp_path, GgufTensor("x", (50, 96), kind, raw.reshape(-1).view(np.uint8)))
    assert ours.dtype == torch.float32 and np.array_equal(ours.numpy(), expected)


@pytest.mark.parametrize("kind", [KIND.Q4_K, KIND.Q5_K, KIND.Q6_K, KIND.Q3_K, KIND.Q2_K, KIND.IQ4_XS])
def test_blocks_of_256_weights_are_read_as_the_gguf_package_reads_them(tmp_path, kind):
    raw = np.random.default_rng(3).integers(0, 60, (5, *gguf.quant_shape_to_byte_shape((512,), kind)), np.uint8)
    ours = dequantise(tmp_path, GgufTensor("x", (5, 512), kind, raw.reshape(-1)))
    assert np.array_equal(ours.numpy(), gguf.dequantize(raw, kind)) and ours.shape == (5, 512)


def test_other_blocks_are_refused_by_name(tmp_path):
    with pytest.raises(LmcError, match="stored as Q8_K"):
        dequantise(tmp_path, GgufTensor("x", (1, 256), KIND.Q8_K, np.zeros(292, np.uint8)))


def test_weights_have_the_names_and_rows_of_hugging_face(tmp_path):
    file = open_gguf(write_gguf(tmp_path / "m.gguf"))
    weights = dict(named_weights(file))
    assert len(weights) == len(shapes()) and weights["model.embed_tokens.weight"].shape == shapes()["token_embd.weight"][0]
    stored = dequantise(tmp_path, file.tensors["blk.1.attn_q.weight"])
    ours = weights["model.layers.1.self_attn.q_proj.weight"]
    size = HIDDEN // HEADS
    for head in range(HEADS):
        for row in range(size):
            # Row `half * size / 2 + i` of a head lies at `2 i + half` in llama.cpp's order.
            half, i = divmod(row, size // 2)
            assert torch.equal(ours[head * size + row], stored[head * size + 2 * i + half])
    assert torch.equal(weights["model.layers.1.self_attn.v_proj.weight"], dequantise(tmp_path, file.tensors["blk.1.attn_v.weight"]))


def test_the_folder_is_complete(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    file = open_gguf(write_gguf(tmp_path / "m.gguf"))
    seen = []
    write_folder(file, folder, lambda what, done, total: seen.append((done, total)))
    check_folder(folder)
    assert seen[-1][0] == seen[-1][1] and [d for d, _ in seen] == sorted(d for d, _ in seen)
    config = json.loads((folder / "config.json").read_text())
    assert (config["rms_norm_eps"], config["rope_theta"], config["tie_word_embeddings"]) == (1e-5, 100000.0, True)
    assert (config["num_attention_heads"], config["num_key_value_heads"], config["head_dim"]) == (4, 2, 16)
    stored = load_file(folder / "model.safetensors")
    assert all(torch.equal(stored[name], weight) for name, weight in named_weights(file)) and len(stored) == len(shapes())
    tokenizer = load_tokenizer(folder)
    assert tokenizer.end_ids == {0, 2} and tokenizer.bos_id is None
    assert [tokenizer.token_bytes[i] for i in tokenizer.encode("\n\n1")] == [b"\n\n", b"1"]


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_the_folder_computes_as_transformers_says(tmp_path, family):
    """Transformers reads the written folder, and lmc gives its logits; the rows of Qwen are not turned."""
    file = open_gguf(write_gguf(tmp_path / "m.gguf", family=family))
    folder = tmp_path / "folder"
    folder.mkdir()
    write_folder(file, folder)
    stored = load_file(folder / "model.safetensors")["model.layers.0.self_attn.q_proj.weight"]
    assert torch.equal(stored, dequantise(tmp_path, file.tensors["blk.0.attn_q.weight"])) == (family != "llama")
    model, report = transformers.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"] and not report["mismatched_keys"]
    ours = load_model(folder)
    ours.allocate(64)
    got = ours.forward([whole([1, 5, 9, 100, 7], [3, 1, 4, 0, 9])])
    # The random weights are large, and so are the logits.
    torch.testing.assert_close(got, reference_logits(model.eval(), [1, 5, 9, 100, 7]), rtol=1e-4, atol=1e-3)


TEXTS = ("I'LL say 12345 things, don't you?\n\n  Yes:  3.14 ", "naïve cafe\u0301 ￼ ١٢٣٤ 北京  \r\n\tx=1;\n\n\n", "a\u00a0 b  c   \n d")


def test_qwen_text_is_split_as_transformers_splits_it(tmp_path):
    ours = build_tokenizer(open_gguf(write_gguf(tmp_path / "m.gguf", pre="qwen2")))
    theirs = transformers.Qwen2Tokenizer(ours.get_vocab(), [("Ċ", "Ċ"), ("Ġ", "Ġ")]).backend_tokenizer
    for text in TEXTS:
        assert ours.encode(text).ids == theirs.encode(text).ids
        normal = ours.normalizer.normalize_str(text)
        assert ours.pre_tokenizer.pre_tokenize_str(normal) == theirs.pre_tokenizer.pre_tokenize_str(normal)


def test_llama_3_takes_digits_by_threes_and_whole_pieces_first(tmp_path):
    tokenizer = build_tokenizer(open_gguf(write_gguf(tmp_path / "m.gguf", pre="llama-bpe")))
    pieces = [piece for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str("I'LL pay 12345 euros!\n\n x")]
    assert pieces == ["I", "'LL", "Ġpay", "Ġ", "123", "45", "Ġeuros", "!ĊĊ", "Ġx"]
    assert tokenizer.model.ignore_merges


def test_llama_3_begins_a_text_and_ends_a_turn(tmp_path):
    file = open_gguf(write_gguf(tmp_path / "m.gguf", pre="llama-bpe", eot=1))
    assert tokenizer_config(file)["add_bos_token"] is True
    assert generation_config(file)["eos_token_id"] == [2, 1, 0]


@pytest.mark.parametrize(
    "change, why",
    [({"pre": "falcon"}, "split by the rule `falcon`"), ({"extra": "blk.0.ffn_gate_inp.weight"}, "has no place in a Llama or Qwen"),
     ({"family": "gemma"}, "it is a `gemma` model"), ({"expert_count": 8}, "does not know the entry `llama.expert_count`"),
     ({"rope.dimension_count": 8}, "`llama.rope.dimension_count` is 8, expected 16"),
     ({"llama.rope.scaling.type": "yarn"}, "`llama.rope.scaling.type` is yarn")],
    ids=str,
)
def test_what_cannot_be_converted_is_refused(tmp_path, change, why):
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(LmcError, match=why) as caught:
        write_folder(open_gguf(write_gguf(tmp_path / "m.gguf", **change)), folder)
    assert caught.value.diagnostics[0].code == "E0806" and "m.gguf" in str(caught.value)


@pytest.mark.parametrize("keep", [0, 3, 100, 5000])
def test_a_file_that_is_cut_off_is_named(tmp_path, keep):
    path = write_gguf(tmp_path / "m.gguf")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(LmcError, match="m.gguf") as caught:
        open_gguf(path)
    assert caught.value.diagnostics[0].code == "E0806"
