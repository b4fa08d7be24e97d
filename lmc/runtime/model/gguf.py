"""Reads a GGUF file of the Llama or the Qwen family: its metadata, its vocabulary, and its weights as float32 under their Hugging Face names.

    file = open_gguf(Path("SmolLM2-135M-Instruct.Q4_1.gguf"))
    file.number("llama.block_count")                  -> 30
    for name, tensor in named_weights(file): ...      -> "model.layers.0.self_attn.q_proj.weight", (576, 576) float32

It knows quantisation blocks and how llama.cpp lays rows out; it does not know tokenizers, folders or configs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGMLQuantizationType, GGUFReader, dequantize, quant_shape_to_byte_shape

from lmc.diagnostics import Diagnostic, LmcError

BLOCK = 32
# Bytes of one block of 32 weights.
Q4_1_BYTES = 20  # float16 scale, float16 minimum, 16 bytes of nibbles
Q8_0_BYTES = 34  # float16 scale, 32 signed bytes


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """One stored tensor.  `shape` is in torch's order (rows first); `raw` is what the file holds, as bytes."""

    name: str
    shape: tuple[int, ...]
    kind: GGMLQuantizationType
    raw: np.ndarray


@dataclass(frozen=True, slots=True)
class GgufFile:
    """Metadata by key (numbers, strings, lists) and tensors by name."""

    path: Path
    metadata: dict[str, Any]
    tensors: dict[str, GgufTensor]

    def number(self, key: str) -> int | float:
        return self._get(key, (int, float))

    def text(self, key: str) -> str:
        return self._get(key, str)

    def list(self, key: str) -> list:
        return self._get(key, list)

    def _get(self, key: str, kind: type | tuple[type, ...]) -> Any:
        value = self.metadata.get(key)
        if not isinstance(value, kind):
            raise _broken(self.path, f"the entry `{key}` is missing or of another kind")
        return value


def open_gguf(path: Path) -> GgufFile:
    """Opens the file; tensors stay on disk until they are read.  Raises LmcError E0806 where the file is no GGUF."""
    try:
        reader = GGUFReader(path)
    except (ValueError, KeyError, IndexError, OSError) as error:
        raise _broken(path, f"it cannot be read as GGUF ({error})") from error
    tensors = {
        t.name: GgufTensor(t.name, tuple(int(n) for n in reversed(t.shape)), t.tensor_type, t.data.reshape(-1).view(np.uint8))
        for t in reader.tensors
    }
    return GgufFile(path, {key: field.contents() for key, field in reader.fields.items()}, tensors)


def named_weights(file: GgufFile) -> Iterator[tuple[str, torch.Tensor]]:
    """All weights as float32, under the names that Hugging Face gives them.  A tied output matrix is not repeated."""
    # llama.cpp turns the rows of Llama models alone.
    turned = file.text("general.architecture") == "llama"
    heads = int(file.number("llama.attention.head_count")) if turned else 0
    kv_heads = int(file.number("llama.attention.head_count_kv")) if turned else 0
    for name, tensor in file.tensors.items():
        weight = dequantise(file.path, tensor)
        if turned and name.endswith("attn_q.weight"):
            weight = _unpermute(weight, heads)
        elif turned and name.endswith("attn_k.weight"):
            weight = _unpermute(weight, kv_heads)
        yield _hugging_face_name(file.path, name), weight


def dequantise(path: Path, tensor: GgufTensor) -> torch.Tensor:
    """The tensor as float32, shape (rows, columns) or (columns,).  Raises LmcError E0806 for a kind of block not known here."""
    match tensor.kind:
        case GGMLQuantizationType.F32:
            values = torch.from_numpy(tensor.raw.view(np.float32).copy())
        case GGMLQuantizationType.F16:
            values = torch.from_numpy(tensor.raw.view(np.float16).copy()).float()
        case GGMLQuantizationType.Q8_0:
            values = _q8_0(torch.from_numpy(tensor.raw.copy()))
        case GGMLQuantizationType.Q4_1:
            values = _q4_1(torch.from_numpy(tensor.raw.copy()))
        case kind:
            values = _by_the_package(path, tensor, kind)
    return values.reshape(tensor.shape)


def _by_the_package(path: Path, tensor: GgufTensor, kind: GGMLQuantizationType) -> torch.Tensor:
    # Several times as slow as the four kinds above, and there for all others that the package knows.
    try:
        rows = tensor.raw.reshape(-1, *quant_shape_to_byte_shape(tensor.shape[-1:], kind))
        return torch.from_numpy(dequantize(rows, kind))
    except (NotImplementedError, KeyError) as error:
        raise _broken(path, f"`{tensor.name}` is stored as {kind.name}, which cannot be read") from error


def _q8_0(raw: torch.Tensor) -> torch.Tensor:
    # raw: (bytes,) uint8 -> (weights,) float32
    blocks = raw.reshape(-1, Q8_0_BYTES)
    scale = blocks[:, :2].contiguous().view(torch.float16).float()
    return (blocks[:, 2:].contiguous().view(torch.int8).float() * scale).reshape(-1)


def _q4_1(raw: torch.Tensor) -> torch.Tensor:
    # raw: (bytes,) uint8 -> (weights,) float32; the low nibbles are the first half of a block.
    blocks = raw.reshape(-1, Q4_1_BYTES)
    scale = blocks[:, :2].contiguous().view(torch.float16).float()
    minimum = blocks[:, 2:4].contiguous().view(torch.float16).float()
    nibbles = blocks[:, 4:]
    values = torch.cat((nibbles & 15, nibbles >> 4), dim=1).float()
    return (values * scale + minimum).reshape(-1)


def _unpermute(weight: torch.Tensor, heads: int) -> torch.Tensor:
    # llama.cpp interleaves the two halves that rotary position turns together; Hugging Face keeps them one after the other.
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).transpose(1, 2).reshape(rows, columns)


_TOP = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_LAYER = {
    "attn_norm.weight": "input_layernorm.weight",
    "attn_q.weight": "self_attn.q_proj.weight",
    "attn_k.weight": "self_attn.k_proj.weight",
    "attn_v.weight": "self_attn.v_proj.weight",
    "attn_q.bias": "self_attn.q_proj.bias",
    "attn_k.bias": "self_attn.k_proj.bias",
    "attn_v.bias": "self_attn.v_proj.bias",
    "attn_q_norm.weight": "self_attn.q_norm.weight",
    "attn_k_norm.weight": "self_attn.k_norm.weight",
    "attn_output.weight": "self_attn.o_proj.weight",
    "ffn_norm.weight": "post_attention_layernorm.weight",
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
}


def _hugging_face_name(path: Path, name: str) -> str:
    if name in _TOP:
        return _TOP[name]
    block, _, rest = name.removeprefix("blk.").partition(".")
    if not name.startswith("blk.") or rest not in _LAYER:
        raise _broken(path, f"the tensor `{name}` has no place in a Llama or Qwen model")
    return f"model.layers.{block}.{_LAYER[rest]}"


def _broken(path: Path, why: str) -> LmcError:
    return LmcError(Diagnostic("E0806", f"cannot read the model file {path}: {why}", None,
                               help="fetch the file again, or use a folder with safetensors"))
