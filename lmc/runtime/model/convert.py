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

import safetensors.torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from lmc.runtime.model.gguf import GgufFile, named_weights
from lmc.runtime.model.gguf_config import cannot_convert, generation_config, model_config, tokenizer_config
from lmc.runtime.model.progress import Progress, silent

# Kinds of vocabulary entries in GGUF (`tokenizer.ggml.token_type`) that are control tokens: unknown and control.
_CONTROL = (2, 3)
_USER_DEFINED = 4


def write_folder(file: GgufFile, folder: Path, progress: Progress = silent) -> None:
    """Writes the five files into `folder`, which exists and is empty.  Raises LmcError E0806 for a model it cannot convert."""
    if (vocabulary := file.text("tokenizer.ggml.model")) != "gpt2":
        raise cannot_convert(file, f"its vocabulary is of the kind `{vocabulary}`; `gpt2`, byte-level BPE, is known")
    _write_json(folder / "config.json", model_config(file))
    _write_json(folder / "generation_config.json", generation_config(file))
    _write_json(folder / "tokenizer_config.json", tokenizer_config(file))
    build_tokenizer(file).save(str(folder / "tokenizer.json"))
    weights = {}
    total = sum(4 * math.prod(t.shape) for t in file.tensors.values())
    for name, weight in named_weights(file):
        weights[name] = weight.contiguous()
        progress("converting to float32", sum(w.nbytes for w in weights.values()), total)
    safetensors.torch.save_file(weights, folder / "model.safetensors", {"format": "pt"})


def build_tokenizer(file: GgufFile) -> Tokenizer:
    """Byte-level BPE as the model was trained with; control tokens are special added tokens."""
    tokens, kinds = file.list("tokenizer.ggml.tokens"), file.list("tokenizer.ggml.token_type")
    merges = [tuple(merge.split(" ", 1)) for merge in file.list("tokenizer.ggml.merges")]
    rule = file.text("tokenizer.ggml.pre")
    # Llama 3 takes a piece that is in the vocabulary as it is, whether or not merges lead to it.
    whole_first = rule == "llama-bpe"
    tokenizer = Tokenizer(models.BPE({token: id for id, token in enumerate(tokens)}, merges, ignore_merges=whole_first))
    if rule == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = _pre_tokenizer(file, rule)
    tokenizer.decoder = decoders.ByteLevel()
    # In the order of their ids, so that they keep the ids that they have in the vocabulary.
    tokenizer.add_special_tokens([_added(t, True) for t, kind in zip(tokens, kinds) if kind in _CONTROL])
    tokenizer.add_tokens([_added(t, False) for t, kind in zip(tokens, kinds) if kind == _USER_DEFINED])
    return tokenizer


def _added(token: str, special: bool) -> AddedToken:
    return AddedToken(token, special=special, normalized=False)


def _pre_tokenizer(file: GgufFile, rule: str) -> pre_tokenizers.PreTokenizer:
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    match rule:
        case "smollm":
            return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level])
        case "gpt-2":
            return byte_level
        case "qwen2":
            return _split(1)
        case "llama-bpe":
            return _split(3)
        case name:
            raise cannot_convert(file, f"its text is split by the rule `{name}`; smollm, gpt-2, qwen2 and llama-bpe are known")


def _split(digits: int) -> pre_tokenizers.PreTokenizer:
    """The rule of Llama 3 and Qwen, whose pieces hold at most so many digits."""
    contraction, word = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)", r"[^\r\n\p{L}\p{N}]?\p{L}+"
    number = r"\p{N}" if digits == 1 else rf"\p{{N}}{{1,{digits}}}"
    signs, lines, spaces = r" ?[^\s\p{L}\p{N}]+[\r\n]*", r"\s*[\r\n]+", r"\s+(?!\S)|\s+"
    pattern = Regex("|".join((contraction, word, number, signs, lines, spaces)))
    return pre_tokenizers.Sequence([pre_tokenizers.Split(pattern, "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def _write_json(path: Path, data: dict[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
