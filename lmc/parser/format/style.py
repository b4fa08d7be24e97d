"""The style: from a source to the same program as `lmc fmt` writes it.

    format_source("a.lmp", "def f( x:int )->int :\\n  return x+1") -> .text == "def f(x: int) -> int:\\n    return x + 1\\n"

What is written is parsed again: where its tree or its comments are not those of the source, nothing is given back.  This file knows
the lines; `breaking.py` knows what is in one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lmc.diagnostics import Diagnostic
from lmc.parser.ast_text import format_tree
from lmc.parser.format.breaking import is_switch, write_line
from lmc.parser.format.lines import CLOSERS, OPENERS, Line, OwnComment, Piece, read_lines
from lmc.parser.format.paper import INDENT, Paper
from lmc.parser.format.spacing import set_spaces
from lmc.parser.parse import ParseResult, parse_file


@dataclass(frozen=True, slots=True)
class Formatted:
    """`text` is None where the source has syntax errors: `diagnostics`, with `source` to show them in."""

    text: str | None
    diagnostics: tuple[Diagnostic, ...]
    source: str


def format_source(path: str, text: str) -> Formatted:
    """Format `text`; `path` only names it in diagnostics.  Line ends become `\\n`, a byte-order mark is dropped."""
    before = parse_file(path, text)
    if before.diagnostics:
        return Formatted(None, before.diagnostics, before.text)
    written = _write(path, before.text)
    after = parse_file(path, written)
    assert not after.diagnostics, f"formatting `{path}` broke its syntax: {after.diagnostics[0]}"
    assert format_tree(after.file) == format_tree(before.file), f"formatting `{path}` changed its meaning"
    assert _comments(after) == _comments(before), f"formatting `{path}` lost a comment"
    return Formatted(written, (), before.text)


def _comments(result: ParseResult) -> list[str]:
    return [text.rstrip() for _, text in sorted(result.comments.items())]


def _write(path: str, text: str) -> str:
    paper = Paper(0)
    parts = list(_with_bodies(read_lines(path, text).parts))
    blanks = _blanks(parts)
    for part, blank in zip(parts, blanks):
        paper.end_line()
        if blank:
            paper.lines.append("")
        if isinstance(part, OwnComment):
            paper.indent = part.level * INDENT
            paper.own_comment(part.piece.text)
        else:
            _write_code(part, paper)
    paper.end_line()
    return "".join(f"{line}\n" for line in paper.lines)


def _write_code(line: Line, paper: Paper) -> None:
    set_spaces(line.pieces)
    before = len(paper.lines)
    write_line(line, paper)
    if line.trailing is None:
        return
    single = len(paper.lines) == before and line.pieces[0].leads
    column = line.trailing.column + line.level * INDENT - line.trailing.indent if single else 0
    paper.comment(line.trailing.text, column)


# -------------------------------------------------------------------- bodies

_OWN_LINE = ("DEF", "PART", "TEST", "IF", "ELIF", "ELSE", "FOR", "WHILE", "TRY", "EXCEPT", "FORK", "BRANCH")
"""What is followed by its body on a new line; a role block, a case and an extern may keep it on theirs."""


def _with_bodies(parts: list[Line | OwnComment]) -> Iterator[Line | OwnComment]:
    """The lines, with a body that stands on the line of its header on a line of its own."""
    for part in parts:
        colon = _body_colon(part) if isinstance(part, Line) and not is_switch(part.trailing) else None
        if colon is None:
            yield part
            continue
        yield Line(part.level, part.pieces[: colon + 1], part.head, None, part.blank_before)
        body = part.pieces[colon + 1 :]
        body[0].continued = False
        yield Line(part.level + 1, body, False, part.trailing)


def _body_colon(line: Line) -> int | None:
    """The place of the colon after which a body follows that must not stand there."""
    if line.pieces[0].kind not in _OWN_LINE:
        return None
    depth = 0
    for index, piece in enumerate(line.pieces[:-1]):
        depth += (piece.kind in OPENERS) - (piece.kind in CLOSERS)
        if piece.kind == "COLON" and not depth:
            return index
    return None


# --------------------------------------------------------------- blank lines

_APART = ("DEF", "PART", "TEST", "CONFIG")


def _blanks(parts: list[Line | OwnComment]) -> list[bool]:
    """For each part whether a blank line stands before it.

    As in the source, one at most, none where a block begins; and one before and after a function, a test and `config`.
    """
    blanks = [part.blank_before for part in parts]
    above: Piece | None = None
    opened = 0
    for index, part in enumerate(parts):
        if index and part.level > parts[index - 1].level and isinstance(parts[index - 1], Line):
            blanks[index] = False
        if not isinstance(part, Line) or not part.head:
            continue
        head = part.pieces[0]
        if above is not None and (head.kind in _APART or above.kind in _APART):
            _set_apart(parts, blanks, opened + 1, index)
        above, opened = head, index
    return blanks


def _set_apart(parts: list[Line | OwnComment], blanks: list[bool], start: int, item: int) -> None:
    """Put a blank line between the item that began before `start` and `item`, where none is."""
    first = item
    while first > start and isinstance(parts[first - 1], OwnComment) and parts[first - 1].level == 0:
        first -= 1
    if not any(blanks[first : item + 1]):
        blanks[first] = True
