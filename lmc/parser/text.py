'''What a string literal says: pieces of text and holes.

    user: """                      TextPiece("Dear ")
        Dear ${name},              Hole(Name("name"))
          you said:                TextPiece(",\\n  you said:")
        """

A block (`"""` and a line break) loses that line break, the last one with the closing indentation, and that indentation from every
line; blank lines need not have it.  All of this works on the raw source; escapes come after it, and what holes hold is never looked
at.  This file does not know what an expression is: holes are built by the function it is given.
'''

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable

from lmc.diagnostics import Diagnostic
from lmc.parser.ast import Hole, Text, TextPiece
from lmc.parser.sources import HoleSource, StringSource
from lmc.parser.places import Places

BuildHole = Callable[[HoleSource], "Hole | None"]


def build_text(string: StringSource, source: str, places: Places, build_hole: BuildHole, report: list[Diagnostic]) -> Text:
    """The `Text` of `string`; mistakes go to `report`, and what can be kept is kept.

    `build_hole` gives the node of a hole, or None for a hole that is wrong (it reports that itself).
    """
    return _TextBuilder(string, source, places, build_hole, report).build()


class _TextBuilder:
    __slots__ = ("string", "source", "places", "build_hole", "report")

    def __init__(self, string: StringSource, source: str, places: Places, build_hole: BuildHole, report: list[Diagnostic]):
        self.string = string
        self.source = source
        self.places = places
        self.build_hole = build_hole
        self.report = report

    def build(self) -> Text:
        string = self.string
        runs = self._runs()
        breaks = [at for start, end in runs for at in _line_breaks(self.source, start, end)]
        block = string.triple and bool(breaks)
        cuts = self._cuts(runs, breaks) if block else []
        parts: list[TextPiece | Hole] = []
        for index, run in enumerate(runs):
            piece = self._piece(run, cuts)
            if piece:
                parts.append(piece)
            if index < len(string.holes) and string.holes[index].code is not None:
                hole = self.build_hole(string.holes[index])
                if hole is not None:
                    parts.append(hole)
        return Text(self.places.span(string.start, string.end), tuple(_join(parts)), string.raw, block)

    def error(self, code: str, message: str, start: int, end: int, label: str, help: str) -> None:
        self.report.append(Diagnostic(code, message, self.places.span(start, end), label, help))

    def _runs(self) -> list[tuple[int, int]]:
        """The stretches of literal text: one more than there are holes and comments, some of them empty."""
        runs, at = [], self.string.body
        for hole in self.string.holes:
            runs.append((at, hole.start))
            at = hole.end
        runs.append((at, self.string.body_end))
        return runs

    # -------------------------------------------------------------- blocks

    def _cuts(self, runs: list[tuple[int, int]], breaks: list[int]) -> list[tuple[int, int]]:
        """The stretches that a block's layout takes away, in order."""
        source, body, body_end = self.source, self.string.body, self.string.body_end
        if breaks[0] != body:
            self.error("E0012", "a block string begins on the line after its quotes", body, breaks[0],
                       "text on the line of the quotes",
                       'break the line after `"""`, or keep the whole string on one line')
            return []
        last = breaks[-1]
        closing = source[last + 1 : body_end]
        if runs[-1][0] > last or closing.strip(" \t"):
            self.error("E0012", "a block string ends on a line of its own", body_end, self.string.end,
                       "text before the quotes on this line",
                       'put `"""` alone on the next line; its indentation is taken off every line')
            return []
        cuts = [(body, body + 1)]
        for at in breaks[:-1]:
            self._indentation(at + 1, closing, cuts)
        if last > body:
            cuts.append((last, body_end))
        else:
            cuts = [(body, body_end)]
        return cuts

    def _indentation(self, line: int, indent: str, cuts: list[tuple[int, int]]) -> None:
        if not indent:
            return
        source = self.source
        if source.startswith(indent, line):
            cuts.append((line, line + len(indent)))
            return
        end = line
        while source[end] in " \t" and end < line + len(indent):
            end += 1
        if source[end] == "\n":
            cuts.append((line, end))
            return
        if source[line:end].count("\t"):
            self.error("E0003", "a tab in the indentation of a block string", line, end, "indent with spaces",
                       "use the same spaces as before the closing quotes")
            return
        self.error("E0013", "this line is indented less than the closing quotes of its block string", line, end + 1,
                   f"{end - line} spaces, the closing quotes have {len(indent)}",
                   'indent the line, or move the closing `"""` to the left: what stands before it is taken off every line')

    # ------------------------------------------------------------- escapes

    def _piece(self, run: tuple[int, int], cuts: list[tuple[int, int]]) -> TextPiece | None:
        start, end = run
        chunks, at = [], start
        # By index: a slice of the cuts for each run would make a long text with many holes quadratic.
        for index in range(bisect_left(cuts, (start, start)), len(cuts)):
            cut_start, cut_end = cuts[index]
            if cut_start >= end:
                break
            chunks.append(self._unescape(at, cut_start))
            at = cut_end
        chunks.append(self._unescape(at, end))
        text = "".join(chunks)
        return TextPiece(self.places.span(start, end), text) if text else None

    def _unescape(self, start: int, end: int) -> str:
        raw = self.source[start:end]
        if self.string.raw or "\\" not in raw:
            return raw
        return _ESCAPE.sub(lambda m: self._escape(m, start), raw)

    def _escape(self, found: re.Match[str], base: int) -> str:
        known = _SIMPLE.get(found[0][1:])
        if known is not None:
            return known
        start, end = base + found.start(), base + found.end()
        if found[1] is not None:
            return self._code_point(found, start, end)
        if found[0][1:] == "u":
            self.error("E0009", "`\\u` needs braces", start, end, "a code point is written `\\u{…}`",
                       "write for instance `\\u{e9}` for é")
        elif found[0][1:] == "\n":
            self.error("E0009", "a backslash at the end of a line", start, start + 1, "this joins no lines here",
                       "remove it; in a block string every line break is text")
        else:
            self.error("E0009", f"unknown escape `{found[0]}`", start, end, "not an escape",
                       'the escapes are `\\n \\t \\r \\" \\\\ \\$ \\u{…}`; a backslash is `\\\\`; in r"…" nothing is special')
        return found[0]

    def _code_point(self, found: re.Match[str], start: int, end: int) -> str:
        digits = found[1]
        value = int(digits, 16) if re.fullmatch(r"[0-9a-fA-F]{1,6}", digits) else -1
        if 0 <= value <= 0x10FFFF and not 0xD800 <= value <= 0xDFFF:
            return chr(value)
        self.error("E0009", f"`{found[0][:20]}` is no character", start, end, "expected the hexadecimal number of a code point",
                   "write for instance `\\u{1f600}`; surrogates are no characters")
        return ""


_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "$": "$"}
_ESCAPE = re.compile(r"\\(?:u\{([^}\"\n]*)\}|.|\n|$)", re.DOTALL)


def _line_breaks(source: str, start: int, end: int) -> list[int]:
    found, at = [], source.find("\n", start, end)
    while at >= 0:
        found.append(at)
        at = source.find("\n", at + 1, end)
    return found


def _join(parts: list[TextPiece | Hole]) -> list[TextPiece | Hole]:
    """Neighbouring pieces as one: a comment between them leaves no seam."""
    joined: list[TextPiece | Hole] = []
    for part in parts:
        if joined and isinstance(part, TextPiece) and isinstance(joined[-1], TextPiece):
            before = joined.pop()
            part = TextPiece(before.span.to(part.span), before.text + part.text)
        joined.append(part)
    return joined
