"""From the tensors of a checkpoint to what the native step reads.

This file knows the tensors' names within a layer, and nothing of the layout (`packed.py`) or of the step (`native_llama.py`).
"""

from __future__ import annotations

import torch

from lmc.runtime.model.config import ModelConfig
from lmc.runtime.model.large_memory import LargeMemory
from lmc.runtime.model.named_weights import EMBEDDING, EXPERT_PARTS, HEAD, MLP_PARTS, NamedWeights
from lmc.runtime.model.native_llama import PackedExperts, PackedLayer, PackedMlp, PackedWeights
from lmc.runtime.model.packed import pack, pack_gate_up, pad_lanes


@torch.inference_mode()
def pack_weights(config: ModelConfig, weights: NamedWeights) -> PackedWeights:
    """Takes every tensor of the model out of `weights`."""
    memory = LargeMemory()
    embedding = weights.matrix(EMBEDDING).contiguous()
    layers = [_layer(memory, config, weights, f"model.layers.{number}.") for number in range(config.layers)]
    head = pack(memory, embedding if config.tied else weights.matrix(HEAD))
    return PackedWeights(config, embedding, layers, pad_lanes(weights.norm("model.norm.weight")), head)


def _layer(memory: LargeMemory, config: ModelConfig, weights: NamedWeights, prefix: str) -> PackedLayer:
    attention = f"{prefix}self_attn."
    return PackedLayer(
        attention_norm=pad_lanes(weights.norm(f"{prefix}input_layernorm.weight")),
        qkv=pack(memory, *weights.stacked(attention, "q_proj", "k_proj", "v_proj")),
        query_norm=_optional_norm(weights, f"{attention}q_norm.weight"),
        key_norm=_optional_norm(weights, f"{attention}k_norm.weight"),
        output=pack(memory, *weights.stacked(attention, "o_proj")),
        mlp_norm=pad_lanes(weights.norm(f"{prefix}post_attention_layernorm.weight")),
        mlp=_experts(memory, config, weights, f"{prefix}block_sparse_moe.") if config.experts else
        _mlp(memory, weights, f"{prefix}mlp.", *MLP_PARTS),
    )


def _mlp(memory: LargeMemory, weights: NamedWeights, prefix: str, gate: str, up: str, down: str) -> PackedMlp:
    return PackedMlp(pack_gate_up(memory, *weights.stacked(prefix, gate, up)), pack(memory, *weights.stacked(prefix, down)))


def _experts(memory: LargeMemory, config: ModelConfig, weights: NamedWeights, prefix: str) -> PackedExperts:
    experts = (_mlp(memory, weights, f"{prefix}experts.{number}.", *EXPERT_PARTS) for number in range(config.experts))
    return PackedExperts(pack(memory, *weights.stacked(prefix, "gate")), tuple(experts), config.chosen_experts)


def _optional_norm(weights: NamedWeights, name: str) -> torch.Tensor | None:
    norm = weights.norm(name)
    return None if norm is None else pad_lanes(norm)
