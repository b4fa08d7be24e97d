"""How a piece of a program is written, for people: a hole of a string with its place, and a call on one line.

    "Judge only its ${d}."      name 0 of 1   ->   judge.lmp:28:30, `${d}`

A compiled program keeps the places of what is computed, and so of most holes.  Of one that is only a name it keeps that of the
whole string, so such holes are looked for in the source text.  Where passes have put strings together or folded a name away, the
numbers do not match, and the place is that of the string.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lmc.diagnostics import Span

_NAME = re.compile(r"\$\{\s*[^\W\d]\w*\s*\}")
_LONGEST = 34


class Places:
    """`sources`: the text of each file, as in `Program.sources`."""

    __slots__ = ("_lines", "_names")

    def __init__(self, sources: Mapping[str, str]):
        self._lines = {file: text.split("\n") for file, text in sources.items()}
        self._names: dict[Span, tuple[tuple[Span, str], ...]] = {}

    def text(self, span: Span | None) -> str:
        """The source text of a place; empty where there is none."""
        lines = self._lines.get(span.file) if span is not None else None
        if span is None or lines is None or span.end_line > len(lines):
            return ""
        found = lines[span.line - 1 : span.end_line]
        found[-1] = found[-1][: span.end_column - 1]
        found[0] = found[0][span.column - 1 :]
        return "\n".join(found)

    def line(self, span: Span | None) -> str:
        """The same on one line, cut where it is long."""
        text = " ".join(self.text(span).split())
        return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"

    def head(self, span: Span | None) -> str:
        """The first line of a statement, without its colon and comment: `fork d in dimensions`."""
        text = " ".join(self.text(span).partition("\n")[0].partition(" #")[0].split()).removesuffix(":")
        return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"

    def names(self, span: Span | None, count: int) -> tuple[tuple[Span, str], ...] | None:
        """The place and text of each hole of a string that is only a name, if there are `count` of them."""
        if span is None:
            return None
        if span not in self._names:
            self._names[span] = tuple(self._find(span))
        found = self._names[span]
        return found if len(found) == count else None

    def _find(self, span: Span) -> list[tuple[Span, str]]:
        text, found = self.text(span), []
        for hole in _NAME.finditer(text):
            line, column = _place(span, text, hole.start())
            end_line, end_column = _place(span, text, hole.end())
            found.append((Span(span.file, line, column, end_line, end_column), hole[0]))
        return found


def _place(span: Span, text: str, offset: int) -> tuple[int, int]:
    lines = text.count("\n", 0, offset)
    start = text.rfind("\n", 0, offset) + 1
    return span.line + lines, offset - start + (1 if lines else span.column)
