"""Code with its strings, comments and inner line breaks masked, so that what is left can be read by a grammar.

    user: "Hi ${g("a")}"   # note       ->      user: "____________"
    y = [x,                             ->      y = [x,   x]
         x]

Masked text is as long as the source, so offsets stay offsets of the file.  What a string holds is kept in a `StringSource`, each
hole again as masked `Code`.  This file does not know the grammar; escapes and the dedent of block strings are `text.py`'s.
"""

from __future__ import annotations

import re

from lmc.diagnostics import Diagnostic
from lmc.parser.places import Places
from lmc.parser.sources import Code, HoleSource, StringSource

MAX_NESTING = 100
"""Levels of brackets and indentation; a bound of ours, so that no input meets Python's own."""

_HOLE_LEVELS = 5
"""A hole counts as so many levels, because parsing what it holds takes as many frames."""


class TooDeep(Exception):
    def __init__(self, offset: int):
        self.offset = offset


_PLAIN = re.compile(r"""(?:[^"'#()\[\]{}\n\\\w]|\w++(?!["']))+""")
_WORD = re.compile(r"\w+")
_PREFIX = re.compile(r"[rR]?[fFbB]|[fFbB]?[rR]|[uU]")
_SINGLE = re.compile(r"(?:[^'\\\n]|\\.)*")
_SINGLE_TRIPLE = re.compile(r"(?:[^'\\]|\\.|'(?!''))*", re.DOTALL)
_LINE_STOP = re.compile(r'["\\\n]|\$\{')
_BLOCK_STOP = re.compile(r'"""|\\|\$\{')
_ITEM_HEAD = re.compile(
    r"(?:def|part|type|extern|pure|import|from|test|config)\b *(?:[\w\"]|:)|[A-Z][A-Z0-9_]* *(?::[^=\n]*)?=(?!=)"
)
"""How a line at column 1 begins that is an item even where a bracket or a block string is still open."""

_STRAY = re.compile(r"[^\S \t\n]|[\x01-\x08\x0e-\x1f\x7f\u200b-\u200f\u2060\ufeff“”„‘’«»\u0300-\u036f]")
_CLOSERS = {"(": ")", "[": "]", "{": "}"}


class Scanner:
    """Reads the file once, left to right; a hole is read by the same methods, one level down."""

    __slots__ = ("text", "places", "diagnostics", "comments", "depth", "holes", "fatal", "last_fatal")

    def __init__(self, text: str, places: Places):
        self.text = text
        self.places = places
        self.diagnostics: list[Diagnostic] = []
        self.comments: dict[int, str] = {}
        self.depth = 0
        self.holes = 0
        self.fatal: list[int] = []
        """Offsets of mistakes that make their item unreadable."""
        self.last_fatal = -1
        """The largest of them."""

    def error(self, code: str, message: str, start: int, end: int, label: str, help: str, *, fatal: bool = True) -> None:
        self.diagnostics.append(Diagnostic(code, message, self.places.span(start, end), label, help))
        if fatal:
            self.spoil(start)

    def spoil(self, offset: int) -> None:
        """The item at `offset` cannot be read."""
        self.fatal.append(offset)
        self.last_fatal = max(self.last_fatal, offset)

    def code(self, start: int, hole: _Hole | None) -> Code:
        """Code from `start` to the end of the file, or to the `}` that closes `hole`, whose `end` is then set."""
        return _CodeScan(self, start, hole).run()

    # ------------------------------------------------------------- strings

    def string(self, start: int, prefix: str) -> StringSource:
        quote = start + len(prefix)
        if self.text[quote] == "'":
            return self._single_quoted(start, quote)
        raw = "r" in prefix.lower()
        if prefix and prefix not in "rR":
            self._wrong_prefix(start, prefix)
        triple = self.text.startswith('"""', quote)
        if raw:
            return self._raw(start, quote, triple)
        return self._interpolated(start, quote, triple)

    def _raw(self, start: int, quote: int, triple: bool) -> StringSource:
        mark = '"""' if triple else '"'
        body = quote + len(mark)
        end = self.text.find(mark, body)
        if end < 0 or (not triple and "\n" in self.text[body:end]):
            end = self._unclosed(start, body, triple)
            return StringSource(start, body, end, end, True, triple, ())
        return StringSource(start, body, end, end + len(mark), True, triple, ())

    def _interpolated(self, start: int, quote: int, triple: bool) -> StringSource:
        mark = '"""' if triple else '"'
        stop = _BLOCK_STOP if triple else _LINE_STOP
        body = at = quote + len(mark)
        holes: list[HoleSource] = []
        while True:
            found = stop.search(self.text, at)
            if found is None or found[0] == "\n":
                end = self._unclosed(start, body, triple)
                return StringSource(start, body, end, end, False, triple, tuple(h for h in holes if h.end <= end))
            if found[0] == mark:
                return StringSource(start, body, found.start(), found.end(), False, triple, tuple(holes))
            if found[0] == "\\":
                at = found.end() + (self.text[found.end() : found.end() + 1] not in ("\n", ""))
                continue
            hole = self._hole(found.start(), triple)
            if hole is None:
                end = _find(self.text, "\n", found.end())
                if triple:
                    at = end
                    continue
                return StringSource(start, body, end, end, False, triple, tuple(holes))
            holes.append(hole)
            at = hole.end

    def _unclosed(self, start: int, body: int, triple: bool) -> int:
        """Report it, and say where to go on: the end of the line, or the next item for a block."""
        if not triple and self.holes:
            # The quote was meant to close the text around the hole; the hole itself is reported.
            return _find(self.text, "\n", body)
        if not triple:
            self.error("E0005", "this string is not closed", start, body, "it begins here",
                       'close it with `"` on the same line; text of several lines stands in a block between `"""` and `"""`')
            return _find(self.text, "\n", body)
        self.error("E0005", "this block string is not closed", start, body, "it begins here",
                   'close it with `"""` on a line of its own')
        for line in re.finditer(r"\n(?=[a-zA-Z])", self.text[body:]):
            if _ITEM_HEAD.match(self.text, body + line.end()):
                return body + line.start()
        return len(self.text)

    def _single_quoted(self, start: int, quote: int) -> StringSource:
        triple = self.text.startswith("'''", quote)
        mark = "'''" if triple else "'"
        body = quote + len(mark)
        closed = (_SINGLE_TRIPLE if triple else _SINGLE).match(self.text, body)
        end = closed.end() if closed else -1
        # In 'it's' the second quote is an apostrophe: where the string ends is not known.
        if not self.text.startswith(mark, end) or (not triple and self.text[end + 1 : end + 2].isalnum()):
            self.error("E0010", "a string is written with double quotes", start, body, "a single quote opens nothing here",
                       'write "…"; text that holds double quotes fits in `"""…"""`')
            line_end = _find(self.text, "\n", body)
            return StringSource(start, body, line_end, line_end, True, False, ())
        help = 'write `"""…"""`' if triple else f"write `{_double_quoted(self.text[body:end])}`"
        self.error("E0010", "a string is written with double quotes", start, end + len(mark), "single quotes are not used", help,
                   fatal=False)
        return StringSource(start, body, end, end + len(mark), True, False, ())

    def _wrong_prefix(self, start: int, prefix: str) -> None:
        if "f" in prefix.lower():
            self.error("E0011", "there are no f-strings: every string interpolates", start, start + len(prefix),
                       "drop this letter",
                       'write "…" and put values in `${…}` instead of `{…}`', fatal=False)
        else:
            self.error("E0011", f"there is no string prefix `{prefix}`", start, start + len(prefix), "drop this prefix",
                       'strings are text: write "…", or r"…" where nothing is special', fatal=False)

    # --------------------------------------------------------------- holes

    def _hole(self, start: int, triple: bool) -> HoleSource | None:
        """The hole whose `$` stands at `start`; None where it is not closed (reported)."""
        content = start + 2
        if self.text.startswith("#", content):
            end = self.text.find("}", content)
            if end < 0 or (not triple and "\n" in self.text[content:end]):
                self.error("E0008", "this comment in a text is not closed", start, content + 1, "it begins here",
                           "a comment `${# … }` ends at the first `}`")
                return None
            return HoleSource(start, end + 1, None)
        self.enter(start, _HOLE_LEVELS)
        self.holes += 1
        hole = _Hole(start)
        code = self.code(content, hole)
        self.holes -= 1
        self.depth -= _HOLE_LEVELS
        if hole.end is None:
            self.error("E0008", "this hole is not closed", start, content, "it begins here",
                       "close it with `}` on the same line; a dollar and a brace that are text are written `\\${`")
            return None
        return HoleSource(start, hole.end, code)

    def enter(self, offset: int, levels: int = 1) -> None:
        self.depth += levels
        if self.depth > MAX_NESTING:
            raise TooDeep(offset)


class _Hole:
    """A hole being read; `end` is the offset after its `}`, None as long as that is not found."""

    __slots__ = ("start", "end")

    def __init__(self, start: int):
        self.start = start
        self.end: int | None = None


class _CodeScan:
    """One stretch of code being masked."""

    __slots__ = ("scanner", "start", "hole", "at", "chunks", "strings", "brackets")

    def __init__(self, scanner: Scanner, start: int, hole: _Hole | None):
        self.scanner = scanner
        self.start = self.at = start
        self.hole = hole
        self.chunks: list[str] = []
        self.strings: dict[int, StringSource] = {}
        self.brackets: list[int] = []

    def run(self) -> Code:
        text = self.scanner.text
        while self.at < len(text) and self._step(text):
            pass
        if self.hole is None and self.brackets:
            self._unclosed_bracket()
        self.scanner.depth -= len(self.brackets)
        masked = "".join(self.chunks)
        self._check_characters(masked)
        return Code(self.start, masked, self.strings)

    def _check_characters(self, masked: str) -> None:
        """Invisible characters and typographic quotes outside strings, once a line."""
        line = 0
        for found in _STRAY.finditer(masked):
            at = self.start + found.start()
            if self.scanner.places.line(at) == line:
                continue
            line = self.scanner.places.line(at)
            if "\u0300" <= found[0] <= "\u036f":
                what, help = f"the combining character U+{ord(found[0]):04X}", "write the letter and its accent as one character"
            elif found[0].isprintable():
                what, help = f"a typographic quote `{found[0]}`", 'strings are written with `"`'
            else:
                what, help = f"the invisible character U+{ord(found[0]):04X}", "replace it by a space, or remove it"
            self.scanner.error("E0016", f"{what} outside a string", at, at + 1, "not code", help)

    def _step(self, text: str) -> bool:
        """Read one piece; False where the code ends."""
        plain = _PLAIN.match(text, self.at)
        if plain:
            self._take(plain[0])
            return True
        char = text[self.at]
        if char == "\n":
            return self._line_break(text)
        if char in "([{":
            self._open(char)
        elif char in ")]}":
            return self._close(char)
        elif char == "#":
            self._comment(text)
        elif char in "\"'":
            self._string("")
        elif char == "\\":
            self._take("  " if text.startswith("\n", self.at + 1) else char)
        else:
            self._word(text)
        return True

    def _take(self, masked: str) -> None:
        self.chunks.append(masked)
        self.at += len(masked)

    def _word(self, text: str) -> None:
        """A word with a quote directly after it: a string's prefix, or something wrong."""
        word = _WORD.match(text, self.at)
        if word and _PREFIX.fullmatch(word[0]):
            self._string(word[0])
        else:
            self._take(word[0] if word else text[self.at])

    def _string(self, prefix: str) -> None:
        string = self.scanner.string(self.at, prefix)
        self.strings[self.at] = string
        length = string.end - string.start
        # Where only the opening quote is left of an unclosed string the item is broken and never parsed.
        self._take('"' + "_" * (length - 2) + '"' if length >= 2 else "_")

    def _comment(self, text: str) -> None:
        end = _find(text, "\n", self.at)
        if self.hole is None:
            self.scanner.comments[self.scanner.places.line(self.at)] = text[self.at + 1 : end]
        self._take(" " * (end - self.at))

    def _open(self, char: str) -> None:
        self.scanner.enter(self.at)
        self.brackets.append(self.at)
        self._take(char)

    def _close(self, char: str) -> bool:
        scanner = self.scanner
        if not self.brackets:
            if self.hole is not None and char == "}":
                self.hole.end = self.at + 1
                return False
            scanner.error("E0007", f"`{char}` closes nothing", self.at, self.at + 1, "no bracket is open here",
                          "remove it, or open the bracket before it")
            self._take(" ")
            return True
        opener = self.brackets[-1]
        wanted = _CLOSERS[scanner.text[opener]]
        if char == wanted:
            self.brackets.pop()
            scanner.depth -= 1
            self._take(char)
            return True
        return self._mismatch(char, opener, wanted)

    def _mismatch(self, char: str, opener: int, wanted: str) -> bool:
        scanner = self.scanner
        line = scanner.places.line(opener)
        scanner.error("E0007", f"`{char}` does not close `{scanner.text[opener]}`", self.at, self.at + 1,
                      f"expected `{wanted}` for the bracket of line {line}",
                      f"close `{scanner.text[opener]}` with `{wanted}` first")
        outer = next((i for i in reversed(range(len(self.brackets))) if _CLOSERS[scanner.text[self.brackets[i]]] == char), None)
        if outer is None and self.hole is not None and char == "}":
            self.hole.end = self.at + 1
            return False
        keep = len(self.brackets) - 1 if outer is None else outer
        scanner.depth -= len(self.brackets) - keep
        del self.brackets[keep:]
        self._take(char)
        return True

    def _line_break(self, text: str) -> bool:
        if not self.brackets:
            if self.hole is not None:
                return False
            self._take("\n")
        elif self.hole is None and _ITEM_HEAD.match(text, self.at + 1):
            self._unclosed_bracket()
            self._take("\n")
        else:
            self._take(" ")
        return True

    def _unclosed_bracket(self) -> None:
        scanner = self.scanner
        opener = self.brackets[-1]
        if scanner.last_fatal <= opener:
            char = scanner.text[opener]
            scanner.error("E0006", f"`{char}` is not closed", opener, opener + 1, "it is opened here",
                          f"close it with `{_CLOSERS[char]}`")
        scanner.spoil(opener)
        scanner.depth -= len(self.brackets)
        self.brackets.clear()


def _find(text: str, what: str, start: int) -> int:
    """The offset of `what` from `start` on, or the end of the text."""
    found = text.find(what, start)
    return len(text) if found < 0 else found


def _double_quoted(body: str) -> str:
    return '"' + body.replace("\\'", "'").replace('"', '\\"') + '"'
