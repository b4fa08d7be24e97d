"""What a running program shows: `print`, streamed text and questions, in one place, line by line.

Where the function returns nothing its output is the result and goes to standard output; else standard output is kept for the
JSON and everything else goes to standard error.
"""

from __future__ import annotations

import sys
from typing import TextIO


class Terminal:
    """The sinks of a run.  `out` gets what is printed and streamed; questions go to standard error."""

    __slots__ = ("_out", "_open_line")

    def __init__(self, out: TextIO):
        self._out = out
        #: Whether streamed text stands at the end of an unfinished line.
        self._open_line = False

    def print(self, text: str) -> None:
        self.end_line()
        self._write(text + "\n")

    def stream(self, path: str, text: str) -> None:
        self._open_line = not text.endswith("\n")
        self._write(text)

    def ask(self, prompt: str) -> str:
        """A line of standard input without its newline.  Raises EOFError at its end."""
        self.end_line()
        sys.stderr.write(prompt)
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.removesuffix("\n").removesuffix("\r")

    def end_line(self) -> None:
        """Finish a line of streamed text, so that what comes next begins its own."""
        if self._open_line:
            self._open_line = False
            self._write("\n")

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
