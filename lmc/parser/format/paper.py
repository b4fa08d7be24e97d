'''What is written: lines, how wide they are, and block strings moved as a whole.

    paper.write('user: """\\n      Hi\\n      """')      at level 1:         user: """
                                                                           Hi
                                                                           """

The characters of a string never change.  A block string's lines all move by as much as its closing quotes do, which stand one level
deeper than the line on which it begins, or as deep as its opening quotes where it begins the line.
'''

from __future__ import annotations

from lmc.parser.format.lines import Piece
from lmc.parser.sources import StringSource

INDENT = 4
WIDTH = 100


class Paper:
    """Finished lines and the one being written."""

    __slots__ = ("lines", "line", "indent", "widest")

    def __init__(self, indent: int, line: str = ""):
        self.lines: list[str] = []
        self.line = line
        self.indent = indent
        """Columns before the first character of a line that begins now."""
        self.widest = 0
        """The width of the widest line, without comments and without what block strings hold."""

    @property
    def fresh(self) -> bool:
        """Whether nothing stands on the line yet."""
        return not self.line

    def write(self, piece: Piece) -> None:
        if piece.string is not None and "\n" in piece.text:
            self._write_block(piece, piece.string)
        else:
            self.add(piece.text)

    def add(self, text: str) -> None:
        self.line = (self.line or " " * self.indent) + text

    def comment(self, text: str, column: int = 0) -> None:
        """A comment at the end of the line, not before `column`."""
        self.measure()
        gap = max(2, column - len(self.line))
        self.lines.append(self.line + " " * gap + text)
        self.line = ""

    def own_comment(self, text: str) -> None:
        assert self.fresh, self.line
        self.lines.append(" " * self.indent + text)

    def end_line(self, indent: int | None = None) -> None:
        """Begin a new line, indented by `indent` from now on."""
        if self.line:
            self.measure()
            self.lines.append(self.line)
            self.line = ""
        if indent is not None:
            self.indent = indent

    def measure(self) -> None:
        self.widest = max(self.widest, len(self.line))

    def _write_block(self, piece: Piece, string: StringSource) -> None:
        target = self.indent if self.fresh else self.indent + INDENT
        first, *rest = move_block(piece.text, string, target).split("\n")
        self.add(first)
        self.measure()
        self.lines += [self.line, *rest[:-1]]
        self.line = rest[-1]


def move_block(text: str, string: StringSource, indent: int) -> str:
    """The literal `text` of `string` with its closing quotes indented by `indent`, if it is a block string."""
    breaks = _line_breaks(text, string)
    if not breaks or not string.triple:
        return text
    closing = text[breaks[-1] + 1 : string.body_end - string.start]
    moved = [text[: breaks[0]]]
    for start, end in zip(breaks, [*breaks[1:], len(text)]):
        line = text[start + 1 : end]
        moved.append(" " * indent + line[len(closing) :] if line.startswith(closing) and line != closing else "")
    return "\n".join(moved)


def _line_breaks(text: str, string: StringSource) -> list[int]:
    """Where in `text` the lines of the string itself end; line breaks inside its holes are none."""
    runs, at = [], string.body
    for hole in string.holes:
        runs.append((at, hole.start))
        at = hole.end
    runs.append((at, string.body_end))
    base = string.start
    return [at for start, end in runs for at in range(start - base, end - base) if text[at] == "\n"]
