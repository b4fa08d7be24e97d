"""`match` -> `control.if` inside one another, in the order of the cases.

    match act:                           %is: bool = union.is(%act)[member = "Search"]
        case Search(q): obs = find(q)    control.if(%is) {
        case Calc(e):   obs = calc(e)      %q: str = record.get(%act)[field = "query"] …
                                         } { %e: str = record.get(%act)[field = "expr"] … }

Where the cases exhaust the type, the last one needs no test.  Alternatives that bind names are told apart once more inside the case:

    case Search(q) | Calc(q): use(q)     %q: str = control.if(%is) { record.get(…)[field = "query"] } { …[field = "expr"] }
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lmc.diagnostics import Span
from lmc.ir.builder import literal
from lmc.ir.core import Operand
from lmc.ir.ops import PureCall, RecordGet, UnionIs
from lmc.parser import ast
from lmc.parser.lower.control import branch
from lmc.parser.lower.frame import LONG, Frame
from lmc.types import BOOL, RecordT, records_in

Body = Callable[[tuple[ast.Stmt, ...]], None]


def match_cases(frame: Frame, statement: ast.Match, subject: Operand, body: Body) -> None:
    """Lower the cases; `body` writes the statements of one."""
    info = frame.checked.matches[statement]
    cases = [_Case(case.span, patterns, case.body) for case in statement.cases if (patterns := _possible(frame, case, subject))]
    _cases(frame, cases, subject, body, exhaustive=info.exhaustive)


@dataclass(frozen=True, slots=True)
class _Case:
    """A case with those of its patterns that can apply."""

    span: Span
    patterns: tuple[ast.Pattern, ...]
    body: tuple[ast.Stmt, ...]


def _possible(frame: Frame, case: ast.Case, subject: Operand) -> tuple[ast.Pattern, ...]:
    """A name that may hold several types stands for one value here, of which more may be known: `a: Action = Calc("1")`."""
    return tuple(p for p in case.patterns if not isinstance(p, ast.RecordPattern)
                 or frame.checked.patterns[p].type in records_in(subject.type))


def _halves(frame: Frame, cases: list[_Case], subject: Operand, body: Body, *, exhaustive: bool) -> None:
    """A long match asks first in which half its case is, so that its blocks do not nest as deep as it is long."""
    first, rest = cases[:len(cases) // 2], cases[len(cases) // 2:]
    test = _any(frame, tuple(p for case in first for p in case.patterns), subject)
    branch(frame, first[0].span, test, lambda: _cases(frame, first, subject, body, exhaustive=True),
           lambda: _cases(frame, rest, subject, body, exhaustive=exhaustive))


def _cases(frame: Frame, cases: list[_Case], subject: Operand, body: Body, *, exhaustive: bool) -> None:
    if not cases or frame.closed:
        return
    if len(cases) > LONG and not any(_always(p, subject) for case in cases[:len(cases) // 2] for p in case.patterns):
        _halves(frame, cases, subject, body, exhaustive=exhaustive)
        return
    case, rest = cases[0], cases[1:]

    def taken() -> None:
        _bind(frame, case.patterns, subject)
        body(case.body)

    if exhaustive and not rest or any(_always(p, subject) for p in case.patterns):
        taken()
        return
    test = _any(frame, case.patterns, subject)
    branch(frame, case.span, test, taken, lambda: _cases(frame, rest, subject, body, exhaustive=exhaustive))


def _always(pattern: ast.Pattern, subject: Operand) -> bool:
    if isinstance(pattern, ast.RecordPattern):
        return isinstance(subject.type, RecordT)
    return isinstance(pattern, ast.WildcardPattern)


def _any(frame: Frame, patterns: tuple[ast.Pattern, ...], subject: Operand) -> Operand:
    if len(patterns) == 1:
        return _test(frame, patterns[0], subject)
    at = len(patterns) // 2 if len(patterns) > LONG else 1
    test = _any(frame, patterns[:at], subject)
    more = branch(frame, patterns[0].span, test, lambda: literal(True), lambda: _any(frame, patterns[at:], subject), value=BOOL)
    assert more is not None, "a test of a pattern does not leave"
    return more


def _test(frame: Frame, pattern: ast.Pattern, subject: Operand) -> Operand:
    match pattern:
        case ast.RecordPattern():
            member = frame.checked.patterns[pattern].type.name
            return frame.value(UnionIs, pattern.span, BOOL, "is", value=subject, member=member)
        case ast.LiteralPattern(value=value):
            return frame.value(PureCall, pattern.span, BOOL, "is", args=(subject, literal(value)), function="eq")
    raise AssertionError(pattern)


def _bind(frame: Frame, patterns: tuple[ast.Pattern, ...], subject: Operand) -> None:
    """Bind the names of the alternative that applies; all alternatives bind the same ones."""
    pattern, rest = patterns[0], patterns[1:]
    if not isinstance(pattern, ast.RecordPattern) or not frame.checked.patterns[pattern].bindings:
        return
    if rest and not _always(pattern, subject):
        test = _test(frame, pattern, subject)
        branch(frame, pattern.span, test, lambda: _bind(frame, (pattern,), subject), lambda: _bind(frame, rest, subject))
        return
    for field, symbol in frame.checked.patterns[pattern].bindings:
        value = frame.value(RecordGet, pattern.span, symbol.type, symbol.name, record=subject, field=field)
        frame.names[symbol] = value
