"""Cuts a source that parses into logical lines of tokens, with its comments.

    if x:      # why            Line(level 0, "if x :", trailing "# why")
        f(a,                    Line(level 1, "f ( a , # first b )")
          # first
          b)
    # after                     OwnComment(level 0, "# after")

Levels are counted from `_INDENT` and `_DEDENT`; the level of a comment on a line of its own is the deepest block around it that
its column reaches.  This file does not know the style.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lmc.parser.grammar import parse_tokens
from lmc.parser.layout import scan
from lmc.parser.places import Places
from lmc.parser.sources import StringSource


@dataclass(slots=True, eq=False)
class Piece:
    """A token as the source spells it, or a comment inside brackets (`kind == "COMMENT"`)."""

    kind: str
    text: str
    start: int
    string: StringSource | None = None
    own_line: bool = False
    """For a comment: whether nothing stands before it on its line."""
    continued: bool = False
    """Whether a backslash and a line break stand before it, outside of brackets."""
    space: bool = False
    """Whether a space stands before it; `spacing.py` sets it."""
    column: int = 0
    indent: int = 0
    """For a comment at the end of a line: its column and that of the line's first character, from 0."""
    leads: bool = False
    """Whether it is the first thing on its line."""

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(slots=True)
class Line:
    """A logical line; `head` is whether a top-level item begins with it."""

    level: int
    pieces: list[Piece]
    head: bool
    trailing: Piece | None = None
    blank_before: bool = False


@dataclass(slots=True)
class OwnComment:
    level: int
    piece: Piece
    blank_before: bool = False


@dataclass(slots=True)
class SourceLines:
    """What a file consists of, in order."""

    text: str
    parts: list[Line | OwnComment] = field(default_factory=list)


def read_lines(path: str, text: str) -> SourceLines:
    """Cut `text`, which must parse."""
    places = Places(path, text)
    layout = scan(text, places)
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    comments = [_comment(text, starts[number - 1], starts[number] - 1, body) for number, body in sorted(layout.comments.items())]
    lines: list[Line] = []
    for item in layout.items:
        lines += _item_lines(text, layout.code.masked[item.start : item.end] + "\n", item.start, layout.code.strings)
    parts = _place_comments(text, lines, comments)
    _mark_blanks(text, parts)
    return SourceLines(text, parts)


def _comment(text: str, line_start: int, line_end: int, body: str) -> Piece:
    start = line_end - len(body) - 1
    before = text[line_start:start]
    # The line of a comment after a block string begins inside that string.
    indent = len(before) - len(before.lstrip(" \t"))
    return Piece("COMMENT", text[start:line_end].rstrip(), start, own_line=not before.strip(" \t"), column=len(before),
                 indent=indent)


def _item_lines(text: str, masked: str, offset: int, strings: dict[int, StringSource]) -> Iterator[Line]:
    level, pieces, head = 0, [], True
    for token in parse_tokens(masked):
        if token.type == "_INDENT":
            level += 1
        elif token.type == "_DEDENT":
            level -= 1
        elif token.type == "_NL":
            yield Line(level, pieces, head)
            pieces, head = [], False
        else:
            start = offset + token.start_pos
            piece = Piece(token.type, text[start : offset + token.end_pos], start, strings.get(start))
            between = text[pieces[-1].end : start] if pieces else ""
            piece.leads = not pieces or "\n" in between
            piece.continued = "\\\n" in between and not _open_brackets(pieces)
            pieces.append(piece)


def _open_brackets(pieces: list[Piece]) -> bool:
    """Whether a bracket is open at the end; only asked where a backslash was met, so it may count from the start."""
    return sum((p.kind in OPENERS) - (p.kind in CLOSERS) for p in pieces) > 0


OPENERS = ("LPAR", "LSQB", "LBRACE")
CLOSERS = ("RPAR", "RSQB", "RBRACE")


def _place_comments(text: str, lines: list[Line], comments: list[Piece]) -> list[Line | OwnComment]:
    """Comments go into the line that holds them, after the line they end, or between two lines."""
    parts: list[Line | OwnComment] = []
    columns = [0]
    at = 0
    for line in lines:
        first, last = line.pieces[0], line.pieces[-1]
        between = []
        while at < len(comments) and comments[at].start < first.start:
            between.append(comments[at])
            at += 1
        parts += _between(between, columns, line.level)
        inside = []
        while at < len(comments) and comments[at].start < last.start:
            inside.append(comments[at])
            at += 1
        if inside:
            line.pieces = sorted([*line.pieces, *inside], key=lambda p: p.start)
        if at < len(comments) and "\n" not in text[last.end : comments[at].start]:
            line.trailing = comments[at]
            at += 1
        parts.append(line)
        columns[line.level :] = [first.start - text.rfind("\n", 0, first.start) - 1]
    return parts + _between(comments[at:], columns, 0)


def _between(comments: list[Piece], columns: list[int], next_level: int) -> list[OwnComment]:
    """The comments between a line at the innermost of `columns` and one at `next_level`."""
    deepest = len(columns) - 1
    placed = []
    for comment in comments:
        level = next_level
        while level < deepest and columns[level + 1] <= comment.column:
            level += 1
        placed.append(OwnComment(level, comment))
    return placed


def _mark_blanks(text: str, parts: list[Line | OwnComment]) -> None:
    end = 0
    for part in parts:
        first = part.pieces[0] if isinstance(part, Line) else part.piece
        part.blank_before = text.count("\n", end, first.start) > 1 and end > 0
        last = part.piece if isinstance(part, OwnComment) else part.trailing or part.pieces[-1]
        end = last.end
