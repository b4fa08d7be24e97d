"""The tree of calls for reading: branches and rounds that look alike are one, and their numbers ranges.

    fork                        fork ×3
      branch 0  think, note       think ×3   145..147 tokens
      branch 1  think, note       note  ×3   146..148 tokens
      branch 2  think, note

A program of a thousand calls is so as long as its source text.  Where a branch looks otherwise, it stands apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lmc.runtime.forecast.counts import Counts, ForeseenCall
from lmc.runtime.forecast.sharing import SharingEnd, sharing_end
from lmc.runtime.forecast.tree import Call, Group, calls_of

# Groups whose members are alike as a rule: of one kind of member alone, its own line says nothing.
_ALIKE = ("fork", "map", "loop")


class Range(NamedTuple):
    """most: None is without bound"""

    least: int
    most: int | None


@dataclass(slots=True)
class Row:
    """A call, or several alike, or a group.

    kind, where, name: of the first of them, as in `tree.py`; times: of a call how often it happens in a run, of a group how many
    members it has, or how often it happens
    calls: of a call, all that this row stands for; end: where the sharing of a group's members ends; more: what each further member
    adds, where data decide how many there are
    """

    kind: str
    node: Call | Group
    times: Range
    calls: list[ForeseenCall] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    ends: list[SharingEnd] = field(default_factory=list)
    more: list[ForeseenCall] = field(default_factory=list)

    def range(self, of: Any) -> Range:
        """The smallest and the largest of a number of its calls."""
        numbers = [of(call) for call in self.calls]
        return Range(min(numbers), max(numbers))


def rows_of(forecast: Counts, *, summarised: bool) -> Row:
    """The whole tree; not summarised, each call has a row of its own."""
    counted = {call.call: call for call in forecast.all_calls} | {call.call: call for call in forecast.calls}
    return _row(forecast.root, counted, Range(1, 1), summarised)


def total_times(row: Row) -> Range:
    """How many calls a run makes."""
    if not row.rows:
        return row.times if row.calls else Range(0, 0)
    inner = [total_times(r) for r in row.rows]
    return Range(sum(r.least for r in inner), None if any(r.most is None for r in inner) else sum(r.most or 0 for r in inner))


def _row(node: Group | Call, counted: Mapping[Call, ForeseenCall], factor: Range, summarised: bool) -> Row:
    if isinstance(node, Call):
        return Row(node.kind, node, _times(factor, Range(int(node.sure), 1)), [counted[node]])
    if node.repeated:
        factor = _times(factor, Range(node.least, node.most))
    rows = [_row(member, counted, factor, summarised) for member in node.members]
    if summarised:
        rows = _merged(rows)
        if node.kind in _ALIKE and len(rows) == 1 and rows[0].rows and not _note(rows[0]):
            rows = rows[0].rows
    end = sharing_end(node) if node.kind in ("fork", "map", "arms") or node.twin is not None else None
    more = [counted[call] for call in calls_of(node.twin)] if node.twin is not None else []
    return Row(node.kind, node, Range(node.least, node.most), [], rows, [end] if end is not None else [], more)


def _times(factor: Range, times: Range) -> Range:
    most = None if factor.most is None or times.most is None else factor.most * times.most
    return Range(factor.least * times.least, most)


def _merged(rows: list[Row]) -> list[Row]:
    """Rows that look alike as one, at the place of the first."""
    found: dict[Any, Row] = {}
    for row in rows:
        key = _shape(row)
        if key in found:
            _add(found[key], row)
        else:
            found[key] = row
    return list(found.values())


def _shape(row: Row) -> Any:
    node = row.node
    name = node.name if isinstance(node, Group) and node.kind in ("def", "arm") else ""
    return row.kind, node.span, name, _note(row), tuple(map(_shape, row.rows))


def _note(row: Row) -> str:
    return row.node.note if isinstance(row.node, Group) else ""


def _add(row: Row, other: Row) -> None:
    """Make `row` stand for the other one too; both have one shape."""
    if row.calls:
        most = None if row.times.most is None or other.times.most is None else row.times.most + other.times.most
        row.times = Range(row.times.least + other.times.least, most)
        row.calls += other.calls
    else:
        most = None if row.times.most is None or other.times.most is None else max(row.times.most, other.times.most)
        row.times = Range(min(row.times.least, other.times.least), most)
    row.ends += other.ends
    row.more += other.more
    for mine, its in zip(row.rows, other.rows, strict=True):
        _add(mine, its)
