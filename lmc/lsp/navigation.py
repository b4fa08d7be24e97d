"""Where things are declared and used, and the outline of a file.

    definition(analysis, 41, 14)    # on `verdict`  ->  the span of its first assignment
    references(analysis, 9, 8)      # on `Verdict`  ->  every use in the files of the program

All places are spans of `lmc`; this file knows nothing of editors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from lmc.diagnostics import Span
from lmc.lsp.analysis import Analysis
from lmc.parser import ast
from lmc.parser.check.model import ModuleSymbol, Symbol


def definition(analysis: Analysis, line: int, column: int) -> Span | None:
    """Where what is at the place is declared; for the path of an import the beginning of that file."""
    path = analysis.path_at(line, column)
    if not path:
        return None
    field = analysis.field_of(path)
    if field is not None:
        return analysis.field_span(*field)
    argument = analysis.argument_span(path)
    if argument is not None:
        return argument
    imported = next((node for node in path if isinstance(node, ast.Import)), None)
    symbol = _symbol(analysis, path)
    if imported is not None and (symbol is None or isinstance(symbol, ModuleSymbol)):
        target = _imported_path(analysis, imported)
        return Span(target, 1, 1, 1, 1) if target else None
    if isinstance(symbol, ModuleSymbol) and symbol.path:
        return symbol.span
    return symbol.span if symbol is not None else None


def references(analysis: Analysis, line: int, column: int, *, declaration: bool = True) -> list[Span]:
    """Every place of the program's files where the name at the place stands, in order."""
    path = analysis.path_at(line, column)
    symbol = _symbol(analysis, path) if path else None
    if symbol is None or symbol.span is None:
        return []
    found = {_name_span(node) for node, other in analysis.checked.symbols.items() if other is symbol}
    found.add(symbol.span)
    return sorted(found if declaration else found - {symbol.span})


def _symbol(analysis: Analysis, path: tuple[ast.Node, ...]) -> Symbol | None:
    symbol = analysis.symbol(path[-1])
    if symbol is None and len(path) > 1 and isinstance(path[-2], ast.Attribute) and path[-1] is path[-2].name:
        symbol = analysis.symbol(path[-2])
    return symbol


def _name_span(node: ast.Node) -> Span:
    """Of `module.name` the name."""
    return node.name.span if isinstance(node, ast.Attribute) else node.span


def _imported_path(analysis: Analysis, item: ast.Import) -> str | None:
    """The file that an import names, if it was read: by its alias, else by one of its names."""
    for name in (item.alias, *(n for n, _ in item.names)):
        symbol = analysis.symbol(name) if name is not None else None
        if isinstance(symbol, ModuleSymbol):
            return symbol.path or None
        if symbol is not None and symbol.span is not None and symbol.span.file != item.span.file:
            return symbol.span.file
    return None


# ------------------------------------------------------------------- outline


class Outline(Enum):
    CONSTANT = "constant"
    TYPE = "type"
    RECORD = "record"
    FIELD = "field"
    FUNCTION = "function"
    PART = "part"
    EXTERN = "extern"
    TEST = "test"
    CONFIG = "config"
    IMPORT = "import"


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the outline; `name_span` lies within `span`."""

    name: str
    kind: Outline
    span: Span
    name_span: Span
    detail: str = ""
    children: tuple[Entry, ...] = ()


_BROKEN = {"def": Outline.FUNCTION, "part": Outline.PART, "extern": Outline.EXTERN, "type": Outline.TYPE,
           "constant": Outline.CONSTANT}


def outline(file: ast.File) -> Iterator[Entry]:
    """The items of a file with their names, broken ones included."""
    for item in file.items:
        match item:
            case ast.FunctionDef():
                kind = Outline.FUNCTION if item.kind == "def" else Outline.PART
                yield Entry(item.name.text, kind, item.span, item.name.span, item.kind)
            case ast.ExternDef(name=name):
                yield Entry(name.text, Outline.EXTERN, item.span, name.span, "extern")
            case ast.RecordDef(name=name):
                fields = tuple(Entry(f.name.text, Outline.FIELD, f.span, f.name.span) for f in item.fields)
                yield Entry(name.text, Outline.RECORD, item.span, name.span, "type", fields)
            case ast.TypeAlias(name=name):
                yield Entry(name.text, Outline.TYPE, item.span, name.span, "type")
            case ast.ConstDef(name=name):
                yield Entry(name.text, Outline.CONSTANT, item.span, name.span)
            case ast.TestDef(name=text):
                yield Entry(text.plain or "test", Outline.TEST, item.span, text.span, "test")
            case ast.Config():
                yield Entry("config", Outline.CONFIG, item.span, item.span)
            case ast.Import(path=path, alias=alias):
                name = alias.text if alias is not None else path.plain or "import"
                yield Entry(name, Outline.IMPORT, item.span, (alias or path).span, "import")
            case ast.BrokenItem(names=(name, *_), kind=word) if word in _BROKEN:
                yield Entry(name.text, _BROKEN[word], item.span, name.span, "has errors")
