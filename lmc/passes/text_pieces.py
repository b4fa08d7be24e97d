"""Texts as the pieces that they are put together from: neighbouring literals are one, empty ones go.

    "Name: " %name "!"   and   "Name: " %name ", and so on"     have the common start     "Name: " %name

A text is a literal, a value, or the `text.concat` that makes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from os.path import commonprefix

from lmc.diagnostics import Span
from lmc.ir.builder import literal
from lmc.ir.core import Literal, Op, Operand, Value
from lmc.ir.ops import TextConcat
from lmc.types import STR, StrT
from lmc.values import text_of

Pieces = tuple[Operand, ...]
#: A start of fewer characters and no value is not worth an append of its own.
_WORTH = 16


def joined(pieces: Iterable[Operand]) -> Pieces:
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


def pieces_of(text: Operand, made: Mapping[Value, Op]) -> Pieces:
    """The pieces of a text.  `made` has the ops that texts are made by."""
    op = made.get(text) if isinstance(text, Value) else None
    return joined(op.pieces if isinstance(op, TextConcat) else (text,))


def written(pieces: Pieces, span: Span | None) -> tuple[Operand, list[Op]]:
    """The text of joined pieces as an operand, with the op that makes it where one is needed."""
    if not pieces:
        return literal(""), []
    if len(pieces) == 1 and isinstance(pieces[0].type, StrT):
        return pieces[0], []
    text = Value(STR, "text")
    return text, [TextConcat((text,), span, pieces)]


def common_start(one: Pieces, other: Pieces) -> Pieces:
    """The longest pieces, the last one perhaps a part of a literal, that both texts begin with."""
    start: list[Operand] = []
    for a, b in zip(one, other):
        if a != b:
            both = isinstance(a, Literal) and isinstance(b, Literal)
            shared = commonprefix([a.value, b.value]) if both else ""
            return (*start, literal(shared)) if shared else tuple(start)
        start.append(a)
    return tuple(start)


def without_start(pieces: Pieces, start: Pieces) -> Pieces:
    """What is left behind a start that `common_start` gave."""
    rest = pieces[len(start):]
    if start and start[-1] != pieces[len(start) - 1]:
        return literal(pieces[len(start) - 1].value[len(start[-1].value):]), *rest
    return rest


def shared_by_all(texts: Sequence[Pieces]) -> Pieces:
    """The longest pieces that all texts begin with."""
    return reduce(common_start, texts)


def worth_sharing(start: Pieces) -> bool:
    """Whether a start is long enough for an append of its own."""
    return any(isinstance(piece, Value) or len(text_of(piece.value)) >= _WORTH for piece in start)
