"""What surrounds the cursor while someone types, read from the masked text: it may not parse.

    assistant: x = gen(Note, temp|          word "temp", callee "gen"
    user: "Scores: ${notes.|}"              word "", after a dot that ends at `dot`
    user: "Scores: no|"                     None: text is no code

This file knows neither tree nor types.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lmc.parser.layout import scan
from lmc.parser.places import Places
from lmc.parser.sources import Code


@dataclass(frozen=True, slots=True)
class Cursor:
    """`start:end` is the word around the cursor, as offsets; the rest is about what stands before it.

    dot         offset of the dot right before the word, or None
    callee      the name before the innermost bracket `(` that is open, or None
    line        the code of the line before the word, strings masked; in a hole that of the hole
    hole        the cursor is in a hole
    closing     what would close the string that an unclosed hole stands in
    """

    start: int
    end: int
    dot: int | None
    callee: str | None
    line: str
    hole: bool
    closing: str = ""


def read_cursor(text: str, offset: int) -> Cursor | None:
    """The surroundings of `offset`; None within text and comments."""
    layout = scan(text, Places("", text))
    line_start = text.rfind("\n", 0, offset) + 1
    comment = layout.comments.get(text.count("\n", 0, offset) + 1)
    if comment is not None:
        line_end = text.find("\n", offset)
        line = text[line_start : line_end if line_end >= 0 else len(text)]
        if offset - line_start > line.rfind("#" + comment):
            return None
    found = _code_before(text, layout.code, offset, hole=False)
    if found is None:
        return None
    before, hole, closing = found
    word = re.search(r"\w*\Z", before)[0]
    head = before[: len(before) - len(word)]
    end = offset + len(re.match(r"\w*", text[offset:])[0])
    dotted = re.search(r"(?<![.\s(\[,=])\.\Z", head) is not None and not re.search(r"(?<!\w)\d+\.\Z", head)
    start = offset - len(word)
    return Cursor(start, end, start - 1 if dotted else None, _callee(head), head[head.rfind("\n") + 1 :], hole, closing)


def _code_before(text: str, code: Code, offset: int, *, hole: bool) -> tuple[str, bool, str] | None:
    """The masked code of the innermost piece of code, up to the offset."""
    for string in code.strings.values():
        if not string.start < offset < string.end and not (offset == string.end == string.body_end):
            continue
        for inner in string.holes:
            if inner.start + 2 <= offset < inner.end:
                return _code_before(text, inner.code, offset, hole=True) if inner.code is not None else None
        start = max(string.body, text.rfind("\n", 0, offset) + 1)
        return None if string.raw else _unclosed_hole(text, start, offset, string.triple)
    return code.masked[: max(0, offset - code.start)], hole, ""


def _unclosed_hole(text: str, start: int, offset: int, triple: bool) -> tuple[str, bool, str] | None:
    """The code after a `${` on the cursor's line that nothing closes yet."""
    opened = text.rfind("${", start, offset)
    if opened < 0 or "}" in text[opened:offset] or text.startswith("${#", opened):
        return None
    return re.sub(r'"[^"]*"', lambda found: "_" * len(found[0]), text[opened + 2 : offset]), True, "}" if triple else '}"'


_BRACKET = re.compile(r"[()\[\]{}]")


def _callee(head: str) -> str | None:
    depth = 0
    for found in reversed(list(_BRACKET.finditer(head, max(0, len(head) - 5000)))):
        depth += 1 if found[0] in ")]}" else -1
        if depth < 0:
            name = re.search(r"([^\W\d][\w.]*)\s*\Z", head[: found.start()])
            return name[1] if name and found[0] == "(" else None
    return None
