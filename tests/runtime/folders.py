"""Tiny model folders for tests: byte-level and SentencePiece-style tokenizers, with the template and special tokens that a test
wants."""

import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
CONTROL = ["<s>", "</s>", "<|im_start|>", "<|im_end|>"]


def byte_level_json(*, special: bool = True, add_bos: bool = False) -> dict:
    """Byte-level BPE with a few merges; ids 0-3 are the control tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("a", "b"), ("ab", "c"), ("Ġ", "a"), ("Ċ", "Ċ"), ("h", "i"), ("Ġ", "hi")]
    vocab = {token: id for id, token in enumerate([*CONTROL, *alphabet, *(a + b for a, b in merges)])}
    tokenizer = Tokenizer(models.BPE(vocab, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return _finish(tokenizer, special, add_bos)


def sentencepiece_json(*, legacy: bool = False, add_bos: bool = True) -> dict:
    """BPE over "▁" with byte fallback, as Llama 2 has it (`legacy`: the space is prepended by the normaliser)."""
    letters = [chr(c) for c in range(0x21, 0x7F)] + ["▁"]
    merges = [("▁", "h"), ("h", "i"), ("▁h", "i"), ("▁", "▁"), ("▁", "w")]
    tokens = ["<unk>", *CONTROL, *(f"<0x{b:02X}>" for b in range(256)), *letters, *(a + b for a, b in merges)]
    tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    if legacy:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens([AddedToken("<unk>", special=True, normalized=False)])
    return _finish(tokenizer, True, add_bos)


def _finish(tokenizer: Tokenizer, special: bool, add_bos: bool) -> dict:
    add = tokenizer.add_special_tokens if special else tokenizer.add_tokens
    add([AddedToken(text, special=special, normalized=False) for text in CONTROL])
    if add_bos:
        bos = tokenizer.token_to_id("<s>")
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", bos)])
    return json.loads(tokenizer.to_str())


def write_folder(folder: Path, tokenizer: dict, *, template: str | None = CHATML, config: dict | None = None,
                 generation: dict | None = None, tokenizer_config: dict | None = None) -> Path:
    """A folder with these files; the template goes into tokenizer_config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    data = {"bos_token": "<s>", "eos_token": "</s>"} if tokenizer_config is None else dict(tokenizer_config)
    if template is not None:
        data["chat_template"] = template
    files = {"tokenizer.json": tokenizer, "config.json": config or {}, "generation_config.json": generation, "tokenizer_config.json": data}
    for name, content in files.items():
        if content is not None:
            (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return folder
