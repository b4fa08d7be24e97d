"""Token ids of a prompt for people and files: ordinary text, and control tokens apart from it.

    1 9690 198 2683 359 … 2 198        [Control("<|im_start|>", 1), "system\\nYou are …", Control("<|im_end|>", 2), "\\n"]

A value that spells a marker is text, and looks like text here: the two are never the same piece.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Control:
    """A control token and how it is spelled."""

    text: str
    id: int


Piece = str | Control


def prompt_pieces(tokenizer: Any, ids: Iterable[int], tail: bytes = b"") -> tuple[Piece, ...]:
    """The ids as text and control tokens, neighbouring text in one piece; `tail` are bytes that follow the last id."""
    pieces: list[Piece] = []
    data = b""
    for id in ids:
        if id in tokenizer.control_ids:
            pieces += [_text(data), Control(tokenizer.control_text(id), id)]
            data = b""
        else:
            data += tokenizer.token_bytes[id]
    pieces.append(_text(data + tail))
    return tuple(piece for piece in pieces if piece != "")


def spelled(pieces: Iterable[Piece]) -> str:
    """The pieces as one text, control tokens by their spelling."""
    return "".join(piece if isinstance(piece, str) else piece.text for piece in pieces)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
