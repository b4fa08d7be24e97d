"""The first look at a source: mask it, cut it into items where a line begins at column 1, check the indentation.

    def f(x: str):             item 1: the two lines, masked
        user: "Hi ${x}"
    type A = "a" | "b"         item 2

Every mistake here makes its item `broken`; the other items are parsed all the same.  This file does not know the grammar.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass

from lmc.diagnostics import Diagnostic
from lmc.parser.masking import MAX_NESTING, Scanner, TooDeep
from lmc.parser.places import Places
from lmc.parser.sources import Code, ItemSource


@dataclass(slots=True)
class Layout:
    code: Code
    items: list[ItemSource]
    diagnostics: list[Diagnostic]
    comments: dict[int, str]
    """The text of each comment after `#`, by line."""


def scan(text: str, places: Places) -> Layout:
    """Scan a whole file (line ends already `\\n`)."""
    scanner = Scanner(text, places)
    try:
        code = scanner.code(0, None)
    except TooDeep as deep:
        scanner.error("E0015", f"nesting is deeper than {MAX_NESTING} levels", deep.offset, deep.offset + 1,
                      "this is one level too many", "name an inner piece and use the name; a hole counts for five levels")
        return Layout(Code(0, "", {}), [], scanner.diagnostics, {})
    items = _items(code.masked, scanner)
    return Layout(code, items, scanner.diagnostics, scanner.comments)


_LINE = re.compile(r"(?:^|\n)(?:[ \t]*\n)*([ \t]*)(?=[^ \t\n])")


def _items(masked: str, scanner: Scanner) -> list[ItemSource]:
    """Cut at lines that begin at column 1 and check the indentation of each piece."""
    lines = [(m.end(), m[1]) for m in _LINE.finditer(masked)]
    starts = [at for at, indent in lines if not indent]
    if lines and lines[0][1].strip("\t"):
        at, indent = lines[0]
        scanner.error("E0017", "the first line is indented", at - len(indent), at, "no block begins here",
                      "begin it at the start of the line")
    _check_tabs(lines, scanner)
    _check_indents(lines, scanner)
    ends = [*starts[1:], len(masked)]
    fatal = sorted(scanner.fatal)
    return [ItemSource(start, end, _any_between(fatal, start, end)) for start, end in zip(starts, ends)]


def _check_tabs(lines: list[tuple[int, str]], scanner: Scanner) -> None:
    """One report for the file, however many lines have tabs."""
    tabbed = [(at, indent) for at, indent in lines if "\t" in indent]
    scanner.fatal += [at for at, _ in tabbed]
    if tabbed:
        at, indent = tabbed[0]
        where = f"of {len(tabbed)} lines" if len(tabbed) > 1 else "of this line"
        scanner.error("E0003", f"tabs in the indentation {where}", at - len(indent), at, "indent with spaces",
                      "replace each tab by four spaces")


def _check_indents(lines: list[tuple[int, str]], scanner: Scanner) -> None:
    levels = [0]
    for at, indent in lines:
        width = len(indent)
        if width > levels[-1]:
            levels.append(width)
            if len(levels) - 1 > MAX_NESTING:
                scanner.error("E0015", f"nesting is deeper than {MAX_NESTING} levels", at - width, at,
                              "this is one level too many",
                              "move an inner block into a function")
                return
            continue
        around = ", ".join(str(level) for level in levels)
        while levels[-1] > width:
            levels.pop()
        if levels[-1] != width:
            if "\t" not in indent:
                scanner.error("E0004", f"this line is indented by {width}, which fits no block around it", at - width, at,
                              f"the blocks around it are indented by {around}", "indent the line like the block it belongs to")
            levels.append(width)


def _any_between(offsets: list[int], start: int, end: int) -> bool:
    return bisect_left(offsets, start) < bisect_left(offsets, end)
