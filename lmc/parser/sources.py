"""What the first look at a file finds: code, strings, holes and items, each at offsets of the file.

`masking.py` and `layout.py` make these, the parser and `text.py` read them.  They know no grammar.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """A stretch of code: `masked` begins at offset `start` of the file; `strings` are its string literals by their offset."""

    start: int
    masked: str
    strings: dict[int, StringSource]


@dataclass(frozen=True, slots=True)
class HoleSource:
    """`${…}` at `start:end` of the file, or a comment, which has no code."""

    start: int
    end: int
    code: Code | None


@dataclass(frozen=True, slots=True)
class StringSource:
    """A string literal at `start:end`; its body, without quotes, at `body:body_end`."""

    start: int
    body: int
    body_end: int
    end: int
    raw: bool
    triple: bool
    holes: tuple[HoleSource, ...]


@dataclass(frozen=True, slots=True)
class ItemSource:
    """A top-level item at `start:end`; `broken` where its layout is wrong, so that parsing it would only repeat that."""

    start: int
    end: int
    broken: bool
