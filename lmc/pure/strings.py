"""String methods, text built from lists, and regular expressions.

    split("a, b", ", ") == ("a", "b")
    bullets(("one", "two")) == "- one\n- two"
    findall(r"\\d+", "3 of 12") == ("3", "12")

The receiver of a method is the first argument.  Regular expressions are those of `lmc.regex.parse`: what a `gen` can be held to.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from lmc.pure.core import PureError, bounded, expect_int, expect_list, expect_str, kind_of
from lmc.regex.parse import RegexError, parse_regex
from lmc.values import text_of


def strip(text: Any, chars: Any = None) -> str:
    """The text without whitespace (or the given characters) at both ends."""
    return expect_str(text, "strip").strip(_optional(chars, "strip"))


def lstrip(text: Any, chars: Any = None) -> str:
    """As `strip`, at the start only."""
    return expect_str(text, "lstrip").lstrip(_optional(chars, "lstrip"))


def rstrip(text: Any, chars: Any = None) -> str:
    """As `strip`, at the end only."""
    return expect_str(text, "rstrip").rstrip(_optional(chars, "rstrip"))


def split(text: Any, separator: Any = None, most: Any = -1) -> tuple[str, ...]:
    """The pieces between separators (runs of whitespace where none is given), after at most `most` cuts."""
    separator = _optional(separator, "split")
    if separator == "":
        raise PureError("value", "`split` takes a separator of at least one character")
    return tuple(expect_str(text, "split").split(separator, expect_int(most, "split")))


def splitlines(text: Any) -> tuple[str, ...]:
    """The lines, without their ends."""
    return tuple(expect_str(text, "splitlines").splitlines())


def lower(text: Any) -> str:
    """The text in lower case."""
    return expect_str(text, "lower").lower()


def upper(text: Any) -> str:
    """The text in upper case."""
    return expect_str(text, "upper").upper()


def title(text: Any) -> str:
    """The text with each word capitalised."""
    return expect_str(text, "title").title()


def startswith(text: Any, prefix: Any) -> bool:
    """Whether the text begins with `prefix`, or with one of a list."""
    return expect_str(text, "startswith").startswith(_one_or_several(prefix, "startswith"))


def endswith(text: Any, suffix: Any) -> bool:
    """Whether the text ends with `suffix`, or with one of a list."""
    return expect_str(text, "endswith").endswith(_one_or_several(suffix, "endswith"))


def replace(text: Any, old: Any, new: Any, most: Any = -1) -> str:
    """The text with `old` replaced by `new`, everywhere or `most` times."""
    text, old, new = expect_str(text, "replace"), expect_str(old, "replace"), expect_str(new, "replace")
    bounded(len(text) + text.count(old) * (len(new) - len(old)), "the result of `replace`")
    return text.replace(old, new, expect_int(most, "replace"))


def join(separator: Any, pieces: Any) -> str:
    """The pieces with the separator between them."""
    texts = [expect_str(piece, "join") for piece in expect_list(pieces, "join")]
    bounded(sum(map(len, texts)) + len(expect_str(separator, "join")) * len(texts), "the result of `join`")
    return separator.join(texts)


def find(text: Any, part: Any, start: Any = 0, end: Any = None) -> int:
    """The index of the first `part`, or -1."""
    end = None if end is None else expect_int(end, "find")
    return expect_str(text, "find").find(expect_str(part, "find"), expect_int(start, "find"), end)


def count(text: Any, part: Any) -> int:
    """How often `part` occurs, without overlap."""
    return expect_str(text, "count").count(expect_str(part, "count"))


def removeprefix(text: Any, prefix: Any) -> str:
    """The text without `prefix` at its start."""
    return expect_str(text, "removeprefix").removeprefix(expect_str(prefix, "removeprefix"))


def removesuffix(text: Any, suffix: Any) -> str:
    """The text without `suffix` at its end."""
    return expect_str(text, "removesuffix").removesuffix(expect_str(suffix, "removesuffix"))


def bullets(items: Any) -> str:
    """Each element on a line of its own after `- `."""
    return "\n".join("- " + _line(item, "bullets") for item in expect_list(items, "bullets"))


def lines(items: Any) -> str:
    """Each element on a line of its own."""
    return "\n".join(_line(item, "lines") for item in expect_list(items, "lines"))


def findall(pattern: Any, text: Any) -> tuple[str, ...]:
    """All matches from left to right, or what the pattern's one group matched in each, as `re.findall` with `re.ASCII`."""
    compiled = _compiled(expect_str(pattern, "findall"))
    if compiled.groups > 1:
        raise PureError("value", f"`findall` takes a pattern with at most one group, found {compiled.groups}; write `(?:…)`")
    return tuple(compiled.findall(expect_str(text, "findall")))


def matches(pattern: Any, text: Any) -> bool:
    """Whether the whole text matches the pattern."""
    return _compiled(expect_str(pattern, "matches")).fullmatch(expect_str(text, "matches")) is not None


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        parse_regex(pattern)
    except RegexError as error:
        raise PureError("value", f"invalid regex: {error.message} (at character {error.position + 1})") from None
    return re.compile(pattern, re.ASCII)


def _optional(chars: Any, function: str) -> str | None:
    return None if chars is None else expect_str(chars, function)


def _one_or_several(part: Any, function: str) -> str | tuple[str, ...]:
    return tuple(expect_str(p, function) for p in part) if isinstance(part, tuple) else expect_str(part, function)


def _line(item: Any, function: str) -> str:
    if isinstance(item, (str, int, float)):
        return text_of(item)
    raise PureError("type", f"`{function}` takes a list of texts or numbers, found {kind_of(item)}; use `json(x)`")
