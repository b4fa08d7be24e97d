"""Reading GGUF: blocks as the `gguf` package reads them, rows as Hugging Face wants them, and the converted folder."""

import json

import gguf
import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from lmc.diagnostics import LmcError
from lmc.runtime.model.convert import write_folder
from lmc.runtime.model.folder import check_folder
from lmc.runtime.model.gguf import GgufTensor, dequantise, llama_weights, open_gguf
from lmc.runtime.tokenizer import load_tokenizer
from tests.runtime.model.tiny_gguf import HEADS, HIDDEN, KIND, shapes, write_gguf


@pytest.mark.parametrize("kind", [KIND.Q4_1, KIND.Q8_0, KIND.F16, KIND.F32])
def test_blocks_are_read_as_the_gguf_package_reads_them(tmp_path, kind):
    rng = np.random.default_rng(3)
    raw = gguf.quantize((rng.standard_normal((50, 96)) * 10).astype(np.float32), kind)
    expected = gguf.dequantize(raw, kind)
    ours = dequantise(tmp_path, GgufTensor("x", (50, 96), kind, raw.reshape(-1).view(np.uint8)))
    assert ours.dtype == torch.float32 and np.array_equal(ours.numpy(), expected)


def test_other_blocks_are_refused_by_name(tmp_path):
    with pytest.raises(LmcError, match="stored as Q6_K"):
        dequantise(tmp_path, GgufTensor("x", (1, 256), KIND.Q6_K, np.zeros(210, np.uint8)))


def test_weights_have_the_names_and_rows_of_hugging_face(tmp_path):
    file = open_gguf(write_gguf(tmp_path / "m.gguf"))
    weights = dict(llama_weights(file))
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
    assert all(torch.equal(stored[name], weight) for name, weight in llama_weights(file)) and len(stored) == len(shapes())
    tokenizer = load_tokenizer(folder)
    assert tokenizer.end_ids == {0, 2} and tokenizer.bos_id is None
    assert [tokenizer.token_bytes[i] for i in tokenizer.encode("\n\n1")] == [b"\n\n", b"1"]


def test_transformers_computes_with_the_folder(tmp_path):
    transformers = pytest.importorskip("transformers")
    folder = tmp_path / "folder"
    folder.mkdir()
    write_folder(open_gguf(write_gguf(tmp_path / "m.gguf")), folder)
    model, report = transformers.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"] and not report["mismatched_keys"]
    assert torch.isfinite(model(torch.tensor([[1, 5, 9]])).logits).all()


@pytest.mark.parametrize(
    "change, why",
    [({"pre": "llama-bpe"}, "split by the rule `llama-bpe`"), ({"extra": "blk.0.ffn_gate_inp.weight"}, "has no place in a Llama model")],
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
