"""What is at a place: a name with its type, a `gen` with its constraint, a field, an option, a role word.

    hover(analysis, 32, 21)   # on `gen(Note)`  ->  the JSON Schema of Note, and the states of its automaton

This file knows what to ask for; how it is worded is in `describe.py`.
"""

from __future__ import annotations

from lmc.diagnostics import Span
from lmc.lsp.analysis import Analysis
from lmc.lsp.builtin_docs import OPTIONS, ROLES
from lmc.lsp.describe import code, describe_field, describe_generation, describe_symbol
from lmc.parser import ast
from lmc.parser.check.model import BuiltinSymbol, GenCall, LocalSymbol, SelectCall, UnknownT
from lmc.parser.check.options import CONFIG, FORK, GEN, Option
from lmc.types import Type, spell_type


def hover(analysis: Analysis, line: int, column: int) -> tuple[str, Span] | None:
    """Markdown about what is at the place, and the stretch of source that it is about."""
    path = analysis.path_at(line, column)
    if not path:
        return None
    node = path[-1]
    if isinstance(node, ast.RoleBlock):
        return _role(node, line, column)
    text = _option(path) or _generation(analysis, path) or _field(analysis, path) or _named(analysis, path)
    if text is not None:
        return text, node.span
    found = analysis.type_of(node)
    if found is None or isinstance(node, ast.Text):
        return None
    return code(spell_type(found)), node.span


def _role(block: ast.RoleBlock, line: int, column: int) -> tuple[str, Span] | None:
    span = block.span
    if line != span.line or not span.column <= column <= span.column + len(block.role):
        return None
    word = Span(span.file, line, span.column, line, span.column + len(block.role))
    return f"{code(block.role + ':')}\n{ROLES[block.role]}", word


def _option(path: tuple[ast.Node, ...]) -> str | None:
    """The name of an option of `gen`, of `fork … with` or of `config`."""
    if len(path) < 2 or not isinstance(path[-2], ast.Keyword) or path[-1] is not path[-2].name:
        return None
    around = path[-3] if len(path) > 2 else None
    known: dict[str, Option] = {}
    if isinstance(around, ast.Call) and isinstance(around.function, ast.Name) and around.function.text == "gen":
        known = GEN
    elif isinstance(around, ast.Fork):
        known = FORK
    elif isinstance(around, ast.Config):
        known = CONFIG
    name = path[-1].text
    if name not in known:
        return None
    option = known[name]
    bounds = f" Must be {option.bounds}." if option.bounds else ""
    return f"{code(f'{name}: {spell_type(option.type)}')}\n{OPTIONS[name]}{bounds}"


def _generation(analysis: Analysis, path: tuple[ast.Node, ...]) -> str | None:
    """On the word `gen` or `select` of a call, or on the name that it is bound to in a hole."""
    node, parent = path[-1], path[-2] if len(path) > 1 else None
    call = parent if isinstance(parent, ast.Call) and node is parent.function else node
    found = analysis.checked.calls.get(call) if isinstance(call, ast.Call) else None
    if isinstance(found, GenCall):
        return describe_generation(analysis, found)
    if isinstance(found, SelectCall):
        return f"{code(f'select: {spell_type(found.type)}')}\nChosen by `{found.method}`."
    return None


def _field(analysis: Analysis, path: tuple[ast.Node, ...]) -> str | None:
    field = analysis.field_of(path)
    if field is not None:
        return describe_field(*field)
    declared = path[-2] if len(path) > 1 else None
    if isinstance(declared, ast.FieldDef) and path[-1] is declared.name:
        found = analysis.type_of(declared.type)
        return code(f"{declared.name.text}: {spell_type(found)}") if found is not None else None
    return None


def _named(analysis: Analysis, path: tuple[ast.Node, ...]) -> str | None:
    node = path[-1]
    symbol = analysis.symbol(node)
    if symbol is None and len(path) > 1 and isinstance(path[-2], ast.Attribute) and node is path[-2].name:
        symbol = analysis.symbol(path[-2])
    if symbol is None:
        return None
    narrow = analysis.checked.expr_types.get(node)
    if isinstance(symbol, LocalSymbol) and isinstance(narrow or symbol.type, UnknownT):
        return None
    if isinstance(symbol, BuiltinSymbol) and isinstance(path[-2] if len(path) > 1 else None, ast.Call):
        result = analysis.checked.expr_types.get(path[-2])
        text = describe_symbol(analysis, symbol)
        return f"{text}\n\nHere: `{spell_type(result)}`" if result is not None else text
    return describe_symbol(analysis, symbol, narrow)
