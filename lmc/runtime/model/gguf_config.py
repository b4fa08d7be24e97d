"""From the metadata of a GGUF file to what a Hugging Face folder says in JSON: the model's shape, its special tokens, its template.

    model_config(open_gguf(path))     {"model_type": "llama", "hidden_size": 576, …}

Every entry about the model is used, checked to say nothing new, or an error that names it.  This file does not know weights or how
text is split.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lmc.diagnostics import Diagnostic, LmcError
from lmc.runtime.model.gguf import GgufFile

_ARCHITECTURES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}
_USED = frozenset({
    "block_count", "context_length", "embedding_length", "feed_forward_length", "attention.head_count", "attention.head_count_kv",
    "attention.key_length", "attention.value_length", "attention.layer_norm_rms_epsilon", "rope.freq_base", "rope.dimension_count",
    "rope.scaling.type", "rope.scaling.factor", "vocab_size",
})


def model_config(file: GgufFile) -> dict[str, Any]:
    """What config.json says.  Raises LmcError E0806 for a model of another kind, or one with something that is not known."""
    family = architecture(file)
    if unknown := sorted(key for key in file.metadata if key.startswith(f"{family}.") and key.removeprefix(f"{family}.") not in _USED):
        raise cannot_convert(file, f"it does not know the entry `{unknown[0]}` ({str(file.metadata[unknown[0]])[:60]})")
    heads, hidden, tokens = _number(file, "attention.head_count"), _number(file, "embedding_length"), file.list("tokenizer.ggml.tokens")
    head_dim = file.metadata.get(f"{family}.attention.key_length", hidden // heads)
    _check_same(file, "attention.value_length", head_dim)
    _check_same(file, "rope.dimension_count", head_dim)
    _check_same(file, "vocab_size", len(tokens))
    return {
        "architectures": [_ARCHITECTURES[family]], "model_type": family, "vocab_size": len(tokens), "hidden_size": hidden,
        "intermediate_size": _number(file, "feed_forward_length"), "num_hidden_layers": _number(file, "block_count"),
        "num_attention_heads": heads, "num_key_value_heads": _number(file, "attention.head_count_kv"), "head_dim": head_dim,
        "hidden_act": "silu", "max_position_embeddings": _number(file, "context_length"),
        "rms_norm_eps": _shortest(file.number(f"{family}.attention.layer_norm_rms_epsilon")),
        "rope_theta": _shortest(file.metadata.get(f"{family}.rope.freq_base", 10000.0)), "rope_scaling": _scaling(file),
        "tie_word_embeddings": "output.weight" not in file.tensors, "torch_dtype": "float32", **_special_ids(file),
    }


def generation_config(file: GgufFile) -> dict[str, Any]:
    """What ends a text."""
    ids = _special_ids(file)
    ends = [ids["eos_token_id"]]
    if "tokenizer.ggml.eot_token_id" in file.metadata:
        ends.append(int(file.number("tokenizer.ggml.eot_token_id")))
    # The end token closes a turn; a plain text ends with the end-of-text token, which the file does not declare as an end.
    tokens = file.list("tokenizer.ggml.tokens")
    if "<|endoftext|>" in tokens:
        ends.append(tokens.index("<|endoftext|>"))
    return {**ids, "eos_token_id": list(dict.fromkeys(ends))}


def tokenizer_config(file: GgufFile) -> dict[str, Any]:
    """Special tokens by name, and the template of a chat."""
    tokens = file.list("tokenizer.ggml.tokens")
    template = file.metadata.get("tokenizer.chat_template")
    # Where a file of Llama 3 does not say it, its texts begin with the begin token all the same.
    begins = file.metadata.get("tokenizer.ggml.add_bos_token", file.text("tokenizer.ggml.pre") == "llama-bpe")
    ids = {**_special_ids(file), "unk_token_id": file.metadata.get("tokenizer.ggml.unknown_token_id")}
    return {
        # The class that takes tokenizer.json as it is; a named one would build its own pre-tokenizer.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_bos_token": bool(begins),
        **{name.removesuffix("_id"): tokens[id] for name, id in ids.items() if id is not None},
        "clean_up_tokenization_spaces": False,
        "model_max_length": _number(file, "context_length"),
        **({} if template is None else {"chat_template": template}),
    }


def architecture(file: GgufFile) -> str:
    """The family, as config.json calls it too.  Raises LmcError E0806 for one that cannot be converted."""
    family = file.text("general.architecture")
    if family not in _ARCHITECTURES:
        raise cannot_convert(file, f"it is a `{family}` model; {', '.join(_ARCHITECTURES)} are known")
    return family


def cannot_convert(file: GgufFile, why: str) -> LmcError:
    return LmcError(Diagnostic("E0806", f"cannot convert {file.path}: {why}", None,
                               help="use the model's Hugging Face folder with safetensors"))


def _number(file: GgufFile, key: str) -> int:
    return int(file.number(f"{architecture(file)}.{key}"))


def _check_same(file: GgufFile, key: str, expected: int) -> None:
    name = f"{architecture(file)}.{key}"
    if (found := file.metadata.get(name, expected)) != expected:
        raise cannot_convert(file, f"`{name}` is {found}, expected {expected}")


def _scaling(file: GgufFile) -> dict[str, Any] | None:
    name = f"{architecture(file)}.rope.scaling"
    kind = file.metadata.get(f"{name}.type", "none")
    if kind == "none":
        return None
    if kind != "linear":
        raise cannot_convert(file, f"`{name}.type` is {kind}, expected none or linear")
    return {"rope_type": "linear", "factor": _shortest(file.number(f"{name}.factor"))}


def _shortest(number: float) -> float:
    # GGUF stores float32; its shortest decimal form is the number that was meant (1e-05, not 9.999999747378752e-06).
    return float(str(np.float32(number)))


def _special_ids(file: GgufFile) -> dict[str, int | None]:
    """The begin and padding tokens may be missing; the end token may not."""
    return {"bos_token_id": file.metadata.get("tokenizer.ggml.bos_token_id"),
            "eos_token_id": int(file.number("tokenizer.ggml.eos_token_id")),
            "pad_token_id": file.metadata.get("tokenizer.ggml.padding_token_id")}
