"""Regular expressions to syntax trees.

    parse_regex(r"\\d{4}-\\d{2}")      # Concat of Repeats of Chars
    parse_regex(r"(?=a)b")            # RegexError("look-around is not supported", position=0)

The dialect is what Python's `re` means by `re.fullmatch(pattern, text, re.ASCII)`, without what a finite automaton cannot hold
or `gen` has no use for: look-around, back-references, possessive and atomic groups, word boundaries.  `$` is the end of the text,
and not also the place before a last newline.  `interegular` reads the syntax; here stands what it reads otherwise than Python,
and what it lacks (anchors, ranges as ranges, `\\u`).  This file knows no automata.
"""

from __future__ import annotations

import re
import warnings

from interegular.patterns import (
    InvalidSyntax, Pattern, REFlags, Unsupported, _CharGroup, _Concatenation, _ParsePattern, _Repeated,
)
from interegular.utils.simple_parser import NoMatch

from lmc.regex.nodes import (
    EMPTY, Anchor, Chars, Edge, Node, Ranges, Repeat, Words, alternate, complement, concat, intersect, normalise,
)


class RegexError(ValueError):
    """The pattern is wrong or outside the dialect; `position` counts characters from 0."""

    def __init__(self, message: str, position: int):
        super().__init__(message)
        self.message, self.position = message, position


def parse_regex(pattern: str, *, ecma: bool = False) -> Node:
    """The syntax tree of a pattern that is to match a whole text.  Raises `RegexError`.

    With `ecma`, `\\s` and `.` mean what they do in JSON Schema: Unicode whitespace, and no character that ends a line.
    """
    parser = _Parser(pattern)
    parser.ecma = ecma
    try:
        tree = parser.parse()
        # Python has the last word on what is a regex: `findall` and the check of values from outside use `re`.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            re.compile(pattern, re.ASCII)
        return _lower(tree, REFlags(0))
    except RegexError:
        raise
    except re.error as error:
        raise RegexError(error.msg, error.pos or 0) from None
    except RecursionError:
        raise RegexError("the regex is nested too deeply", 0) from None
    except (InvalidSyntax, Unsupported, NoMatch, ValueError, OverflowError, IndexError) as error:
        raise _reason(pattern, parser, error) from None


def odd_ranges(pattern: str) -> list[tuple[int, str, int]]:
    """Ranges of a right pattern that were hardly meant as ranges: where each begins, its text, how many characters it holds.

    `[!?"-_]` holds 62 characters from `"` to `_`, and `[A-z]` six that are no letters.
    """
    parser = _Parser(pattern)
    parser.parse()
    return parser.odd


def _reason(pattern: str, parser: _Parser, error: Exception) -> RegexError:
    """What is wrong in Python's words where Python refuses the pattern too."""
    try:
        re.compile(pattern, re.ASCII)
    except (re.error, OverflowError, RecursionError) as known:
        return RegexError(getattr(known, "msg", str(known)), getattr(known, "pos", None) or 0)
    at = min(parser.furthest(), len(pattern))
    found = repr(pattern[at]) if at < len(pattern) else "the end"
    detail = str(error) if isinstance(error, Unsupported) else f"not understood at {found}"
    return RegexError(detail, at)


class _Class:
    """A character class as ranges; interegular's own holds each of its characters."""

    __slots__ = ("ranges", "negated")

    def __init__(self, ranges: list[tuple[int, int]], negated: bool):
        self.ranges, self.negated = ranges, negated


class _Edge:
    """An anchor."""

    __slots__ = ("edge",)

    def __init__(self, edge: Edge):
        self.edge = edge


# `(?…` in Python's syntax that no automaton, or not ours, can hold.
_REFUSED_GROUPS = {
    "?=": "look-around", "?!": "look-around", "?<=": "look-around", "?<!": "look-around", "?#": "a comment",
    "?P=": "a back-reference", "?(": "a conditional group", "?>": "an atomic group",
}
_QUANTIFIERS = frozenset("*+?{")


class _Parser(_ParsePattern):
    """interegular's parser with Python's reading of the places where the two differ."""

    ecma = False

    def __init__(self, pattern):
        super().__init__(pattern)
        self.odd: list[tuple[int, str, int]] = []

    def furthest(self) -> int:
        """Where the parse stopped."""
        return max([self.index, *self._expected])

    def group(self):
        start = self.index - 1
        for opening, name in _REFUSED_GROUPS.items():
            if self.data.startswith(opening, self.index):
                raise RegexError(f"{name} is not supported", start)
        flags = re.compile(r"\?([a-zA-Z]*)(?:-([a-zA-Z]*))?[:)]").match(self.data, self.index)
        if flags:
            unknown = sorted({*flags[1], *(flags[2] or "")} - {"i", "s"})
            if unknown:
                raise RegexError(f"the flag {unknown[0]!r} is not supported; `i` and `s` are", start)
            if flags[0].endswith(")") and start != 0:
                raise RegexError("flags for the whole regex stand at its start; use `(?i:…)` for a part", start)
        return super().group()

    def atom(self):
        start = self.index
        if self.anyof_b("^", "\\A"):
            return self.unrepeated(_Edge(Edge.START), start)
        if self.anyof_b("$", "\\Z"):
            return self.unrepeated(_Edge(Edge.END), start)
        if self.ecma and self.static_b("."):
            return self.repetition(_Class(list(_LINE_ENDS), True))
        return super().atom()

    def unrepeated(self, edge, start):
        if self.data[self.index : self.index + 1] in _QUANTIFIERS:
            raise RegexError("an anchor cannot be repeated", start)
        return edge

    def repetition(self, base):
        start = self.index
        if self.data.startswith("{", start) and not re.compile(r"\{(\d+(,\d*)?|,\d*)\}").match(self.data, start):
            raise RegexError("`{` begins a count such as `{2,5}`; write `\\{` for the character", start)
        result = super().repetition(base)
        if not isinstance(result, _Repeated) or result is base:
            return result
        if result.max is not None and result.min > result.max:
            raise RegexError(f"the count {{{result.min},{result.max}}} ends before it begins", start)
        if self.data[self.index : self.index + 1] in _QUANTIFIERS:
            raise RegexError("a quantifier cannot follow a quantifier; possessive ones are not supported", self.index)
        return result

    def escaped(self, inner=False):
        start = self.index - 1
        if not inner and self.data.startswith(("b", "B"), self.index):
            raise RegexError("a word boundary is not supported", start)
        if not inner and re.compile(r"(?![0-3][0-7]{2})[1-9]").match(self.data, self.index):
            raise RegexError("a back-reference is not supported", start)
        if self.ecma and self.data.startswith(("s", "S"), self.index):
            return _Class(list(_SPACES), self.any() == "S")
        code = re.compile(r"u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|0(?![0-7])").match(self.data, self.index)
        if code is None:
            return super().escaped(inner)
        self.index = code.end()
        number = int(code[1] or code[2] or "0", 16)
        if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
            raise RegexError("the escape is not a Unicode character", start)
        return _CharGroup(frozenset(chr(number)), False)

    def chargroup(self):
        start = self.index - 1
        negated = self.static_b("^")
        if self.peek_static("]"):
            raise RegexError("a class cannot begin with `]`; write `\\]`", start)
        ranges: list[tuple[int, int]] = []
        while not self.static_b("]"):
            ranges += self.class_item(start)
        return _Class(ranges, negated)

    def class_item(self, start):
        place = self.index
        first = self.class_char(start)
        if not self.data.startswith("-", self.index) or self.data.startswith("-]", self.index):
            return first
        self.static("-")
        last = self.class_char(start)
        if len(first) != 1 or len(last) != 1 or first[0][0] != first[0][1] or last[0][0] != last[0][1]:
            raise RegexError("a range goes from one character to another; write `\\-` for the character", place)
        if first[0][0] > last[0][0]:
            raise RegexError(f"the range {self.data[place:self.index]} ends before it begins", place)
        if not _looks_meant(self.data[place : self.index]):
            self.odd.append((place, self.data[place : self.index], last[0][0] - first[0][0] + 1))
        return [(first[0][0], last[0][0])]

    def class_char(self, start):
        if self.index >= len(self.data):
            raise RegexError("the class is not closed", start)
        if self.static_b("\\"):
            return list(_group_ranges(self.escaped(True)))
        point = ord(self.any())
        return [(point, point)]


def _looks_meant(text: str) -> bool:
    """Whether a range reads as one: written with escapes or outside ASCII, of one kind of character, between the edges of ASCII's
    blocks of punctuation, or no more than its own three characters."""
    if len(text) != 3 or not text.isascii():
        return True
    first, last = text[0], text[2]
    kinds = (str.isdigit, str.islower, str.isupper)
    if any(kind(first) and kind(last) for kind in kinds) or first in " !:[{" and last in "/@`~":
        return True
    return ord(last) - ord(first) <= 2 and ord(first) <= ord("-") <= ord(last)


def _group_ranges(group: _CharGroup | _Class) -> Ranges:
    ranges = normalise(group.ranges if isinstance(group, _Class) else [(ord(c), ord(c)) for c in group.chars])
    return complement(ranges) if group.negated else ranges


_LINE_ENDS: Ranges = ((10, 10), (13, 13), (0x2028, 0x2029))
_SPACES: Ranges = (
    (9, 13), (32, 32), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F),
    (0x3000, 0x3000), (0xFEFF, 0xFEFF),
)
_LETTERS: Ranges = ((65, 90), (97, 122))


def _lower(tree: object, flags: REFlags) -> Node:
    match tree:
        case Pattern():
            inner = (flags | tree.added_flags) & ~tree.removed_flags
            return alternate([_lower(option, inner) for option in tree.options])
        case _Concatenation():
            return _sequence([_lower(part, flags) for part in tree.parts])
        case _Repeated():
            return Repeat(_lower(tree.base, flags), tree.min, tree.max)
        case _Edge():
            return Anchor(tree.edge)
        case _Class():
            return _chars(normalise(tree.ranges), tree.negated, flags)
        case _CharGroup():
            return _chars(normalise((ord(c), ord(c)) for c in tree.chars), tree.negated, flags)
    if type(tree).__name__ == "__EmptyCls":
        return EMPTY
    assert type(tree).__name__ == "__DotCls", tree
    return Chars(complement(() if flags & REFlags.SINGLE_LINE else ((10, 10),)))


def _chars(ranges: Ranges, negated: bool, flags: REFlags) -> Node:
    if flags & REFlags.CASE_INSENSITIVE:
        # With re.ASCII only ASCII letters have a case.
        letters = intersect(ranges, _LETTERS)
        ranges = normalise([*ranges, *((low ^ 32, high ^ 32) for low, high in letters)])
    if negated:
        ranges = complement(ranges)
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return Words((chr(ranges[0][0]),))
    return Chars(ranges)


def _sequence(parts: list[Node]) -> Node:
    """The parts in a row, neighbouring single strings as one."""
    merged: list[Node] = []
    for part in parts:
        last = merged[-1] if merged else None
        if isinstance(part, Words) and isinstance(last, Words) and len(part.words) == len(last.words) == 1:
            merged[-1] = Words((last.words[0] + part.words[0],))
        elif part is not EMPTY:
            merged.append(part)
    return concat(*merged) if merged else Words(("",))
