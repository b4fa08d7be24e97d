"""The words of the text form, with their places, and the cursor that the reader moves over them.

    %c1: context = context.append(%c0)   ->   VALUE c1, ":", WORD context, "=", WORD context.append, "(", VALUE c0, ")"

Linear in the length of the text.  This file knows no grammar.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass
from enum import Enum, auto
from typing import NoReturn

from lmc.diagnostics import Diagnostic, LmcError, Span


class Kind(Enum):
    VALUE = auto()
    SYMBOL = auto()
    STRING = auto()
    NUMBER = auto()
    WORD = auto()
    PUNCTUATION = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """`text` is the name without `%` or `@`, the string unescaped, or the word as written."""

    kind: Kind
    text: str
    start: int
    end: int


# One alternative can start at each character, and none can backtrack over more than its own length.
_TOKEN = re.compile(
    r"""(?P<skip>(?:[ \t\r\n]|\#[^\n]*)+)
      | %(?P<value>[\w.]+)
      | @(?P<symbol>[^\W\d][\w.:+]*|"(?:[^"\\\n]|\\.)*")
      | (?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<number>-?(?:Infinity|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?))
      | (?P<word>[^\W\d][\w.]*)
      | (?P<punctuation>->|\.\.|[=:,()\[\]{}<>|^-])""",
    re.VERBOSE,
)
_KINDS = {
    "value": Kind.VALUE, "symbol": Kind.SYMBOL, "string": Kind.STRING, "number": Kind.NUMBER, "word": Kind.WORD,
    "punctuation": Kind.PUNCTUATION,
}


class Cursor:
    """The tokens of a text and the place reached."""

    __slots__ = ("text", "path", "tokens", "position", "_lines")

    def __init__(self, text: str, path: str):
        self.text, self.path = text, path
        self._lines: list[int] | None = None
        self.tokens = self._scan()
        self.position = 0

    def _scan(self) -> list[Token]:
        tokens, at = [], 0
        while at < len(self.text):
            match = _TOKEN.match(self.text, at)
            if match is None:
                self.fail(f"found {self.text[at]!r}, which begins no word of the IR's text form", at, at + 1)
            if match.lastgroup != "skip":
                tokens.append(self._token(match))
            at = match.end()
        tokens.append(Token(Kind.END, "", at, at))
        return tokens

    def _token(self, match: re.Match[str]) -> Token:
        text = match[match.lastgroup]
        if text.startswith('"'):
            try:
                text = json.loads(text)
            except ValueError:
                self.fail("this string has an escape or a character that JSON does not allow", match.start(), match.end())
        return Token(_KINDS[match.lastgroup], text, match.start(), match.end())

    # ------------------------------------------------------------- reading on

    @property
    def here(self) -> Token:
        return self.tokens[self.position]

    @property
    def following(self) -> Token:
        return self.tokens[min(self.position + 1, len(self.tokens) - 1)]

    def take(self) -> Token:
        token = self.here
        if token.kind is not Kind.END:
            self.position += 1
        return token

    def at(self, text: str, kind: Kind = Kind.PUNCTUATION) -> bool:
        return self.here.kind is kind and self.here.text == text

    def accept(self, text: str, kind: Kind = Kind.PUNCTUATION) -> bool:
        """Take this token if it is the one that stands here."""
        found = self.at(text, kind)
        if found:
            self.position += 1
        return found

    def expect(self, text: str, kind: Kind = Kind.PUNCTUATION) -> Token:
        if not self.at(text, kind):
            self.fail_here(f"`{text}`")
        return self.take()

    def expect_kind(self, kind: Kind, what: str) -> Token:
        if self.here.kind is not kind:
            self.fail_here(what)
        return self.take()

    # ----------------------------------------------------------------- errors

    def fail_here(self, expected: str) -> NoReturn:
        token = self.here
        found = "the end of the text" if token.kind is Kind.END else f"`{self.text[token.start:token.end][:60]}`"
        self.fail(f"expected {expected}, found {found}", token.start, max(token.end, token.start + 1))

    def fail_at(self, token: Token, message: str) -> NoReturn:
        self.fail(message, token.start, token.end)

    def fail(self, message: str, start: int, end: int) -> NoReturn:
        (line, column), (end_line, end_column) = self._place(start), self._place(end)
        span = Span(self.path, line, column, end_line, end_column)
        raise LmcError(Diagnostic("E0902", message, span), {self.path: self.text})

    def _place(self, offset: int) -> tuple[int, int]:
        if self._lines is None:
            self._lines = [0] + [m.end() for m in re.finditer("\n", self.text)]
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1
