"""How long steps report how far they are, and the bar that shows it on a terminal.

    fetching smollm2-135m-instruct  [##########----------]  46.4 of 92.9 MB

A `Progress` is called with what is done, the bytes done and the bytes in all; whoever works does not know who watches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

# (what is being done, bytes done, bytes in all)
Progress = Callable[[str, int, int], None]

_WIDTH = 24


def silent(what: str, done: int, total: int) -> None:
    """A `Progress` that shows nothing."""


class ProgressBar:
    """A `Progress` that draws one line per step on `stream`; where the stream is no terminal, one line when a step begins."""

    __slots__ = ("_stream", "_what", "_drawn")

    def __init__(self, stream: TextIO):
        self._stream = stream
        self._what = ""
        self._drawn = ""

    def __call__(self, what: str, done: int, total: int) -> None:
        if not self._stream.isatty():
            if what != self._what:
                print(f"{what} ({total / 1e6:.1f} MB)", file=self._stream, flush=True)
            self._what = what
            return
        if what != self._what:
            self.close()
            self._what = what
        filled = _WIDTH * min(done, total) // max(total, 1)
        line = f"{what}  [{'#' * filled}{'-' * (_WIDTH - filled)}]  {done / 1e6:.1f} of {total / 1e6:.1f} MB"
        if line != self._drawn:
            self._stream.write("\r" + line.ljust(len(self._drawn)))
            self._stream.flush()
            self._drawn = line

    def close(self) -> None:
        """Ends the line that is being drawn, if there is one."""
        if self._drawn:
            self._stream.write("\n")
            self._stream.flush()
        self._drawn = self._what = ""
