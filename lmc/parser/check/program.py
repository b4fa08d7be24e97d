"""`check`: a whole program, from the path of its root file to the tables that lowering reads.

    load files -> bind imports -> resolve items -> check bodies -> check parts -> config -> switch off allowed warnings

All mistakes of all files are collected; nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from lmc.diagnostics import Diagnostic, LmcError, Severity
from lmc.parser import ast
from lmc.parser.check.declare import RULES, constant_default, declare_items, resolve_item
from lmc.parser.check.facts import Facts
from lmc.parser.check.functions import check_function, check_parts, check_test
from lmc.parser.check.imports import LoadedFile, load_files
from lmc.parser.check.model import (
    Checked, CheckedFile, ConstSymbol, ExternSymbol, FunctionSymbol, ModuleSymbol, TypeSymbol,
)
from lmc.parser.check.options import CONFIG, check_options
from lmc.parser.check.body import Body
from lmc.parser.check.order import dependencies_first
from lmc.parser.check.scope import BrokenSymbol, FileScope
from lmc.parser.read import read_source
from lmc.types import RecordT, UnionT, named_types
from lmc.values import to_data


def check(root_path: str, *, roots: tuple[str, ...] | None = None, read: Callable[[str], str] | None = None) -> Checked:
    """Parse and check the file at `root_path` and all that it imports.

    roots: folders that imports may reach beside the root file's own
    read: path to text, `read_source` unless given

    Where the root file cannot be read, the result has the error and no files.
    """
    facts = Facts()
    try:
        loaded = load_files(facts, root_path, roots, read or read_source)
    except LmcError as error:
        return _result(facts, [], error.diagnostics, {}, {})
    except OSError as error:
        problem = Diagnostic("E0205", f"`{root_path}` cannot be read: {error.strerror or error}", None)
        return _result(facts, [], (problem,), {}, {})
    scopes: dict[str, FileScope] = {}
    for file in loaded:
        scopes[file.path] = _open(facts, file, scopes)
    checked = [_check_file(scopes[file.path], file) for file in loaded]
    # The entries of an imported file are checked, and only those of the root file count.
    configs = [_config(scopes[file.path]) for file in loaded]
    roles = check_parts(facts)
    return _result(facts, checked, _allowed(facts.diagnostics, loaded), roles, configs[-1])


def _result(facts: Facts, files: list[CheckedFile], diagnostics: tuple[Diagnostic, ...],
            roles: Mapping[FunctionSymbol, frozenset[str]], config: Mapping[str, Any]) -> Checked:
    return Checked(
        tuple(files), diagnostics, facts.sources, facts.expr_types, facts.types_of, facts.symbols, facts.calls, facts.matches,
        facts.patterns, facts.forks, facts.constants, facts.values, frozenset(facts.conversions), roles, config)


# ---------------------------------------------------------------------- one file


def _open(facts: Facts, file: LoadedFile, scopes: Mapping[str, FileScope]) -> FileScope:
    """The scope of a file, its imports bound and its items declared."""
    scope = FileScope(facts, file.file, file.module, scopes, resolve_item)
    for item in file.file.items:
        if isinstance(item, ast.Import):
            _bind_import(scope, item, file.targets.get(item))
    declare_items(scope)
    return scope


def _bind_import(scope: FileScope, item: ast.Import, path: str | None) -> None:
    module = ModuleSymbol(item.path.plain or "", item.span, path or "")
    if item.alias is not None:
        _enter(scope, item.alias, ModuleSymbol(item.alias.text, item.alias.span, path or "") if path else
               BrokenSymbol(item.alias.text, item.alias.span))
    for name, alias in item.names:
        symbol = scope.imported_name(module, name) if path else None
        if symbol is not None:
            scope.facts.symbols[name] = symbol
        _enter(scope, alias or name, symbol or BrokenSymbol(name.text, name.span))


def _enter(scope: FileScope, name: ast.Identifier, symbol: Any) -> None:
    if name.text in scope.imported:
        scope.facts.error("E0202", f"`{name.text}` is imported twice", name, "duplicate",
                          "give one of them another name with `as`")
    scope.imported[name.text] = symbol
    scope.facts.symbols[name] = symbol


def _check_file(scope: FileScope, file: LoadedFile) -> CheckedFile:
    for name in dependencies_first(scope.items):
        scope.own(name)
    symbols = [s for name in scope.items if (s := scope.own(name)) is not None]
    functions = tuple(s for s in symbols if isinstance(s, FunctionSymbol))
    for symbol in functions:
        check_function(scope, symbol)
    tests = tuple(item for item in file.file.items if isinstance(item, ast.TestDef))
    _check_tests(scope, tests)
    return CheckedFile(
        file.path, file.module, file.file, tuple(s for s in symbols if isinstance(s, ConstSymbol)), _own_types(scope, symbols),
        functions,
        tuple(s for s in symbols if isinstance(s, ExternSymbol)), tests)


def _own_types(scope: FileScope, symbols: list[Any]) -> tuple[RecordT | UnionT, ...]:
    """The records and unions that this file defines, each after those it needs."""
    own = {scope.qualify(s.name) for s in symbols if isinstance(s, TypeSymbol)}
    found: dict[str, RecordT | UnionT] = {}
    for symbol in symbols:
        if isinstance(symbol, TypeSymbol):
            for type in named_types(symbol.type):
                if type.name in own:
                    found.setdefault(type.name, type)
    return tuple(found.values())


def _check_tests(scope: FileScope, tests: tuple[ast.TestDef, ...]) -> None:
    seen: set[str] = set()
    for test in tests:
        name = test.name.plain
        if name is not None and name in seen:
            scope.facts.error("E0202", f"there are two tests named \"{name}\"", test.name, "duplicate", "rename one of them")
        seen.add(name or "")
        check_test(scope, test)


def _config(scope: FileScope) -> dict[str, Any]:
    blocks = [item for item in scope.file.items if isinstance(item, ast.Config)]
    for extra in blocks[1:]:
        scope.facts.error("E0202", "there are two `config:` blocks", extra, "duplicate", "put all entries into one")
    entries = tuple(entry for block in blocks for entry in block.entries)
    before = scope.facts.mark()
    options = check_options(Body(scope.facts, scope, RULES), "config", entries, CONFIG)
    values: dict[str, Any] = {}
    if scope.facts.failed_since(before):
        return values
    for name, expr in options.items():
        type = CONFIG[name].type if name != "stop" else scope.facts.expr_types[expr]
        value = constant_default(scope, expr, type, f"`{name}`")
        if expr in scope.facts.values:
            values[name] = to_data(value)
    return values


# ------------------------------------------------------------- allowed warnings

_ALLOW = re.compile(r"lmc:\s*allow\s+(W\d{3}(?:[\s,]+W\d{3})*)")


def _allowed(diagnostics: list[Diagnostic], files: list[LoadedFile]) -> tuple[Diagnostic, ...]:
    """The diagnostics without the warnings that `# lmc: allow W103` switches off: on the line, or at the top for the file."""
    allowed = {file.path: _switches(file) for file in files}
    kept = []
    for diagnostic in diagnostics:
        span = diagnostic.span
        if diagnostic.severity is Severity.WARNING and span is not None:
            everywhere, by_line = allowed.get(span.file, (set(), {}))
            if diagnostic.code in everywhere or diagnostic.code in by_line.get(span.line, set()):
                continue
        kept.append(diagnostic)
    return tuple(sorted(kept, key=lambda d: (d.span is None, d.span)))


def _switches(file: LoadedFile) -> tuple[set[str], dict[int, set[str]]]:
    first = min((item.span.line for item in file.file.items), default=1)
    everywhere: set[str] = set()
    by_line: dict[int, set[str]] = {}
    for line, comment in file.comments.items():
        match = _ALLOW.search(comment)
        if match is not None:
            codes = set(re.findall(r"W\d{3}", match[1]))
            by_line[line] = codes
            if line < first:
                everywhere |= codes
    return everywhere, by_line
