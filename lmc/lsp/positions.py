"""Places of `lmc` and positions of an editor: lines from 1 and characters there, lines from 0 and code units here.

    Lines('a = "😀" # x\\n').position(1, 7)  ->  line 0, character 7      (the emoji is two UTF-16 units)

The unit is UTF-16's unless editor and server agreed on another.  This file knows no document and no program.
"""

from __future__ import annotations

from lsprotocol.types import Position, PositionEncodingKind, Range

from lmc.diagnostics import Span

UTF16 = PositionEncodingKind.Utf16


class Lines:
    """The lines of one text; only `\\n` ends a line, as in `lmc`."""

    __slots__ = ("lines", "encoding")

    def __init__(self, text: str, encoding: str = UTF16):
        self.lines = [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]
        self.encoding = encoding

    def position(self, line: int, column: int) -> Position:
        """The position of the character at `line`, `column` (both from 1); what lies outside the text is moved to its edge."""
        if line > len(self.lines):
            return self.end
        text = self.lines[max(line, 1) - 1]
        return Position(max(line, 1) - 1, self._units(text[: max(column - 1, 0)]))

    def range(self, span: Span) -> Range:
        return Range(self.position(span.line, span.column), self.position(span.end_line, span.end_column))

    def place(self, position: Position) -> tuple[int, int]:
        """Line and column (from 1) of a position; within a character: that of the character."""
        if position.line >= len(self.lines):
            return len(self.lines), len(self.lines[-1]) + 1
        units = 0
        text = self.lines[position.line]
        for column, character in enumerate(text, 1):
            units += self._units(character)
            if units > position.character:
                return position.line + 1, column
        return position.line + 1, len(text) + 1

    def offset(self, position: Position) -> int:
        """The offset in the text as `lmc` reads it: `\\n` line ends, no byte-order mark."""
        line, column = self.place(position)
        return sum(len(text) + 1 for text in self.lines[: line - 1]) + column - 1

    @property
    def end(self) -> Position:
        return Position(len(self.lines) - 1, self._units(self.lines[-1]))

    def _units(self, text: str) -> int:
        if self.encoding == PositionEncodingKind.Utf32 or text.isascii():
            return len(text)
        if self.encoding == PositionEncodingKind.Utf8:
            return len(text.encode("utf-8", "surrogatepass"))
        return sum(1 + (character > "\uffff") for character in text)


def translate(old: list[str], new: list[str], line: int) -> int | None:
    """Where line `line` (from 1) of `old` is in `new`, by the lines that both begin and end with; None between these."""
    first = 0
    shorter = min(len(old), len(new))
    while first < shorter and old[first] == new[first]:
        first += 1
    if line <= first:
        return line
    last = 0
    while last < shorter - first and old[-1 - last] == new[-1 - last]:
        last += 1
    return line + len(new) - len(old) if line > len(old) - last else None

