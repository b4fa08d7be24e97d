"""From offsets in a file to lines and columns.

    Places("a.lmp", "x = 1\\ny = 2\\n").span(6, 7)  ==  Span("a.lmp", 2, 1, 2, 2)
"""

from __future__ import annotations

import re
from bisect import bisect_right

from lmc.diagnostics import Span


class Places:
    """The places of one file; offsets count characters from 0."""

    __slots__ = ("path", "_starts")

    def __init__(self, path: str, text: str):
        self.path = path
        self._starts = [0, *(m.end() for m in re.finditer("\n", text))]

    def line(self, offset: int) -> int:
        """The line of `offset`, from 1."""
        return bisect_right(self._starts, offset)

    def span(self, start: int, end: int) -> Span:
        """The span of `start:end`."""
        starts = self._starts
        line = bisect_right(starts, start)
        end_line = line if line < len(starts) and end < starts[line] or line == len(starts) else bisect_right(starts, end)
        return Span(self.path, line, start - starts[line - 1] + 1, end_line, end - starts[end_line - 1] + 1)
