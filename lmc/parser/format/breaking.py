"""Where a logical line breaks.

    f(a, b)        where it fits in 100 columns      f(          else, and where it ends in a comma or holds a comment
                                                         a,
                                                         b,
                                                     )

A line breaks only inside brackets, the widest first, and only if that makes it fit; breaks made by a backslash stay where the line
would not be one without them.  What is inside a bracket that opens is laid out in the same way, one level deeper.
"""

from __future__ import annotations

from collections.abc import Iterator

from lmc.parser.format.groups import Element, Group, Part, Shape, group_brackets, split_elements
from lmc.parser.format.lines import Line, Piece
from lmc.parser.format.paper import INDENT, WIDTH, Paper

_LOOSE = (("OR",), ("AND",), ("VBAR",), ("PLUS", "MINUS"))
"""Operators before which a long text in parentheses breaks, the loosest first."""


def write_line(line: Line, paper: Paper) -> None:
    """Write `line` at its level, without its trailing comment."""
    keep = is_switch(line.trailing)
    parts = group_brackets(line.pieces)
    paper.end_line(line.level * INDENT)
    segments = _segments(parts)
    if len(segments) > 1 and not _must_open(parts) and _fits(parts, frozenset(), paper, ""):
        segments = [parts]
    for index, segment in enumerate(segments):
        last = index == len(segments) - 1
        if index:
            paper.end_line((line.level + 1) * INDENT)
        _write(segment, paper, "" if last else " \\", keep=keep)
        if not last:
            paper.add(" \\")


def is_switch(comment: Piece | None) -> bool:
    """Whether `comment` is `# lmc: allow …`, which works on its line only."""
    return comment is not None and "lmc:" in comment.text


def _segments(parts: list[Part]) -> list[list[Part]]:
    """The parts between backslashes."""
    segments: list[list[Part]] = [[]]
    for part in parts:
        first = part.opener if isinstance(part, Group) else part
        if first.continued:
            segments.append([])
        segments[-1].append(part)
    return segments


def _write(parts: list[Part], paper: Paper, suffix: str, *, keep: bool = False) -> None:
    """Write parts on the current line; `suffix` is what the caller will write after them."""
    # A comment that switches a warning off must stay on the line of what it is about.
    opened = _must_open(parts) if keep else _choose(parts, paper, suffix)
    indent = paper.indent
    for part in parts:
        if isinstance(part, Group) and part in opened:
            _space(part, paper)
            _write_open(part, paper)
        else:
            _write_flat(part, paper)
    paper.indent = indent


def _must_open(parts: list[Part]) -> frozenset[Group]:
    return frozenset(part for part in parts if isinstance(part, Group) and part.open)


def _choose(parts: list[Part], paper: Paper, suffix: str) -> frozenset[Group]:
    """The groups to open: those that must, and as many more as make the line fit, if that can be."""
    opened = _must_open(parts)
    if _fits(parts, opened, paper, suffix):
        return opened
    others = [p for p in parts if isinstance(p, Group) and p.parts and not p.open]
    if not _fits(parts, opened | frozenset(others), paper, suffix):
        return opened
    # Those that get a comma first: the comma keeps them open the next time, when the choice must be the same.
    others.sort(key=lambda g: (g.shape is not Shape.ITEMS, -_width(g.parts)))
    chosen = opened
    for group in others:
        chosen |= {group}
        if _fits(parts, chosen, paper, suffix):
            break
    return chosen


def _fits(parts: list[Part], opened: frozenset[Group], paper: Paper, suffix: str) -> bool:
    """Whether every line is within the width, not counting what the groups `opened` hold."""
    trial = Paper(paper.indent, paper.line)
    for part in parts:
        if isinstance(part, Group) and part in opened:
            _space(part, trial)
            trial.add(part.opener.text)
            trial.end_line()
            trial.add(part.closer.text)
        else:
            _write_flat(part, trial)
    trial.line += suffix
    trial.measure()
    return trial.widest <= WIDTH


def _width(parts: list[Part]) -> int:
    """Characters on one line, without comments and last commas, so that it is the same once a group is open."""
    width = 0
    for index, part in enumerate(parts):
        if isinstance(part, Group):
            width += part.space + 2 + _width(part.parts)
        elif part.kind != "COMMENT" and not (part.kind == "COMMA" and index == len(parts) - 1):
            width += part.space + max(len(line.strip()) for line in part.text.split("\n"))
    return width


def _write_flat(part: Part, paper: Paper) -> None:
    if isinstance(part, Piece):
        if part.kind == "COMMENT":
            _inner_comment(part, paper)
        else:
            _space(part, paper)
            paper.write(part)
        return
    _space(part, paper)
    paper.write(part.opener)
    for inner in part.parts:
        _write_flat(inner, paper)
    paper.write(part.closer)


def _space(part: Part, paper: Paper) -> None:
    if part.space and not paper.fresh:
        paper.add(" ")


def _inner_comment(comment: Piece, paper: Paper) -> None:
    """A comment in the middle of an element breaks the line."""
    if comment.own_line or paper.fresh:
        paper.end_line()
        paper.own_comment(comment.text)
    else:
        paper.comment(comment.text)


# ------------------------------------------------------------- open brackets


def _write_open(group: Group, paper: Paper) -> None:
    indent = paper.indent
    paper.add(group.opener.text)
    first = group.parts[0] if group.parts else None
    if isinstance(first, Piece) and first.kind == "COMMENT" and not first.own_line:
        paper.comment(first.text)
        del group.parts[0]
    for element in _elements(group, WIDTH - indent - INDENT):
        paper.end_line(indent + INDENT)
        for comment in element.above:
            paper.own_comment(comment.text)
        if element.parts:
            _write_element(element, paper)
    paper.end_line(indent)
    paper.add(group.closer.text)


def _write_element(element: Element, paper: Paper) -> None:
    before = len(paper.lines)
    suffix = "," if element.comma else ""
    _write(element.parts, paper, suffix, keep=is_switch(element.after))
    if suffix:
        paper.add(suffix)
    if element.after is not None:
        single = len(paper.lines) == before
        paper.comment(element.after.text, _column(element, paper) if single else 0)


def _column(element: Element, paper: Paper) -> int:
    """Where the comment of an element on one line stands: where it stood, if the element began its line."""
    first = element.parts[0]
    leads = (first.opener if isinstance(first, Group) else first).leads
    return element.after.column + paper.indent - element.after.indent if leads else 0


def _elements(group: Group, room: int) -> Iterator[Element]:
    elements = list(split_elements(group))
    full = [e for e in elements if e.parts]
    if group.shape is Shape.ITEMS and full:
        full[-1].comma = True
    for element in elements:
        if group.shape is Shape.PAREN:
            yield from _operands(element, room)
        else:
            yield element


def _operands(element: Element, room: int) -> Iterator[Element]:
    """What stands in parentheses, cut before its loosest operators, where it does not fit on one line."""
    kinds = [p.kind if isinstance(p, Piece) else "" for p in element.parts]
    loosest = next((found for found in _LOOSE if any(kind in found for kind in kinds[1:])), ())
    if _width(element.parts) <= room or not loosest or "IF" in kinds or "COMMENT" in kinds:
        yield element
        return
    cuts = [0, *(i for i, kind in enumerate(kinds) if i and kind in loosest and _is_binary(element.parts[i - 1])), len(kinds)]
    for start, end in zip(cuts, cuts[1:]):
        last = end == len(kinds)
        yield Element(element.above if not start else [], element.parts[start:end], False, element.after if last else None)


def _is_binary(before: Part) -> bool:
    return isinstance(before, Group) or before.kind in ("NAME", "STRING", "INT", "FLOAT")
