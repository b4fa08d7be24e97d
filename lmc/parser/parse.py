"""From the text of a `.lmp` file to its syntax tree and all its syntax errors.

    text -> layout.scan -> items -> Lark (one item, one hole at a time) -> build -> ast.File

Every item is parsed alone, so one broken function does not hide the mistakes of the next; an item that cannot be read becomes a
`BrokenItem` with the name of its header.  No input makes this raise.  This file does not know what names or types mean.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from lark import Tree, UnexpectedInput

from lmc.diagnostics import Diagnostic, Span
from lmc.parser import words
from lmc.parser.ast import BrokenItem, Expr, File, Hole, Identifier, Item
from lmc.parser.build import MAX_DEPTH, build, too_deep
from lmc.parser.builder import Builder, ReservedWords
from lmc.parser.failure import Failure, repairs
from lmc.parser.grammar import parse_tree
from lmc.parser.headers import read_header
from lmc.parser.layout import Layout, scan
from lmc.parser.places import Places
from lmc.parser.read import read_source
from lmc.parser.sources import Code, HoleSource, ItemSource
from lmc.parser.syntax_errors import explain, follows_from

__all__ = ["ParseResult", "parse_file", "read_source"]

_MAX_ERRORS_PER_ITEM = 20


@dataclass(frozen=True, slots=True)
class ParseResult:
    """The tree, what is wrong with it, and the comments by line (for `# lmc: allow W103`).

    `text` is what was parsed: `\\n` line ends and no byte-order mark.
    """

    file: File
    diagnostics: tuple[Diagnostic, ...]
    text: str
    comments: dict[int, str]


def parse_file(path: str, text: str) -> ParseResult:
    """Parse `text`; `path` only names it in spans."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    places = Places(path, text)
    zero = text.find("\0")
    if zero >= 0:
        error = Diagnostic("E0002", "the file holds a null byte", places.span(zero, zero + 1), "not text",
                           "is this a `.lmp` source file? remove the byte")
        return ParseResult(File(Span(path, 1, 1, 1, 1), path, ()), (error,), text, {})
    layout = scan(text, places)
    parser = _ItemParser(text, places, layout)
    file = File(places.span(0, len(text)), path, tuple(parser.items()))
    diagnostics = sorted(layout.diagnostics + parser.reserved.mistakes(), key=lambda d: d.span)
    return ParseResult(file, tuple(diagnostics), text, layout.comments)


class _ItemParser:
    __slots__ = ("text", "places", "layout", "report", "reserved", "string_starts", "hole_trees")

    def __init__(self, text: str, places: Places, layout: Layout):
        self.text = text
        self.places = places
        self.layout = layout
        self.report = layout.diagnostics
        self.reserved = ReservedWords()
        self.string_starts = list(layout.code.strings)
        self.hole_trees: dict[str, Tree] = {}
        """Of holes by what they hold: places in a tree count from its start, so a text that shows one name often parses it once."""

    def items(self) -> list[Item]:
        return [self._item(source) for source in self.layout.items]

    def _item(self, source: ItemSource) -> Item:
        if source.broken:
            return self._broken(source)
        code = self.layout.code
        masked = code.masked[source.start : source.end] + "\n"
        try:
            tree = parse_tree(masked, "item")
        except UnexpectedInput as error:
            self._explain(source.start, masked, error)
            self._check_strings(source)
            return self._broken(source)
        item = build(self._builder(code, source.start), tree)
        deep = too_deep(item)
        if deep is None:
            return item
        self.report.append(Diagnostic("E0015", f"blocks, brackets and operators are nested deeper than {MAX_DEPTH} levels",
                                      deep.span,
                                      "this is too deep",
                                      "name an inner piece and use the name; each operator of a chain is a level"))
        return self._broken(source)

    def _builder(self, code: Code, offset: int) -> Builder:
        return Builder(self.text, self.places, code, offset, self._hole, self.report, self.reserved)

    def _hole(self, hole: HoleSource) -> Hole | None:
        code = hole.code
        try:
            tree = self.hole_trees.get(code.masked) or parse_tree(code.masked, "hole")
        except UnexpectedInput as error:
            failure = Failure.of(error, code.masked)
            self.report.append(explain(failure, code.start, self.places, hole=(hole.start, hole.end)))
            return None
        self.hole_trees[code.masked] = tree
        value = build(self._builder(code, code.start), tree)
        span = self.places.span(hole.start, hole.end)
        if isinstance(value, Hole):
            return Hole(span, value.value, value.name)
        assert isinstance(value, Expr), value
        return Hole(span, value)

    # -------------------------------------------------------------- errors

    def _explain(self, start: int, masked: str, error: UnexpectedInput) -> None:
        """Report the error and, with its line taken out, those after it."""
        failure: Failure | None = Failure.of(error, masked)
        broken: set[str] = set()
        for _ in range(_MAX_ERRORS_PER_ITEM):
            if failure is None:
                return
            if not follows_from(failure, broken):
                diagnostic = explain(failure, start, self.places)
                if failure.first in words.ROLES:
                    # A call of what the file has given this name to.
                    self.reserved.uses.append((failure.first, diagnostic))
                else:
                    self.report.append(diagnostic)
            broken.add(failure.first)
            failure = _next_failure(failure)

    def _check_strings(self, source: ItemSource) -> None:
        """Report what is wrong inside the strings of an item that did not parse."""
        code = self.layout.code
        builder = self._builder(code, 0)
        for start in self.string_starts[bisect_left(self.string_starts, source.start) : bisect_left(self.string_starts,
                                                                                                    source.end)]:
            builder.string(code.strings[start])

    def _broken(self, source: ItemSource) -> BrokenItem:
        span = self.places.span(source.start, source.end)
        header = read_header(self.layout.code.masked[source.start : source.end])
        starts = [(name, source.start + at) for name, at in header.names]
        return BrokenItem(span, header.kind, tuple(Identifier(self.places.span(at, at + len(name)), name) for name, at in starts))


def _next_failure(failure: Failure) -> Failure | None:
    """What fails after this one's line is taken out, in the way that lets most be read; None where nothing does."""
    furthest: Failure | None = None
    for masked in repairs(failure):
        try:
            parse_tree(masked, "item")
            return None
        except UnexpectedInput as error:
            later = Failure.of(error, masked)
        # At the end of the item it could only be that what was taken out is missing.
        if not later.at_end and later.line_start > failure.line_start and (furthest is None or later.offset > furthest.offset):
            furthest = later
    return furthest
