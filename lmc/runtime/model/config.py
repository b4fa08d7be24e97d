"""Reads and checks a model folder's config.json: everything in it is used, known not to change results, or refused by name.

    read_config(Path("SmolLM2-135M-Instruct")).layers    # 30

A key that is read and not used is the worst kind of fault: short prompts look perfect and long ones fall apart.  So a key this file
does not know is an error, never ignored.  It does not know weights or tensors; the position scaling is read in `rope_config.py`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmc.diagnostics import Diagnostic, LmcError
from lmc.runtime.model.decoder_config import DECODERS
from lmc.runtime.model.rope_config import RopeConfig, UnsupportedRope, read_rope
from lmc.runtime.model.windows import UnsupportedWindow, read_windows


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The shape of a Llama-like model.

    hidden, intermediate, head_dim: widths; heads, kv_heads, layers: counts; max_positions: longest context in tokens
    qkv_bias, output_bias, mlp_bias: whether these products have a bias
    qk_norm: whether queries and keys are normalised per head before rotation (Qwen3)
    tied: whether the output matrix is the embedding
    experts, chosen_experts: how many MLPs a layer has and how many of them a token goes through; 0 where it has a plain one
    windows: for each layer how many tokens a query sees, its own included, or None where it sees all
    """

    family: str
    vocab_size: int
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    max_positions: int
    norm_eps: float
    rope: RopeConfig
    qkv_bias: bool
    output_bias: bool
    mlp_bias: bool
    qk_norm: bool
    tied: bool
    experts: int
    chosen_experts: int
    windows: tuple[int | None, ...]

    @property
    def window(self) -> int | None:
        """The window of the layers that have one."""
        return next((window for window in self.windows if window is not None), None)

    def slot_bytes(self, item_bytes: int) -> int:
        """Bytes of keys and values of one token over all layers; `item_bytes`: of one number."""
        return self.layers * 2 * self.kv_heads * self.head_dim * item_bytes


_ARCHITECTURES = {
    "llama": "LlamaForCausalLM", "mistral": "MistralForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM",
    "mixtral": "MixtralForCausalLM",
}

# Read by this file, beside `model_type` and `architectures`.
_USED = frozenset({
    "attention_bias", "head_dim", "hidden_act", "hidden_size", "intermediate_size", "layer_types", "max_position_embeddings",
    "max_window_layers", "mlp_bias", "num_attention_heads", "num_hidden_layers", "num_key_value_heads", "partial_rotary_factor", "quantization_config",
    "rms_norm_eps", "rope_interleaved", "rope_parameters", "rope_scaling", "rope_theta", "sliding_window", "tie_word_embeddings",
    "use_sliding_window", "vocab_size", "model_type", "architectures",
})

_MIXTRAL = frozenset({"num_local_experts", "num_experts_per_tok"})
# They steer the training of the router alone.
_MIXTRAL_TRAINING = frozenset({"output_router_logits", "router_aux_loss_coef", "router_jitter_noise"})

# Names, training, caching and bookkeeping; token ids belong to the tokenizer.  `pretraining_tp` splits a product without changing
# it.
_IRRELEVANT = frozenset({
    "_name_or_path", "_attn_implementation", "_attn_implementation_autoset", "_commit_hash", "attention_dropout",
    "attn_implementation", "auto_map", "bos_token_id", "chunk_size_feed_forward", "dtype", "eos_token_id", "finetuning_task",
    "gradient_checkpointing", "id2label", "initializer_range", "is_decoder", "is_encoder_decoder", "is_llama_config", "label2id",
    "name_or_path", "output_attentions", "output_hidden_states", "pad_token_id", "pretraining_tp",
    "problem_type", "return_dict", "task_specific_params", "tokenizer_class", "torch_dtype", "transformers.js_config",
    "transformers_version", "unsloth_fixed", "unsloth_version", "use_cache",
})


def read_config(folder: Path) -> ModelConfig:
    """The folder's config.json.  Raises `LmcError` with every fault found, each naming the key and the file."""
    path = folder / "config.json"
    keys = _read_json(path)
    reader = _Reader(path, keys)
    family = _family(reader)
    if family is None:
        raise LmcError(reader.faults)
    config = _shape(reader, family)
    _refuse_what_is_not_done(reader, family)
    for key in sorted(set(keys) - _known_keys(family)):
        reader.fault("E0812", f"unknown key `{key}` (value {_shown(keys[key])})",
                     "lmc does not know whether it changes results; remove it from config.json if you are sure that it does not")
    if reader.faults:
        raise LmcError(reader.faults)
    return config


def _known_keys(family: str) -> frozenset[str]:
    return _USED | _IRRELEVANT | (_MIXTRAL | _MIXTRAL_TRAINING if family == "mixtral" else frozenset())


class _Reader:
    """Typed access to the keys; what is wrong is collected, not raised, so that all faults are shown at once."""

    __slots__ = ("path", "keys", "faults")

    def __init__(self, path: Path, keys: dict[str, Any]):
        self.path, self.keys, self.faults = path, keys, []

    def fault(self, code: str, message: str, help: str | None = None) -> None:
        self.faults.append(Diagnostic(code, f"{self.path}: {message}", None, help=help))

    def count(self, key: str, default: int | None = None) -> int:
        """A whole number of at least 1; a faulty one is reported and read as 1."""
        value = self.keys.get(key)
        value = default if value is None else value
        if value is None:
            self.fault("E0811", f"the key `{key}` is missing")
        elif isinstance(value, bool) or not isinstance(value, int) or value < 1:
            self.fault("E0811", f"`{key}` is {_shown(value)}, expected a whole number of at least 1")
        else:
            return value
        return 1

    def flag(self, key: str, default: bool) -> bool:
        value = self.keys.get(key)
        if value is not None and not isinstance(value, bool):
            self.fault("E0811", f"`{key}` is {_shown(value)}, expected true or false")
        return bool(default if value is None else value)

    def number(self, key: str, default: float) -> float:
        value = self.keys.get(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
            self.fault("E0811", f"`{key}` is {_shown(value)}, expected a positive number")
            return default
        return float(value)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        keys = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        help = "give a Hugging Face model folder: config.json, *.safetensors, tokenizer.json"
        raise LmcError(Diagnostic("E0804", f"{path}: no such file", None, help=help)) from None
    except (OSError, ValueError) as error:
        raise LmcError(Diagnostic("E0806", f"{path}: cannot be read as JSON: {error}", None)) from None
    if not isinstance(keys, dict):
        raise LmcError(Diagnostic("E0806", f"{path}: expected a JSON object, found {_shown(keys)}", None))
    return keys


def _family(reader: _Reader) -> str | None:
    named = reader.keys.get("architectures")
    kind = reader.keys.get("model_type")
    supported = "supported are " + ", ".join((*_ARCHITECTURES.values(), *DECODERS))
    if kind is None and isinstance(named, list) and len(named) == 1:
        kind = next((k for k, a in _ARCHITECTURES.items() if a == named[0]), named[0])
    if kind not in _ARCHITECTURES:
        reader.fault("E0811", f"the model type {_shown(kind)} is not supported", supported)
        return None
    if named is not None and named != [_ARCHITECTURES[kind]]:
        reader.fault("E0811", f"the architecture {_shown(named)} is not supported", supported)
        return None
    return kind


def _shape(reader: _Reader, family: str) -> ModelConfig:
    heads = reader.count("num_attention_heads")
    # Null means one for each head; left out, the families but Llama mean numbers of their own, which nobody means.
    may_lack = family == "llama" or "num_key_value_heads" in reader.keys
    kv_heads = reader.count("num_key_value_heads", heads if may_lack else None)
    hidden = reader.count("hidden_size")
    head_dim = reader.count("head_dim", 128 if family == "qwen3" else max(1, hidden // heads))
    if "head_dim" not in reader.keys and hidden % heads and family != "qwen3":
        reader.fault("E0811", f"`hidden_size` {hidden} is not a multiple of `num_attention_heads` {heads}")
    if heads % kv_heads:
        reader.fault("E0811", f"`num_attention_heads` {heads} is not a multiple of `num_key_value_heads` {kv_heads}")
    if head_dim % 2:
        reader.fault("E0811", f"`head_dim` is {head_dim}, expected an even number")
    rope = _rope(reader, family)
    max_positions = rope.longest(reader.count("max_position_embeddings"))
    layers = reader.count("num_hidden_layers")
    experts, chosen = _experts(reader) if family == "mixtral" else (0, 0)
    bias = reader.flag("attention_bias", family == "qwen2")
    return ModelConfig(
        family=family, vocab_size=reader.count("vocab_size"), hidden=hidden, intermediate=reader.count("intermediate_size"),
        layers=layers, heads=heads, kv_heads=kv_heads, head_dim=head_dim, max_positions=max_positions,
        norm_eps=reader.number("rms_norm_eps", 1e-5 if family == "mixtral" else 1e-6), rope=rope,
        # Qwen2 has the bias on queries, keys and values always, and never on the output, whatever a stray key says.
        qkv_bias=bias or family == "qwen2", output_bias=bias and family != "qwen2", mlp_bias=reader.flag("mlp_bias", False),
        qk_norm=family == "qwen3", tied=reader.flag("tie_word_embeddings", False),
        experts=experts, chosen_experts=chosen, windows=_windows(reader, family, layers, max_positions),
    )


def _experts(reader: _Reader) -> tuple[int, int]:
    experts, chosen = reader.count("num_local_experts", 8), reader.count("num_experts_per_tok", 2)
    if chosen > experts:
        reader.fault("E0811", f"`num_experts_per_tok` is {chosen}, expected at most `num_local_experts`, {experts}")
    return experts, chosen


def _rope(reader: _Reader, family: str) -> RopeConfig:
    try:
        return read_rope(reader.keys, default_theta=1e6 if family == "mixtral" else 1e4)
    except UnsupportedRope as error:
        reader.fault("E0811", str(error), "supported position scaling: none, linear, dynamic, llama3, yarn")
        return RopeConfig(theta=10000.0)


def _windows(reader: _Reader, family: str, layers: int, max_positions: int) -> tuple[int | None, ...]:
    try:
        return read_windows(reader.keys, family, layers, max_positions)
    except UnsupportedWindow as error:
        reader.fault("E0811", str(error))
        return (None,) * layers


def _refuse_what_is_not_done(reader: _Reader, family: str) -> None:
    """Keys whose usual value does nothing and whose other values would need code that is not here."""
    keys = reader.keys
    inert = {"rope_interleaved": (False,), "partial_rotary_factor": (1,), "quantization_config": ()}
    if family in ("qwen2", "mistral", "mixtral"):
        inert["attention_bias"] = (family == "qwen2",)
    if family != "llama":
        inert["mlp_bias"] = (False,)
    for key, values in inert.items():
        if keys.get(key) is not None and keys[key] not in values:
            reader.fault("E0811", f"`{key}` = {_shown(keys[key])} is not supported for {family} models")
    if keys.get("hidden_act") not in (None, "silu", "swish"):
        reader.fault("E0811", f"`hidden_act` is {_shown(keys['hidden_act'])}, expected \"silu\"")


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."
