"""Which other decoders are computed by transformers over our pool, and what the engine must know of one before it is loaded.

    read_decoder_config(Path("gpt2"))          # its layers, heads and longest context
    read_decoder_config(Path("SmolLM2-…"))     # None: `config.py` reads that

transformers itself reads every key of such a config.json; what would break the pool is refused here.  This file does not know weights.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmc.diagnostics import Diagnostic, LmcError

#: Each is tested against transformers' own attention.  Others may hide their masks or positions from it, so none is taken on trust.
DECODERS = ("gpt2", "gemma", "phi", "phi3", "gpt_neox", "starcoder2", "stablelm", "olmo2", "granite", "cohere", "gemma3_text")
# They stretch all positions of a text once it grows long, so keys could not be kept and rows of a step would change one another.
_UNSTABLE_ROPE = ("dynamic", "longrope")


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """The shape of what a decoder keeps of a token.  family: `model_type`; counts and widths as in `ModelConfig`."""

    family: str
    vocab_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    max_positions: int

    def slot_bytes(self, item_bytes: int) -> int:
        """Bytes of keys and values of one token over all layers; `item_bytes`: of one number."""
        return self.layers * 2 * self.kv_heads * self.head_dim * item_bytes


def read_decoder_config(folder: Path) -> DecoderConfig | None:
    """None where config.json is of another family, or cannot be read at all.  Raises `LmcError` E0811 for what is not supported."""
    path = folder / "config.json"
    try:
        keys = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # Told by `read_config`, with everything else that it checks.
    if not isinstance(keys, dict) or keys.get("model_type") not in DECODERS:
        return None
    # It takes a second to import, and only these families need it.
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    _refuse(path, keys, config)
    heads = config.num_attention_heads
    return DecoderConfig(
        family=keys["model_type"], vocab_size=config.vocab_size, layers=config.num_hidden_layers, heads=heads,
        kv_heads=getattr(config, "num_key_value_heads", None) or heads,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // heads, max_positions=config.max_position_embeddings)


def _refuse(path: Path, keys: dict[str, Any], config: Any) -> None:
    faults = []
    if keys.get("quantization_config") is not None:
        faults.append("`quantization_config` is not supported")
    if getattr(config, "add_cross_attention", False):
        faults.append("`add_cross_attention` is not supported: there is no encoder")
    kinds = _rope_kinds(getattr(config, "rope_parameters", None) or {})
    faults += [f"the position scaling {kind!r} is not supported for {config.model_type} models"
               for kind in sorted(kinds & set(_UNSTABLE_ROPE))]
    if faults:
        raise LmcError([Diagnostic("E0811", f"{path}: {fault}", None) for fault in faults])


def _rope_kinds(parameters: dict[str, Any]) -> set[str]:
    """One scaling, or one for each type of layer."""
    inner = [value for value in parameters.values() if isinstance(value, dict)]
    return set().union(*map(_rope_kinds, inner)) if inner else {parameters.get("rope_type", "default")}
