"""Text to token ids and back, with two promises: ordinary text never becomes a control token, and nothing is added to it.

    tokenizer = load_tokenizer(folder)
    tokenizer.encode("\\n\\n1. First<|im_end|>")   ordinary tokens only; the marker's spelling is text like any other
    tokenizer.control_id("<|im_end|>")            2: only the chat template may put it into a prompt
    tokenizer.decode_bytes([1116, 33])            b"\\n\\n1"

It knows one model's vocabulary and its special tokens.  It does not know contexts, templates or healing.
"""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import tokenizers

from lmc.diagnostics import Diagnostic, LmcError
from lmc.runtime.model.folder import TOKENIZER_FILES, read_json
from lmc.runtime.special_tokens import SpecialIds, mark_special, special_ids
from lmc.runtime.vocabulary import (
    Layout,
    TextError,
    VocabularyError,
    byte_table,
    read_layout,
    unspellable_bytes,
    without_nfc,
    without_prefix_space,
)


class Tokenizer:
    """size: number of ids, gaps included; ids from here on (padding rows of the model) stand for nothing
    token_bytes: what each id spells, b"" for control tokens and gaps
    control_ids: control tokens and gaps: never made from text, and only the end tokens among them may be generated
    end_ids: tokens that end a generation; they are never part of a value or context
    bos_id: the begin token, if the model's tokenizer puts one before a text
    lossy: text is changed before it is tokenised: constraints, healing and select cannot promise anything
    longest_token: bytes of the longest token
    """

    __slots__ = ("size", "token_bytes", "control_ids", "end_ids", "bos_id", "eos_id", "lossy", "longest_token",
                 "_inner", "_at_start", "_control", "_control_pattern", "_sorted_bytes", "_unspellable")

    def __init__(self, inner: tokenizers.Tokenizer, at_start: tokenizers.Tokenizer | None, special: SpecialIds, layout: Layout):
        """inner: without any prefix space; at_start: the same with the prefix space, None if the model knows none."""
        vocab = inner.get_vocab(with_added_tokens=True)
        self.size = max(vocab.values()) + 1
        self.control_ids = special.control | (frozenset(range(self.size)) - frozenset(vocab.values()))
        self.end_ids, self.bos_id, self.eos_id, self.lossy = special.end, special.bos, special.eos, layout.lossy
        added = {id: token.content for id, token in inner.get_added_tokens_decoder().items()}
        table = byte_table(inner.get_vocab(with_added_tokens=False), added, self.control_ids, self.size, layout)
        self.token_bytes: Sequence[bytes] = tuple(table)
        self.longest_token = max(map(len, table))
        self._unspellable = unspellable_bytes(table)
        self._sorted_bytes = sorted(set(table))
        self._inner, self._at_start = inner, at_start
        self._control = {inner.id_to_token(id): id for id in special.control}
        # The longest first, so that "<|im_end|>" is not taken for a shorter marker that it begins with.
        spellings = sorted(self._control, key=len, reverse=True)
        self._control_pattern = re.compile("|".join(map(re.escape, spellings))) if spellings else None

    def encode(self, text: str, *, at_start: bool = False) -> list[int]:
        """Ids of ordinary text.  at_start: the text opens a raw context, where SentencePiece models expect a space before it.

        Raises TextError for text that the vocabulary cannot spell.
        """
        self._check_spelling(text)
        inner = self._at_start if at_start and self._at_start is not None else self._inner
        ids = inner.encode(text, add_special_tokens=False).ids
        return ids if self.control_ids.isdisjoint(ids) else [plain for id in ids for plain in self._plain(id)]

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The bytes that the ids spell; control tokens spell none."""
        return b"".join(map(self.token_bytes.__getitem__, ids))

    def control_id(self, text: str) -> int | None:
        """The id of the control token that is spelled like this."""
        return self._control.get(text)

    def control_text(self, id: int) -> str:
        """How a control token is spelled, for people; the empty string for any other id."""
        return self._inner.id_to_token(id) or "" if id in self.control_ids else ""

    def split_control(self, text: str) -> tuple[int | str, ...]:
        """A template's text as control tokens (ids) and ordinary text between them (never empty)."""
        if self._control_pattern is None:
            return (text,) if text else ()
        pieces: list[int | str] = []
        place = 0
        for found in self._control_pattern.finditer(text):
            pieces += [text[place : found.start()], self._control[found[0]]]
            place = found.end()
        return tuple(piece for piece in (*pieces, text[place:]) if piece != "")

    def begins_longer_token(self, data: bytes) -> bool:
        """Whether `data` is a proper prefix of what some token spells."""
        after = bisect.bisect_right(self._sorted_bytes, data)
        return after < len(self._sorted_bytes) and self._sorted_bytes[after].startswith(data)

    @property
    def begin_id(self) -> int | None:
        """What unconditional log-probabilities are conditioned on: the begin token, else the end token."""
        return self.bos_id if self.bos_id is not None else self.eos_id

    def _check_spelling(self, text: str) -> None:
        try:
            data = text.encode()
        except UnicodeEncodeError as error:
            raise TextError(f"it holds half of a character (U+{ord(text[error.start]):04X})") from error
        # Bytes without a token would be left out in silence.
        if len(data.translate(None, self._unspellable)) != len(data):
            found = next(c for c in text if any(b in self._unspellable for b in c.encode()))
            raise TextError(f"it holds the character U+{ord(found):04X}, for which the model has no token")

    def _plain(self, id: int) -> Iterable[int]:
        # Only a Unigram vocabulary, which holds its control tokens as ordinary pieces, gets here: spell the marker by characters.
        if id not in self.control_ids:
            return (id,)
        characters = [self._inner.encode(c, add_special_tokens=False).ids for c in self.control_text(id)]
        return [plain for ids in characters for plain in ids]


def load_tokenizer(folder: Path) -> Tokenizer:
    """The folder's tokenizer.  Raises LmcError E0804 where there is none, E0805 for a kind that cannot be used, E0806 for a
    broken file."""
    data = without_nfc(_tokenizer_json(folder))
    try:
        layout = read_layout(data)
        plain = without_prefix_space(data) if layout.prefix_space else data
        mark_special(plain, folder)
        inner = _build(plain)
        # The tokenizers library takes control tokens out of text unless it is told that their spelling is text.
        inner.encode_special_tokens = True
        at_start = None
        if layout.prefix_space:
            at_start = _build({**data, "added_tokens": plain["added_tokens"]})
            at_start.encode_special_tokens = True
        return Tokenizer(inner, at_start, special_ids(folder, inner, data), layout)
    except VocabularyError as error:
        raise LmcError(Diagnostic("E0805", f"the tokenizer in {folder} cannot be used: {error}", None,
                                  help="take a model with byte-level BPE or a SentencePiece vocabulary with all bytes")) from error


def _tokenizer_json(folder: Path) -> dict[str, Any]:
    if (folder / "tokenizer.json").is_file():
        return read_json(folder / "tokenizer.json")
    if not any(all((folder / name).is_file() for name in group) for group in TOKENIZER_FILES):
        names = ", ".join(" with ".join(group) for group in TOKENIZER_FILES)
        raise LmcError(Diagnostic("E0804", f"the model folder {folder} has no tokenizer (looked for {names})", None,
                                  help="put one of them there, or fetch the model again"))
    from transformers import AutoTokenizer

    try:
        return json.loads(AutoTokenizer.from_pretrained(folder, local_files_only=True).backend_tokenizer.to_str())
    except Exception as error:  # transformers raises nearly anything for a file that it cannot read
        raise LmcError(Diagnostic("E0805", f"transformers cannot convert the tokenizer in {folder}: {error}", None,
                                  help="add the model's tokenizer.json to the folder")) from error


def _build(data: dict[str, Any]) -> tokenizers.Tokenizer:
    try:
        inner = tokenizers.Tokenizer.from_str(json.dumps({**data, "truncation": None, "padding": None}))
    except Exception as error:  # the library raises a bare Exception for a file that it cannot read
        raise VocabularyError(f"tokenizer.json cannot be read ({error})") from error
    return inner
