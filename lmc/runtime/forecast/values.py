"""What is known of a value before a program runs.

    "clarity"                     known: the value itself
    Unknown(StrT(), span)         what a generation, an extern or a line of input will give
    ("a", Unknown(…))             a list of two, the second of them unknown
    Text("Judge its ", "clarity") text that remembers which of its pieces vary, and where they stand

A `Cell` is what a register holds: the value, whether it is the same in every run, and after how many calls of the model, one
after another, it is there.  This file knows no instructions and no tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from lmc.diagnostics import Span
from lmc.types import ListT, Type, plain_type
from lmc.values import Record, text_of


@dataclass(frozen=True, slots=True, eq=False)
class Unknown:
    """A value that data decide; it equals only itself.  `span`: what makes it; None of a parameter without a value."""

    type: Type
    span: Span | None

    @property
    def lengths(self) -> tuple[int, int | None]:
        """Fewest and most elements of a list; None is without bound."""
        type = plain_type(self.type)
        return (type.min_items or 0, type.max_items) if isinstance(type, ListT) else (0, None)

    @property
    def element(self) -> Unknown:
        """A value that an element of the list may be; each time another."""
        type = plain_type(self.type)
        assert isinstance(type, ListT), type
        return Unknown(type.element, self.span)


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text.  `text` is None where it is not known, which is then `unknown`'s; varying: it may differ from run to run,
    or from branch to branch; span: where it stands in the program; source: how it is written there (`${d}`), empty for plain text."""

    text: str | None
    varying: bool
    span: Span | None
    source: str = ""
    unknown: Unknown | None = None

    def same(self, other: Piece) -> bool:
        """Whether both are certainly the same text."""
        return self.text == other.text and self.unknown is other.unknown


@dataclass(frozen=True, slots=True)
class Text:
    """A string made of pieces; none is empty."""

    pieces: tuple[Piece, ...]


class Cell(NamedTuple):
    """value: as in a run, or with `Unknown`, `Text` and forecast contexts in it; varying: as in `Piece`; ready: calls before it"""

    value: Any
    varying: bool = False
    ready: int = 0


def known(value: Any) -> bool:
    """Whether all of the value is known."""
    if isinstance(value, Unknown):
        return False
    if isinstance(value, Text):
        return all(piece.text is not None for piece in value.pieces)
    if isinstance(value, tuple):
        return all(map(known, value))
    if isinstance(value, Record):
        return all(map(known, value.values))
    if isinstance(value, dict):
        return all(map(known, value.values()))
    return True


def plain(value: Any, type: Type) -> Any:
    """The value without `Text`: a string, or `Unknown` where not all of it is known."""
    if not isinstance(value, Text):
        return value
    if known(value):
        return "".join(piece.text or "" for piece in value.pieces)
    return next(p.unknown for p in value.pieces if p.unknown is not None) if len(value.pieces) == 1 else Unknown(type, None)


def pieces_of(cell: Cell, span: Span | None, source: str = "") -> tuple[Piece, ...]:
    """The text that the value is in a prompt."""
    value = cell.value
    if isinstance(value, Text):
        return value.pieces
    if isinstance(value, Unknown):
        return (Piece(None, True, span, source, value),)
    text = text_of(value)
    return (Piece(text, cell.varying, span, source),) if text else ()
