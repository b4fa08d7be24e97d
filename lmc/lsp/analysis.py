"""One check of a program, asked by place.

    analysis = analyse("judge.lmp", roots=None, read=read)
    analysis.path_at(32, 20)      # the nodes around line 32, column 20, outermost first
    analysis.symbol(node)         # what a name, attribute or declaration refers to

This file knows nothing of editors and of how answers are shown.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lmc.diagnostics import Diagnostic, Span
from lmc.parser import ast
from lmc.parser.check import Checked, CheckedFile, check
from lmc.parser.check.model import ExternCall, FunctionCall, LocalSymbol, RecordCall, Symbol
from lmc.types import RecordT, Type, records_in

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Analysis:
    """What was found.  `file` is the root file's tree; without it the file could not be read at all."""

    path: str
    checked: Checked

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return self.checked.diagnostics

    @property
    def file(self) -> ast.File | None:
        return self.checked.files[-1].file if self.checked.files else None

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @property
    def text(self) -> str:
        return self.checked.sources.get(self.path, "")

    @property
    def whole(self) -> bool:
        """Whether every item of the root file could be read."""
        return self.file is not None and not any(isinstance(i, ast.BrokenItem) for i in self.file.items)

    @property
    def paths(self) -> frozenset[str]:
        """The real paths of all files that were read."""
        return frozenset(map(os.path.realpath, self.checked.sources))

    def path_at(self, line: int, column: int) -> tuple[ast.Node, ...]:
        """The nodes of the root file around the place, outermost first; empty between the items."""
        return tuple(_around(self.file, (line, column))) if self.file is not None else ()

    def item_at(self, line: int, column: int) -> ast.Item | None:
        """The item around the place, or the last that began before it."""
        before = [i for i in self.file.items if start(i) <= (line, column)] if self.file is not None else []
        return before[-1] if before else None

    def symbol(self, node: ast.Node) -> Symbol | None:
        return self.checked.symbols.get(node)

    def type_of(self, node: ast.Node) -> Type | None:
        """The static type of an expression, or the type that a type expression stands for."""
        found = self.checked.expr_types.get(node) or self.checked.types_of.get(node)
        if found is None:
            symbol = self.symbol(node)
            found = symbol.type if isinstance(symbol, LocalSymbol) else None
        return found

    def source(self, span: Span) -> str:
        """The text at a span, on one line."""
        text = self.checked.sources.get(span.file, "").split("\n")[span.line - 1 : span.end_line]
        if not text:
            return ""
        text[-1] = text[-1][: span.end_column - 1]
        text[0] = text[0][span.column - 1 :]
        return " ".join(line.strip() for line in text)

    def checked_file(self, path: str) -> CheckedFile | None:
        return next((f for f in self.checked.files if f.path == path), None)

    # ------------------------------------------------------------- by name

    def field_of(self, path: tuple[ast.Node, ...]) -> tuple[RecordT, str] | None:
        """The record and field that the innermost node of `path`, a field's name, names: `note.score`, `Note(score=3)`."""
        if len(path) < 2 or not isinstance(path[-1], ast.Identifier):
            return None
        name, parent = path[-1], path[-2]
        types: tuple[Type | None, ...] = ()
        if isinstance(parent, ast.Attribute):
            types = (self.type_of(parent.value),)
        elif isinstance(parent, ast.Keyword) and len(path) > 2:
            call = self.checked.calls.get(path[-3]) if isinstance(path[-3], ast.Call) else None
            types = (call.type if isinstance(call, RecordCall) else
                     self.type_of(path[-3]) if isinstance(path[-3], ast.RecordExpr) else None,)
        elif isinstance(parent, ast.RecordPattern):
            match = self.checked.patterns.get(parent)
            types = (match.type if match is not None else None,)
        for type in types:
            for record in records_in(type) if type is not None else ():
                if record.field(name.text) is not None:
                    return record, name.text
        return None

    def field_span(self, record: RecordT, field: str) -> Span | None:
        """Where the field is declared; None for the fields of built-in records."""
        for file in self.checked.files:
            for item in file.file.items:
                if isinstance(item, ast.RecordDef) and _qualified(file, item.name.text) == record.name:
                    return next((f.name.span for f in item.fields if f.name.text == field), None)
        return None

    def argument_span(self, path: tuple[ast.Node, ...]) -> Span | None:
        """Where the parameter is declared that the innermost node, the name of an argument, names."""
        if len(path) < 3 or not isinstance(path[-2], ast.Keyword) or not isinstance(path[-3], ast.Call):
            return None
        call = self.checked.calls.get(path[-3])
        if path[-1] is not path[-2].name or not isinstance(call, (FunctionCall, ExternCall)):
            return None
        return next((p.span for p in call.target.params if p.name == path[-1].text), None)

    def local_names(self, line: int, column: int) -> dict[str, LocalSymbol]:
        """The parameters and variables that can be read at a place: bound before it, in a scope that is open there."""
        found: dict[str, LocalSymbol] = {}
        item = self.item_at(line, column)
        for node in _open_at(item, (line, column)) if item is not None else ():
            symbol = self.symbol(node)
            if isinstance(symbol, LocalSymbol) and symbol.span is not None:
                if (symbol.span.end_line, symbol.span.end_column) <= (line, column):
                    found[symbol.name] = symbol
        return found


def analyse(path: str, roots: tuple[str, ...] | None, read: Callable[[str], str]) -> Analysis:
    """Check the program whose root file is `path`; mistakes are in the result."""
    return Analysis(path, check(path, roots=roots, read=read))


def start(node: ast.Node) -> Place:
    return node.span.line, node.span.column


def end(node: ast.Node) -> Place:
    return node.span.end_line, node.span.end_column


def _around(node: ast.Node, place: Place) -> Iterator[ast.Node]:
    """From `node` down to the innermost around `place`; right behind a node counts where nothing else begins there."""
    while True:
        touching = [child for child in ast.children(node) if start(child) <= place <= end(child)]
        if not touching:
            return
        inside = [child for child in touching if place < end(child)]
        node = (inside or touching)[-1]
        yield node


def _open_at(node: ast.Node, place: Place) -> Iterator[ast.Node]:
    """The nodes below `node`, without those inside a scope (a comprehension, a branch) that does not hold `place`."""
    for child in ast.children(node):
        closed = not start(child) <= place <= end(child)
        if isinstance(child, (ast.Comprehension, ast.Arm)) and closed:
            continue
        if isinstance(child, ast.Fork) and _after_branches(child, place):
            if child.join is not None:
                yield from _exported(child.join)
            continue
        yield child
        yield from _open_at(child, place)


def _after_branches(fork: ast.Fork, place: Place) -> bool:
    return fork.join is not None and place >= end(fork.join)


def _exported(join: ast.Join) -> Iterator[ast.Node]:
    for export in join.exports:
        yield export.target or export.value


def _qualified(file: CheckedFile, name: str) -> str:
    return f"{file.module}.{name}" if file.module else name
