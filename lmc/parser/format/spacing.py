"""Where a space stands between two tokens of a line.

    f( x=1,y = - 2 ) [ 1 : ]    ->    f(x=1, y=-2)[1:]

`=` has spaces where it assigns and where it follows a type, none for an argument and after `with`.  This file does not know where
lines break.
"""

from __future__ import annotations

from lmc.parser.format.lines import CLOSERS, OPENERS, Piece

_OPERAND_ENDS = ("NAME", "STRING", "INT", "FLOAT", *CLOSERS)


def set_spaces(pieces: list[Piece]) -> None:
    """Set `space` of each piece of one logical line."""
    state = _State()
    before: Piece | None = None
    for piece in pieces:
        if piece.kind == "COMMENT":
            continue
        piece.space = before is not None and state.space(before, piece)
        state.read(before, piece)
        before = piece


class _State:
    """What decides about the next space: the open brackets, and what was met in the innermost."""

    __slots__ = ("brackets", "typed", "sign")

    def __init__(self) -> None:
        self.brackets: list[str] = []
        self.typed = [True]
        """For each open bracket, and for the line: whether `=` has spaces here."""
        self.sign = False
        """Whether the last token was a sign, not an operator between two operands."""

    def read(self, before: Piece | None, piece: Piece) -> None:
        kind = piece.kind
        self.sign = kind in ("PLUS", "MINUS") and (before is None or before.kind not in _OPERAND_ENDS)
        if kind in OPENERS:
            self.brackets.append(kind)
            self.typed.append(False)
        elif kind in CLOSERS:
            self.brackets.pop()
            self.typed.pop()
        elif kind == "COMMA" and self.brackets:
            self.typed[-1] = False
        elif kind == "COLON" and self.brackets:
            self.typed[-1] = True
        elif kind == "WITH":
            self.typed[-1] = False

    def space(self, before: Piece, piece: Piece) -> bool:
        last, kind = before.kind, piece.kind
        if last in OPENERS or kind in CLOSERS or kind in ("COMMA", "DOT", "RANGE", "COLON"):
            return False
        if last in ("DOT", "RANGE") or self.sign:
            return False
        if kind in ("LPAR", "LSQB"):
            return last not in _OPERAND_ENDS and not self._tight(last)
        return not self._tight(last) and not (kind == "EQUAL" and not self.typed[-1])

    def _tight(self, last: str) -> bool:
        """Whether nothing follows `last` directly."""
        if last == "EQUAL":
            return not self.typed[-1]
        return last == "COLON" and bool(self.brackets) and self.brackets[-1] == "LSQB"
