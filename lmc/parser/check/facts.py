"""What the checker writes while it works: the tables of `model.Checked`, the diagnostics, and what the warnings need.

One `Facts` serves a whole program.  A body may be checked again (see `functions.check_function`): `mark` and `rewind` drop the
diagnostics of the first attempt, and the tables are simply overwritten.
This file knows no rule of the language.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lmc.diagnostics import Diagnostic, Severity, Span
from lmc.parser import ast
from lmc.parser.check.model import (
    Callee, ConstSymbol, ForkInfo, FunctionSymbol, LocalSymbol, MatchInfo, RecordMatch, Symbol,
)
from lmc.types import Type


@dataclass(frozen=True, slots=True)
class PartUse:
    """A text part called in `role`; None where the caller is itself a text part, whose roles then count."""

    caller: FunctionSymbol | None
    target: FunctionSymbol
    role: str | None
    span: Span


class Facts:
    """The tables, and `error` and `warn`, which report each mistake once."""

    __slots__ = (
        "sources", "diagnostics", "expr_types", "types_of", "symbols", "calls", "matches", "patterns", "forks", "constants",
        "values", "conversions", "part_uses", "generating_parts", "reads", "seen", "split_sources",
    )

    def __init__(self) -> None:
        self.sources: dict[str, str] = {}
        self.diagnostics: list[Diagnostic] = []
        self.expr_types: dict[ast.Expr, Type] = {}
        self.types_of: dict[ast.Expr, Type] = {}
        self.symbols: dict[ast.Node, Symbol] = {}
        self.calls: dict[ast.Call, Callee] = {}
        self.matches: dict[ast.Match, MatchInfo] = {}
        self.patterns: dict[ast.RecordPattern, RecordMatch] = {}
        self.forks: dict[ast.Fork, ForkInfo] = {}
        self.constants: dict[ConstSymbol, Any] = {}
        self.values: dict[ast.Expr, Any] = {}
        self.conversions: set[ast.Expr] = set()
        self.part_uses: list[PartUse] = []
        self.generating_parts: dict[FunctionSymbol, Span] = {}
        self.reads: set[LocalSymbol] = set()
        self.seen: set[tuple[str, Span | None]] = set()
        self.split_sources: dict[str, list[str]] = {}

    def lines(self, file: str) -> list[str]:
        """The lines of a source, split once."""
        if file not in self.split_sources:
            self.split_sources[file] = self.sources[file].split("\n")
        return self.split_sources[file]

    def error(self, code: str, message: str, at: ast.Node | Span, label: str = "", help: str | None = None,
              notes: tuple[str, ...] = ()) -> None:
        self._report(Diagnostic(code, message, _span(at), label, help, Severity.ERROR, notes))

    def warn(self, code: str, message: str, at: ast.Node | Span, label: str = "", help: str | None = None) -> None:
        self._report(Diagnostic(code, message, _span(at), label, help, Severity.WARNING))

    def _report(self, diagnostic: Diagnostic) -> None:
        # Lowering a mistake twice (an expression inferred with two expectations) must not show it twice.
        key = (diagnostic.code, diagnostic.span)
        if key not in self.seen:
            self.seen.add(key)
            self.diagnostics.append(diagnostic)

    def mark(self) -> tuple[int, int]:
        """A state to go back to with `rewind`."""
        return len(self.diagnostics), len(self.part_uses)

    def rewind(self, mark: tuple[int, int]) -> None:
        """Forget what was reported since `mark`."""
        diagnostics, part_uses = mark
        self.seen -= {(d.code, d.span) for d in self.diagnostics[diagnostics:]}
        del self.diagnostics[diagnostics:]
        del self.part_uses[part_uses:]

    def drop_warnings(self, mark: tuple[int, int]) -> None:
        """Forget the warnings since `mark`: beside an error they are often about the same mistake."""
        self.diagnostics[mark[0]:] = [d for d in self.diagnostics[mark[0]:] if d.severity is Severity.ERROR]

    def failed_within(self, span: Span) -> bool:
        """Whether an error lies in the span, one of reading the file among them."""
        start, end = (span.line, span.column), (span.end_line, span.end_column)
        return any(d.severity is Severity.ERROR and d.span is not None and d.span.file == span.file
                   and start <= (d.span.line, d.span.column) <= end for d in self.diagnostics)

    def failed_since(self, mark: tuple[int, int]) -> bool:
        """Whether an error was reported since `mark`."""
        return any(d.severity is Severity.ERROR for d in self.diagnostics[mark[0]:])


def _span(at: ast.Node | Span) -> Span:
    return at if isinstance(at, Span) else at.span
