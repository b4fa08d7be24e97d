"""Which bytes each token of a vocabulary stands for, read from a tokenizer.json.

    byte-level BPE (GPT-2, Llama 3, Qwen, SmolLM)      "Ġcaf" -> b" caf"     "Ã" -> b"\\xc3"
    SentencePiece style (Llama 2, Mistral, Gemma)      "▁caf" -> b" caf"     "<0xC3>" -> b"\\xc3"

Any other kind (WordPiece, "</w>" suffixes, vocabularies without all bytes) cannot spell every text and is refused.
It works on the JSON; it knows neither folders nor the tokenizers library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SPACE = "▁"
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


class VocabularyError(Exception):
    """The tokenizer is of a kind that cannot be used; the message says why."""


class TextError(ValueError):
    """The text cannot be written in the model's vocabulary; the message says what it holds."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a tokenizer.json turns text into tokens, as far as it matters for bytes.

    byte_level: tokens are written in GPT-2's alphabet of bytes; otherwise in SentencePiece's, with "▁" for a space
    prefix_space: it puts a space before a text (SentencePiece's dummy prefix)
    lossy: it changes text before it splits it (lower case, accents, compatibility forms), so that what was tokenised is another
    text
    """

    byte_level: bool
    prefix_space: bool
    lossy: bool


def read_layout(data: Mapping[str, Any]) -> Layout:
    """Looks at the parts of a tokenizer.json.  Raises VocabularyError for a kind that is not known."""
    kinds = {name: {part["type"] for part in _parts(data.get(name))} for name in ("pre_tokenizer", "normalizer", "decoder")}
    byte_level = "ByteLevel" in kinds["pre_tokenizer"] | kinds["normalizer"]
    if byte_level != ("ByteLevel" in kinds["decoder"]):
        raise VocabularyError("its pre-tokenizer and its decoder do not agree on byte-level tokens")
    spaces = any(SPACE in (part.get("replacement", ""), part.get("content", "")) for part in _all_parts(data))
    if not byte_level and not spaces:
        raise VocabularyError(f"its model {data.get('model', {}).get('type')} is neither byte-level BPE nor SentencePiece style")
    return Layout(byte_level, any(map(_adds_space, _all_parts(data))), any(map(_is_lossy, _parts(data.get("normalizer")))))


def without_prefix_space(data: Mapping[str, Any]) -> dict[str, Any]:
    """The same tokenizer, without the space before a text."""
    return {**data, **{name: _unprefixed(data.get(name)) for name in ("normalizer", "pre_tokenizer")}}


def without_nfc(data: Mapping[str, Any]) -> dict[str, Any]:
    """The same tokenizer, without composing characters: text that is composed already, as nearly all is, gives the same tokens,
    and any other stays byte for byte what it was."""
    normalizer = data.get("normalizer")
    kept = [part for part in _parts(normalizer) if part["type"] != "NFC"]
    if len(kept) == len(list(_parts(normalizer))):
        return dict(data)
    return {**data, "normalizer": {"type": "Sequence", "normalizers": kept} if kept else None}


def byte_table(vocab: Mapping[str, int], added: Mapping[int, str], control: frozenset[int], size: int,
               layout: Layout) -> list[bytes]:
    """Bytes by id; b"" for control tokens and for ids that stand for nothing.

    Raises VocabularyError if more than a few rare bytes cannot be spelled, because then usual text could not be a value.
    """
    spell = _byte_level_bytes() if layout.byte_level else _sentencepiece_bytes
    table = [b""] * size
    for token, id in vocab.items():
        if id not in control:
            table[id] = spell(token)
    for id, text in added.items():
        if id not in control:
            table[id] = text.encode()
    missing = unspellable_bytes(table)
    if not set(missing) <= _RARE if layout.byte_level else missing:
        raise VocabularyError(f"its vocabulary has no tokens for {len(missing)} of the 256 bytes")
    return table


def unspellable_bytes(table: Sequence[bytes]) -> bytes:
    """The bytes that occur in UTF-8 and that no token spells: SmolLM2 has none for six control characters and two rare planes."""
    single = {data[0] for data in table if len(data) == 1}
    return bytes(b for b in range(256) if b not in single and b not in _NEVER_IN_UTF8)


_NEVER_IN_UTF8 = frozenset((0xC0, 0xC1, *range(0xF5, 0x100)))
# Control characters, and the first bytes of characters beyond U+FFFF.
_RARE = frozenset((*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F, *range(0xF0, 0xF5)))


def _parts(component: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    if component is None:
        return
    if component["type"] == "Sequence":
        for key in ("normalizers", "pretokenizers", "decoders"):
            for part in component.get(key, ()):
                yield from _parts(part)
    else:
        yield component


def _all_parts(data: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for name in ("normalizer", "pre_tokenizer"):
        yield from _parts(data.get(name))


def _adds_space(part: Mapping[str, Any]) -> bool:
    match part["type"]:
        case "Prepend":
            return part.get("prepend") == SPACE
        case "Metaspace":
            # Older files have `add_prefix_space`, newer ones `prepend_scheme`.
            return part.get("prepend_scheme", "always" if part.get("add_prefix_space", True) else "never") != "never"
        case "ByteLevel":
            return bool(part.get("add_prefix_space", False))
    return False


def _is_lossy(part: Mapping[str, Any]) -> bool:
    if part["type"] == "Replace":
        return not (part.get("pattern") == {"String": " "} and part.get("content") == SPACE)
    return part["type"] not in ("Prepend", "NFC", "ByteLevel")


def _unprefixed(component: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if component is None or component["type"] == "Prepend" and component.get("prepend") == SPACE:
        return None
    if component["type"] == "Sequence":
        key = next(k for k in ("normalizers", "pretokenizers") if k in component)
        return {**component, key: [kept for part in component[key] if (kept := _unprefixed(part)) is not None]}
    if component["type"] == "Metaspace":
        return {**component, "prepend_scheme": "never", "add_prefix_space": False}
    if component["type"] == "ByteLevel":
        return {**component, "add_prefix_space": False}
    return component


def _byte_level_bytes() -> Callable[[str], bytes]:
    # GPT-2's alphabet: printable Latin-1 characters stand for themselves, the other bytes for the characters from U+0100 on.
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in plain]
    alphabet = {chr(b): b for b in plain} | {chr(0x100 + i): b for i, b in enumerate(others)}

    def spell(token: str) -> bytes:
        # A token with a character outside of the alphabet was added as plain text.
        return bytes(map(alphabet.__getitem__, token)) if all(c in alphabet for c in token) else token.encode()

    return spell


def _sentencepiece_bytes(token: str) -> bytes:
    byte = _BYTE.fullmatch(token)
    return bytes([int(byte[1], 16)]) if byte else token.replace(SPACE, " ").encode()
