"""The tokens of a line as a tree of its brackets.

    f(a, [b])      ->      f Group( ITEMS, elements: "a" , Group[ ITEMS, elements: "b" ] )

A group is open, one element a line, where it ends in a comma, holds a comment, or holds an open group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto

from lmc.parser.format.lines import CLOSERS, OPENERS, Piece


class Shape(Enum):
    ITEMS = auto()
    """Elements with commas; the last has one where each stands on its own line."""
    INDEX = auto()
    """`xs[i]`, `dict[K, V]`: no comma at the end."""
    PAREN = auto()
    """`(a + b)`."""
    COMPREHENSION = auto()


@dataclass(slots=True, eq=False)
class Group:
    opener: Piece
    shape: Shape
    parts: list[Piece | Group] = field(default_factory=list)
    closer: Piece | None = None
    open: bool = False

    @property
    def space(self) -> bool:
        return self.opener.space

    @property
    def start(self) -> int:
        return self.opener.start


Part = Piece | Group


def group_brackets(pieces: Iterable[Piece]) -> list[Part]:
    """The tree of `pieces`, whose brackets match."""
    top: list[Part] = []
    levels = [top]
    groups: list[Group] = []
    before: Piece | None = None
    for piece in pieces:
        if piece.kind in OPENERS:
            group = Group(piece, _shape(before, piece))
            levels[-1].append(group)
            groups.append(group)
            levels.append(group.parts)
        elif piece.kind in CLOSERS:
            levels.pop()
            _finish(groups.pop(), piece)
        else:
            levels[-1].append(piece)
        if piece.kind != "COMMENT":
            before = piece
    return top


def _shape(before: Piece | None, opener: Piece) -> Shape:
    # A space before a bracket means that it does not belong to an operand: `in (a)`, not `f(a)`.
    attached = before is not None and not opener.space and before.kind in ("NAME", "STRING", "INT", "FLOAT", *CLOSERS)
    if opener.kind == "LPAR":
        return Shape.ITEMS if attached or before is not None and before.kind == "IMPORT" else Shape.PAREN
    return Shape.INDEX if attached and opener.kind == "LSQB" else Shape.ITEMS


def _finish(group: Group, closer: Piece) -> None:
    group.closer = closer
    if group.shape is Shape.ITEMS and any(isinstance(p, Piece) and p.kind == "FOR" for p in group.parts):
        group.shape = Shape.COMPREHENSION
    code = [p for p in group.parts if isinstance(p, Group) or p.kind != "COMMENT"]
    comments = len(code) < len(group.parts)
    last_comma = code and isinstance(code[-1], Piece) and code[-1].kind == "COMMA"
    if last_comma and group.shape is Shape.INDEX:
        group.parts = [part for part in group.parts if part is not code[-1]]
        last_comma = False
    group.open = bool(comments or last_comma or any(isinstance(p, Group) and p.open for p in group.parts))


@dataclass(slots=True)
class Element:
    """What stands on a line of its own in an open group."""

    above: list[Piece]
    """Comments on lines before it."""
    parts: list[Part]
    comma: bool
    after: Piece | None
    """The comment at the end of its line."""


def split_elements(group: Group) -> Iterator[Element]:
    """The lines of an open group, in order; comments at the end are an element without parts."""
    above: list[Piece] = []
    for run, comma, after in _attach_comments(_runs(group)):
        while run and isinstance(run[0], Piece) and run[0].kind == "COMMENT":
            above.append(run.pop(0))
        if run:
            yield Element(above, run, comma, after)
            above = []
    if above:
        yield Element(above, [], False, None)


def _runs(group: Group) -> list[tuple[list[Part], bool]]:
    """The parts between the places where an open group breaks, and whether a comma ends each."""
    runs: list[tuple[list[Part], bool]] = [([], False)]
    clauses = False
    for part in group.parts:
        kind = part.kind if isinstance(part, Piece) else ""
        if kind == "COMMA" and group.shape in (Shape.ITEMS, Shape.INDEX):
            runs[-1] = runs[-1][0], True
            runs.append(([], False))
            continue
        if group.shape is Shape.COMPREHENSION and (kind == "FOR" or kind == "IF" and clauses):
            clauses = True
            runs.append(([], False))
        runs[-1][0].append(part)
    return runs


def _attach_comments(runs: list[tuple[list[Part], bool]]) -> Iterator[tuple[list[Part], bool, Piece | None]]:
    """Comments at an end or a beginning of a run go to the end of a line, or above the next."""
    for index, (run, comma) in enumerate(runs):
        after: Piece | None = None
        late: list[Part] = []
        while run and isinstance(run[-1], Piece) and run[-1].kind == "COMMENT" and _has_code(run):
            late.insert(0, run.pop())
        following = runs[index + 1][0] if index + 1 < len(runs) else None
        if late and not late[0].own_line:
            after = late.pop(0)
        elif not late and _has_code(run) and following and _is_trailing(following[0]):
            after = following.pop(0)
        if following is not None:
            following[:0] = late
            late = []
        yield run, comma, after
        if late:
            yield late, False, None


def _has_code(run: list[Part]) -> bool:
    return any(isinstance(part, Group) or part.kind != "COMMENT" for part in run)


def _is_trailing(part: Part) -> bool:
    return isinstance(part, Piece) and part.kind == "COMMENT" and not part.own_line
