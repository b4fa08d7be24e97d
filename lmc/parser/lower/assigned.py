"""Which names a loop's body gives a new meaning, found before the body is lowered.

    for s in shots:                 assigned: total, and `HERE` because of the text
        "Review: ${s.text}"
        total += 1

What a `fork` assigns stays in its branches, but for what its `join` exports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lmc.parser import ast
from lmc.parser.check.model import Checked, FunctionCall, GenCall, ImageCall, LocalSymbol, SelectCall, Symbol
from lmc.parser.lower.frame import HERE, Key


def assigned_names(checked: Checked, statements: Iterable[ast.Stmt]) -> tuple[Key, ...]:
    """The names, in order of first assignment, each once."""
    return tuple(dict.fromkeys(key for s in statements for key in _assigned(checked, s)))


def used_outside(checked: Checked, body: Iterable[ast.Stmt], function: Iterable[ast.Stmt]) -> set[Symbol]:
    """Names that are read in the function but not only in `body`."""
    inside = _uses(checked, body)
    return {symbol for symbol, count in _uses(checked, function).items() if count > inside.get(symbol, 0)}


def _uses(checked: Checked, statements: Iterable[ast.Stmt]) -> dict[Symbol, int]:
    counts: dict[Symbol, int] = {}
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and node in checked.symbols:
                symbol = checked.symbols[node]
                counts[symbol] = counts.get(symbol, 0) + 1
    return counts


def _assigned(checked: Checked, node: ast.Node) -> Iterator[Key]:
    match node:
        case ast.Fork():
            for child in (node.iterable, *node.options):
                if child is not None:
                    yield from _assigned(checked, child)
            for export in checked.forks[node].exports:
                yield export.target
            return
        case ast.Assign():
            yield from _target(checked, node.target)
        case ast.For():
            yield from (checked.symbols[t] for t in node.targets)
        case ast.RecordPattern():
            yield from (symbol for _, symbol in checked.patterns[node].bindings)
        case ast.Hole() if node.name is not None:
            yield checked.symbols[node.name]
        case ast.Resume():
            yield HERE
        case ast.ExprStmt(value=ast.Text()):
            yield HERE
        case ast.Call() if _goes_on(checked, node):
            yield HERE
    for child in ast.children(node):
        yield from _assigned(checked, child)


def _target(checked: Checked, target: ast.Expr) -> Iterator[LocalSymbol]:
    while isinstance(target, (ast.Index, ast.Attribute)):
        target = target.value
    symbol = checked.symbols.get(target)
    if isinstance(symbol, LocalSymbol):
        yield symbol


def _goes_on(checked: Checked, call: ast.Call) -> bool:
    """Whether a call changes the current context: it generates, shows a picture, or calls a part."""
    info = checked.calls.get(call)
    return isinstance(info, (GenCall, SelectCall, ImageCall)) or isinstance(info, FunctionCall) and info.target.part is not None
