"""Turns a GGUF file into a plain Hugging Face folder, once.

    write_folder(open_gguf(path), folder)   ->   config.json  generation_config.json  model.safetensors (float32)
                                                 tokenizer.json  tokenizer_config.json (with the chat template)

The tokenizer is built here from the file's vocabulary and merges: the one that transformers builds from the same file forgets to
split digits, so that "\\n\\n1. First" becomes other tokens.  This file does not know caches, downloads or checksums.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from lmc.diagnostics import Diagnostic, LmcError
from lmc.runtime.model.gguf import GgufFile, llama_weights
from lmc.runtime.model.progress import Progress, silent

# Kinds of vocabulary entries in GGUF (`tokenizer.ggml.token_type`) that are control tokens: unknown and control.
_CONTROL = (2, 3)
_USER_DEFINED = 4


def write_folder(file: GgufFile, folder: Path, progress: Progress = silent) -> None:
    """Writes the five files into `folder`, which exists and is empty.  Raises LmcError E0806 for a model it cannot convert."""
    if file.text("general.architecture") != "llama" or file.text("tokenizer.ggml.model") != "gpt2":
        raise _cannot(file, "only Llama models with a byte-level BPE vocabulary can be converted")
    _write_json(folder / "config.json", _config(file))
    _write_json(folder / "generation_config.json", _generation_config(file))
    _write_json(folder / "tokenizer_config.json", _tokenizer_config(file))
    build_tokenizer(file).save(str(folder / "tokenizer.json"))
    weights = {}
    total = sum(4 * math.prod(t.shape) for t in file.tensors.values())
    for name, weight in llama_weights(file):
        weights[name] = weight.contiguous()
        progress("converting to float32", sum(w.nbytes for w in weights.values()), total)
    safetensors.torch.save_file(weights, folder / "model.safetensors", {"format": "pt"})


def build_tokenizer(file: GgufFile) -> Tokenizer:
    """Byte-level BPE as the model was trained with; control tokens are special added tokens."""
    tokens, kinds = file.list("tokenizer.ggml.tokens"), file.list("tokenizer.ggml.token_type")
    merges = [tuple(merge.split(" ", 1)) for merge in file.list("tokenizer.ggml.merges")]
    tokenizer = Tokenizer(models.BPE({token: id for id, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = _pre_tokenizer(file)
    tokenizer.decoder = decoders.ByteLevel()
    # In the order of their ids, so that they keep the ids that they have in the vocabulary.
    tokenizer.add_special_tokens([_added(t, True) for t, kind in zip(tokens, kinds) if kind in _CONTROL])
    tokenizer.add_tokens([_added(t, False) for t, kind in zip(tokens, kinds) if kind == _USER_DEFINED])
    return tokenizer


def _added(token: str, special: bool) -> AddedToken:
    return AddedToken(token, special=special, normalized=False)


def _pre_tokenizer(file: GgufFile) -> pre_tokenizers.PreTokenizer:
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    match file.text("tokenizer.ggml.pre"):
        case "smollm":
            return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level])
        case "gpt-2":
            return byte_level
        case name:
            raise _cannot(file, f"its text is split by the rule `{name}`; `smollm` and `gpt-2` are known")


def _config(file: GgufFile) -> dict[str, Any]:
    heads = int(file.number("llama.attention.head_count"))
    hidden = int(file.number("llama.embedding_length"))
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": len(file.list("tokenizer.ggml.tokens")),
        "hidden_size": hidden,
        "intermediate_size": int(file.number("llama.feed_forward_length")),
        "num_hidden_layers": int(file.number("llama.block_count")),
        "num_attention_heads": heads,
        "num_key_value_heads": int(file.number("llama.attention.head_count_kv")),
        "head_dim": hidden // heads,
        "hidden_act": "silu",
        "max_position_embeddings": int(file.number("llama.context_length")),
        "rms_norm_eps": _shortest(file.number("llama.attention.layer_norm_rms_epsilon")),
        "rope_theta": _shortest(file.number("llama.rope.freq_base")),
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "torch_dtype": "float32",
        **_special_ids(file),
    }


def _shortest(number: float) -> float:
    # GGUF stores float32; its shortest decimal form is the number that was meant (1e-05, not 9.999999747378752e-06).
    return float(str(np.float32(number)))


def _special_ids(file: GgufFile) -> dict[str, int]:
    return {
        "bos_token_id": int(file.number("tokenizer.ggml.bos_token_id")),
        "eos_token_id": int(file.number("tokenizer.ggml.eos_token_id")),
        "pad_token_id": int(file.number("tokenizer.ggml.padding_token_id")),
    }


def _generation_config(file: GgufFile) -> dict[str, Any]:
    ids = _special_ids(file)
    ends = [ids["eos_token_id"]]
    # The end token closes a turn; a plain text ends with the end-of-text token, which the file does not declare as an end.
    tokens = file.list("tokenizer.ggml.tokens")
    if "<|endoftext|>" in tokens and tokens.index("<|endoftext|>") not in ends:
        ends.append(tokens.index("<|endoftext|>"))
    return {**ids, "eos_token_id": ends}


def _tokenizer_config(file: GgufFile) -> dict[str, Any]:
    tokens = file.list("tokenizer.ggml.tokens")
    ids = _special_ids(file)
    return {
        # The class that takes tokenizer.json as it is; a named one would build its own pre-tokenizer.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_bos_token": bool(file.metadata.get("tokenizer.ggml.add_bos_token", False)),
        "bos_token": tokens[ids["bos_token_id"]],
        "eos_token": tokens[ids["eos_token_id"]],
        "pad_token": tokens[ids["pad_token_id"]],
        "unk_token": tokens[int(file.number("tokenizer.ggml.unknown_token_id"))],
        "clean_up_tokenization_spaces": False,
        "model_max_length": int(file.number("llama.context_length")),
        "chat_template": file.text("tokenizer.chat_template"),
    }


def _write_json(path: Path, data: dict[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _cannot(file: GgufFile, why: str) -> LmcError:
    return LmcError(Diagnostic("E0806", f"cannot convert {file.path}: {why}", None,
                               help="use the model's Hugging Face folder with safetensors"))
