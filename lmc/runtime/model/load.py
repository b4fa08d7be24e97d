"""A model folder as a model that runs.

    model = load_model(Path("SmolLM2-135M-Instruct"), dtype="float32")
    model.allocate(8192)

Every check (config, files, names and shapes of all tensors) is made before the first number is read, and every tensor is used exactly
once.  This file does not know how a folder comes to be (see `registry.py`) or how the model computes.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from math import prod
from pathlib import Path

import torch

from lmc.diagnostics import Diagnostic, LmcError, render
from lmc.runtime.batch import Model
from lmc.runtime.model.config import ModelConfig, read_config
from lmc.runtime.model.decoder import load_decoder
from lmc.runtime.model.decoder_config import DecoderConfig, read_decoder_config
from lmc.runtime.model.exact import check_exact
from lmc.runtime.model.head import Head
from lmc.runtime.model.kernels import choose_kernels, fallback_warning
from lmc.runtime.model.llama import Layer, Llama
from lmc.runtime.model.mlp import Experts, GatedMlp
from lmc.runtime.model.named_weights import EMBEDDING, EXPERT_PARTS, HEAD, MLP_PARTS, NamedWeights
from lmc.runtime.model.native_llama import NativeLlama
from lmc.runtime.model.pack_weights import pack_weights
from lmc.runtime.model.weights import StoredTensor, find_tensors, read_tensors

_EXPERTS = "block_sparse_moe.experts."

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def load_model(folder: Path, *, dtype: str = "float32", deterministic: bool = False, kernels: str = "torch",
               cache: Path | None = None) -> Model:
    """The model in `folder`, computing in `dtype` ("float32" or "bfloat16").

    deterministic: a row's bits do not depend on neighbours or chunking; at some cost in speed with torch, always so natively.
    kernels: "torch", "native", "native:LEVEL", "triton", or "auto": a GPU, else native where that can be, else torch with a warning
    cache: the folder in which the native library is kept
    Raises `LmcError` (E0804, E0806, E0811 to E0816, E0822) naming the file and the key or tensor at fault.
    """
    folder = Path(folder)
    config, stored = _openable(folder, dtype)
    chosen = choose_kernels(kernels, config, cache)
    if (warning := fallback_warning(chosen)) is not None:
        warnings.warn(render(warning, None), stacklevel=2)
    if isinstance(config, DecoderConfig):
        return load_decoder(folder, config, DTYPES[dtype], deterministic=deterministic)
    weights = NamedWeights(read_tensors(stored), DTYPES[dtype], deterministic and chosen.name == "torch")
    if config.tied:
        weights.drop_tied_head(folder)
    if chosen.gpu:
        model = _on_gpu(config, weights, deterministic)
    elif chosen.library is not None:
        model = NativeLlama(pack_weights(config, weights), chosen.library, level=chosen.level, threads=chosen.threads)
    else:
        model = _build(config, weights)
    weights.assert_all_used()
    if weights.deterministic:
        check_exact(model)
    return model


def _on_gpu(config: ModelConfig, weights: NamedWeights, deterministic: bool) -> Model:
    # Triton is not installed everywhere, and takes long to import.
    from lmc.runtime.model.gpu.model import GpuLlama

    return GpuLlama(config, weights, torch.device("cuda"), deterministic=deterministic)


def check_model(folder: Path, *, dtype: str = "float32") -> ModelConfig | DecoderConfig:
    """Every check of `load_model` but that of `deterministic`, and no weights read.  Raises as it does."""
    return _openable(Path(folder), dtype)[0]


def stored_numbers(folder: Path) -> int:
    """How many numbers the files hold."""
    return sum(prod(tensor.shape) for tensor in find_tensors(folder).values())


def _openable(folder: Path, dtype: str) -> tuple[ModelConfig | DecoderConfig, list[StoredTensor]]:
    """The tensors of a decoder that transformers computes are its own affair."""
    if dtype not in DTYPES:
        raise LmcError(Diagnostic("E0811", f"the dtype `{dtype}` is not supported", None, help="float32 or bfloat16"))
    if (decoder := read_decoder_config(folder)) is not None:
        return decoder, list(find_tensors(folder).values())
    config = read_config(folder)
    return config, _checked(folder, config, expected_shapes(config), find_tensors(folder))


def expected_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor that the model needs, as Hugging Face spells them."""
    shapes = {EMBEDDING: (config.vocab_size, config.hidden), "model.norm.weight": (config.hidden,)}
    for number in range(config.layers):
        shapes |= {f"model.layers.{number}.{name}": shape for name, shape in _layer_shapes(config).items()}
    if not config.tied:
        shapes[HEAD] = (config.vocab_size, config.hidden)
    return shapes


def _layer_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    hidden = config.hidden
    wide, narrow = config.heads * config.head_dim, config.kv_heads * config.head_dim
    shapes: dict[str, tuple[int, ...]] = {"input_layernorm.weight": (hidden,), "post_attention_layernorm.weight": (hidden,)}
    products = (
        ("self_attn.q_proj", wide, hidden, config.qkv_bias), ("self_attn.k_proj", narrow, hidden, config.qkv_bias),
        ("self_attn.v_proj", narrow, hidden, config.qkv_bias), ("self_attn.o_proj", hidden, wide, config.output_bias),
        *_mlp_shapes(config),
    )
    for name, rows, columns, bias in products:
        shapes[f"{name}.weight"] = (rows, columns)
        if bias:
            shapes[f"{name}.bias"] = (rows,)
    if config.qk_norm:
        shapes |= {"self_attn.q_norm.weight": (config.head_dim,), "self_attn.k_norm.weight": (config.head_dim,)}
    return shapes


def _mlp_shapes(config: ModelConfig) -> Iterator[tuple[str, int, int, bool]]:
    """Name, rows, columns and whether there is a bias."""
    hidden, inner, bias = config.hidden, config.intermediate, config.mlp_bias
    if config.experts:
        yield "block_sparse_moe.gate", config.experts, hidden, False
    names = [f"{_EXPERTS}{number}." for number in range(config.experts)] or ["mlp."]
    gate, up, down = EXPERT_PARTS if config.experts else MLP_PARTS
    for prefix in names:
        yield from ((f"{prefix}{gate}", inner, hidden, bias), (f"{prefix}{up}", inner, hidden, bias),
                    (f"{prefix}{down}", hidden, inner, bias))


def _checked(folder: Path, config: ModelConfig, shapes: dict[str, tuple[int, ...]],
             found: dict[str, StoredTensor]) -> list[StoredTensor]:
    """The tensors to read.  Raises with every one that is missing, unexpected, of another shape or no floating-point number."""
    faults = []
    again = "the weights do not fit config.json: fetch both from the same place"
    for name in sorted(set(shapes) - set(found)):
        help = again
        if name == HEAD:
            help = "config.json says `tie_word_embeddings: false`; set it to true if the output matrix is the embedding"
        faults.append(Diagnostic("E0815", f"{folder}: the tensor `{name}` is missing", None, help=help))
    wanted = []
    for name, tensor in sorted(found.items()):
        # Older checkpoints store the rotary frequencies, which are computed; a tied model may repeat its embedding.
        if name.endswith(".rotary_emb.inv_freq"):
            continue
        shape = shapes.get(EMBEDDING if name == HEAD and config.tied else name)
        fault = _tensor_fault(tensor, shape)
        if fault:
            faults.append(Diagnostic("E0815", f"{tensor.file}: the tensor `{name}` {fault}", None, help=again))
        wanted.append(tensor)
    if faults:
        raise LmcError(faults)
    return wanted


def _tensor_fault(tensor: StoredTensor, shape: tuple[int, ...] | None) -> str | None:
    if shape is None:
        return "is not part of this model"
    if tensor.shape != shape:
        return f"has the shape {list(tensor.shape)}, expected {list(shape)}"
    if not tensor.is_float:
        return f"has the number format {tensor.dtype}, expected F32, F16 or BF16"
    return None


def _build(config: ModelConfig, weights: NamedWeights) -> Llama:
    with torch.inference_mode():
        embedding = weights.matrix(EMBEDDING)
        layers = [_layer(config, weights, f"model.layers.{number}.") for number in range(config.layers)]
        product = weights.product(embedding if config.tied else weights.matrix(HEAD), None)
        head = Head(product, embedding if config.tied else None)
        final_norm = weights.norm("model.norm.weight")
    return Llama(config, embedding, layers, final_norm, head, deterministic=weights.deterministic)


def _layer(config: ModelConfig, weights: NamedWeights, prefix: str) -> Layer:
    return Layer(
        attention_norm=weights.norm(f"{prefix}input_layernorm.weight"),
        qkv=weights.linear(f"{prefix}self_attn.", "q_proj", "k_proj", "v_proj"),
        query_norm=weights.norm(f"{prefix}self_attn.q_norm.weight"),
        key_norm=weights.norm(f"{prefix}self_attn.k_norm.weight"),
        output=weights.linear(f"{prefix}self_attn.", "o_proj"),
        mlp_norm=weights.norm(f"{prefix}post_attention_layernorm.weight"),
        mlp=_experts(config, weights, prefix) if config.experts else _mlp(weights, f"{prefix}mlp.", MLP_PARTS),
    )


def _experts(config: ModelConfig, weights: NamedWeights, prefix: str) -> Experts:
    router = weights.linear(f"{prefix}block_sparse_moe.", "gate")
    experts = (_mlp(weights, f"{prefix}{_EXPERTS}{number}.", EXPERT_PARTS) for number in range(config.experts))
    return Experts(router, tuple(experts), config.chosen_experts)


def _mlp(weights: NamedWeights, prefix: str, parts: tuple[str, str, str]) -> GatedMlp:
    gate, up, down = parts
    return GatedMlp(weights.linear(prefix, gate, up), weights.linear(prefix, down), weights.deterministic)
