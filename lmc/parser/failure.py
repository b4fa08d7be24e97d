"""What is known about a place where the grammar stopped, in a form that explanations can ask.

    if ready return 1          line    = if ready return 1
             ^^^^^^            first   = "if", before = "ready", found = "return", ready to take `:` (expected)

This file knows Lark's exceptions and nothing of messages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lark import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

_PIECE = re.compile(
    r'"[^"]*"|[0-9][\w]*(?:\.[0-9]\w*)?|\w+|\*\*=|//=|\*\*|//|[-+*/%]=|->|=>|:=|\.\.|===|!==|[=!<>]=|&&|\|\||\+\+|--|<<|>>|<>|\S'
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A token as a reader sees it, at `start:end` of the masked text; a string is `"…"`."""

    text: str
    start: int
    end: int

    @property
    def is_string(self) -> bool:
        return self.text.startswith('"')

    @property
    def is_word(self) -> bool:
        return self.text[0].isalpha() or self.text[0] == "_"

    @property
    def is_value(self) -> bool:
        """Whether it may end a value: a word, a number, a string or a closing bracket."""
        return self.text[0].isalnum() or self.text[0] in '_")]}'


@dataclass(frozen=True, slots=True)
class Failure:
    """Where and why parsing stopped.

    `pieces` are the tokens of the logical line; `index` is the one that could not be taken, `len(pieces)` at the end of the line.
    `expected` are Lark's names of the terminals that could stand there.  `offset` counts in `masked`.
    """

    masked: str
    offset: int
    line_start: int
    line_end: int
    pieces: tuple[Piece, ...]
    index: int
    expected: frozenset[str]
    kind: str
    """The name of the terminal found, or "" where the lexer knew none."""

    @classmethod
    def of(cls, error: UnexpectedInput, masked: str) -> Failure:
        offset, kind, expected = _place(error, masked)
        if kind == "_NL" or kind == "$END":
            line_at = offset
        elif "_INDENT" in expected and len(expected) == 1:
            # The block is missing below the line before.
            line_at = offset = len(masked[:offset].rstrip())
        else:
            line_at = offset
        start = masked.rfind("\n", 0, line_at) + 1
        end = masked.find("\n", line_at)
        end = len(masked) if end < 0 else end
        pieces = tuple(Piece(m[0], m.start(), m.end()) for m in _PIECE.finditer(masked, start, end))
        index = next((i for i, piece in enumerate(pieces) if piece.end > offset), len(pieces))
        return cls(masked, offset, start, end, pieces, index, expected, kind)

    @property
    def found(self) -> Piece | None:
        return self.pieces[self.index] if self.index < len(self.pieces) else None

    @property
    def before(self) -> Piece | None:
        return self.pieces[self.index - 1] if self.index > 0 else None

    @property
    def after(self) -> Piece | None:
        return self.pieces[self.index + 1] if self.index + 1 < len(self.pieces) else None

    @property
    def first(self) -> str:
        """The first token of the line, "" where the line is empty."""
        return self.pieces[0].text if self.pieces else ""

    @property
    def second(self) -> str:
        return self.pieces[1].text if len(self.pieces) > 1 else ""

    @property
    def at_top(self) -> bool:
        """Whether the line is the first of its item."""
        return self.line_start == 0

    @property
    def opener(self) -> Piece | None:
        """The innermost bracket of this line that is open at the place."""
        stack = []
        for piece in self.pieces[: self.index]:
            if piece.text in "([{":
                stack.append(piece)
            elif piece.text in ")]}" and stack:
                stack.pop()
        return stack[-1] if stack else None

    @property
    def at_end(self) -> bool:
        """Whether nothing of the item is left: what follows is missing, not wrong."""
        return self.kind in ("_DEDENT", "$END") and not self.masked[self.offset :].strip()

    @property
    def has_colon(self) -> bool:
        """Whether a `:` outside brackets stands before the place."""
        depth = 0
        for piece in self.pieces[: self.index]:
            depth += (piece.text in "([{") - (piece.text in ")]}")
            if piece.text == ":" and depth == 0:
                return True
        return False

    @property
    def has_block(self) -> bool:
        """Whether the next line that is not empty is indented deeper."""
        rest = re.compile(r"\n(?: *\n)* *(?=[^ \n])").match(self.masked, self.line_end)
        return rest is not None and len(rest[0]) - 1 - rest[0].rfind("\n") > self.indent

    @property
    def indent(self) -> int:
        return (self.pieces[0].start if self.pieces else self.line_end) - self.line_start


def _place(error: UnexpectedInput, masked: str) -> tuple[int, str, frozenset[str]]:
    if isinstance(error, UnexpectedCharacters):
        return error.pos_in_stream, "", frozenset(error.allowed or ())
    assert isinstance(error, UnexpectedToken), error
    token = error.token
    expected = frozenset(error.interactive_parser.accepts()) if error.interactive_parser else frozenset(error.expected)
    if token.type in ("_INDENT", "_DEDENT"):
        # Where nothing follows, the end of the last line: spaces after it are no place to point at.
        return min(token.end_pos, len(masked.rstrip())), token.type, expected
    if token.type == "$END":
        return len(masked.rstrip()), token.type, expected
    return token.start_pos, token.type, expected


def repairs(failure: Failure) -> list[str]:
    """The masked text with the failing line replaced by one of the same length that says nothing, in several ways."""
    room = failure.line_end - failure.line_start - failure.indent
    if failure.kind == "_INDENT":
        return []
    if failure.at_top:
        fillers = ['test"":'] if failure.has_block and failure.first in ("def", "part", "async", "extern", "test") else []
    elif failure.has_block:
        fillers = ["if _:", "case _:", "branch _:"]
    else:
        fillers = ["pass", "_:_", "_=_", "_", ""]
    start = failure.line_start + failure.indent
    before, after = failure.masked[:start], failure.masked[failure.line_end :]
    return [before + filler.ljust(room) + after for filler in fillers if len(filler) <= room]
