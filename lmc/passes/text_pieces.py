"""Putting the pieces of a text together: neighbouring literals are one, empty ones go."""

from __future__ import annotations

from collections.abc import Iterable

from lmc.ir.builder import literal
from lmc.ir.core import Literal, Operand
from lmc.values import text_of


def joined(pieces: Iterable[Operand]) -> tuple[Operand, ...]:
    """The fewest pieces that make the same text."""
    result: list[Operand] = []
    for piece in pieces:
        if not isinstance(piece, Literal):
            result.append(piece)
            continue
        text = text_of(piece.value)
        if result and isinstance(result[-1], Literal):
            text = result.pop().value + text
        result += [literal(text)] if text else []
    return tuple(result)
