"""Makes places, names and texts from tokens, and checks that a name is no reserved word.

The functions in `build_expressions`, `build_statements` and `build_items` are given a `Builder`; it knows none of them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from lark import Token

from lmc.diagnostics import Diagnostic, Span
from lmc.parser import words
from lmc.parser.ast import Hole, Identifier, Name, Text
from lmc.parser.places import Places
from lmc.parser.sources import Code, HoleSource, StringSource
from lmc.parser.text import build_text


class ReservedWords:
    """What a file does with reserved words.  `refused` are those that it gives to something of its own, which is one mistake each:
    uses of them, kept in `uses` with what there would be to say, follow from it."""

    __slots__ = ("refused", "uses")

    def __init__(self) -> None:
        self.refused: set[str] = set()
        self.uses: list[tuple[str, Diagnostic]] = []

    def mistakes(self) -> list[Diagnostic]:
        """The uses that are mistakes of their own, once the whole file is read."""
        return [diagnostic for word, diagnostic in self.uses if word not in self.refused]


class Builder:
    """What the rules of one parsed piece of code need.

    `offset` is where the parsed text begins in the file; `parse_hole` parses and builds a hole, reporting what is wrong with it.
    """

    __slots__ = ("source", "places", "code", "offset", "parse_hole", "report", "reserved", "keywords")

    def __init__(self, source: str, places: Places, code: Code, offset: int, parse_hole: Callable[[HoleSource], Hole | None],
                 report: list[Diagnostic], reserved: ReservedWords):
        self.source = source
        self.places = places
        self.code = code
        self.offset = offset
        self.parse_hole = parse_hole
        self.report = report
        self.reserved = reserved
        self.keywords: dict[Name, None] = {}
        """Names that are keywords, until it is known whether any word may stand there."""

    def span(self, start: int, end: int) -> Span:
        return self.places.span(self.offset + start, self.offset + end)

    def at(self, token: Token) -> Span:
        return self.span(token.start_pos, token.end_pos)

    def error(self, code: str, message: str, span: Span, label: str, help: str) -> None:
        self.report.append(Diagnostic(code, message, span, label, help))

    # ------------------------------------------------------------- tokens

    def label(self, token: Token) -> Identifier:
        """A field, attribute or argument name: any word."""
        return Identifier(self.at(token), _spelled(token))

    def binding(self, token: Token, what: str) -> Identifier:
        """The name of a new `what` (a variable, a parameter, …), which must not be a reserved word."""
        name = self.label(token)
        self.refuse_reserved(name, what)
        return name

    def refuse_reserved(self, name: Identifier | Name, what: str) -> None:
        """Report a reserved word as the name of `what`."""
        word = name.text
        kind = words.reserved(word)
        if kind:
            self.reserved.refused.add(word)
            self.error("E0110", f"`{word}` is {kind} and cannot name {what}", name.span, "reserved",
                       f"choose another name, for instance `{word}_` or `my_{word.lower()}`")

    def name(self, token: Token) -> Name:
        """A use of a name."""
        name = Name(self.at(token), _spelled(token))
        if name.text in words.NOT_VALUES:
            self.keywords[name] = None
        return name

    def allow_keyword(self, name: Name) -> None:
        """`name` turned out to be a field's name, where any word is allowed."""
        self.keywords.pop(name, None)

    def text(self, token: Token) -> Text:
        return self.string(self.code.strings[self.offset + token.start_pos])

    def string(self, string: StringSource) -> Text:
        return build_text(string, self.source, self.places, self.parse_hole, self.report)

    def refuse_keywords(self) -> None:
        """Note the keywords that stand where a value is expected."""
        for name in self.keywords:
            self.reserved.uses.append((name.text, Diagnostic(
                "E0110", f"`{name.text}` is {words.reserved(name.text)}, a value is expected here", name.span, "not a value",
                "write an expression, or choose another name")))


def _spelled(token: Token) -> str:
    """The name that `token` spells: as in Python, ways of writing the same characters are one name."""
    return str(token) if token.isascii() else unicodedata.normalize("NFKC", token)
