"""What can stand at the cursor: fields and methods after a dot, options in a `gen`, types in annotations, names, keywords.

    x = note.|                 score, reason
    gen(Note, |                max_tokens=, stop=, …
    def f(a: |                 str, int, …, the file's types

What is being typed does not parse.  So the file is analysed with the word at the cursor replaced until the item around it reads;
where nothing helps, the last analysis without broken items answers by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from lmc.lsp.analysis import Analysis, end
from lmc.lsp.builtin_docs import FUNCTIONS, OPTIONS, ROLES
from lmc.lsp.cursor import Cursor, read_cursor
from lmc.lsp.describe import builtin_signature, signature
from lmc.parser import ast, words
from lmc.parser.check.builtins import BUILTINS, DICT_METHODS, STR_METHODS, Signature
from lmc.parser.check.model import (
    BuiltinSymbol, ConstSymbol, ExternSymbol, FunctionSymbol, LocalSymbol, ModuleSymbol, Symbol, TypeSymbol,
)
from lmc.parser.check.options import CONFIG, FORK, GEN, Option
from lmc.parser.check.scope import BUILTIN_TYPES
from lmc.parser.places import Places
from lmc.types import DictT, LiteralT, StrT, Type, plain_type, records_in, spell_type

Analyse = Callable[[str], Analysis]
"""Analyses the document as if it had this text."""


class Kind(Enum):
    KEYWORD = "keyword"
    FUNCTION = "function"
    VARIABLE = "variable"
    CONSTANT = "constant"
    TYPE = "type"
    FIELD = "field"
    METHOD = "method"
    OPTION = "option"
    MODULE = "module"


@dataclass(frozen=True, slots=True)
class Proposal:
    """`insert` is what is written, where it is not the label itself."""

    label: str
    kind: Kind
    detail: str = ""
    doc: str = ""
    insert: str | None = None


def complete(text: str, offset: int, analyse: Analyse, good: Analysis | None) -> list[Proposal]:
    """The proposals at `offset` of `text`; all that could stand there, whatever the word's beginning says."""
    cursor = read_cursor(text, offset)
    if cursor is None:
        return []
    if (imported := _IMPORTED.match(cursor.line)) is not None:
        return list(_importable(text, cursor, imported, analyse))
    if cursor.dot is not None:
        return list(_members(text, cursor, analyse, good))
    analysis, place = _readable(text, cursor, analyse)
    return list(_once(_in_code(text, cursor, analysis or good, place)))


def _once(proposals: Iterator[Proposal]) -> Iterator[Proposal]:
    seen: set[str] = set()
    for proposal in proposals:
        if proposal.label not in seen:
            seen.add(proposal.label)
            yield proposal


# ------------------------------------------------------------ a file that reads


def _readable(text: str, cursor: Cursor, analyse: Analyse) -> tuple[Analysis | None, tuple[int, int]]:
    """An analysis in which the item at the cursor is whole, or None, and the place of the cursor."""
    span = Places("", text).span(cursor.start, cursor.start)
    place = span.line, span.column
    before, after = text[: cursor.start], text[cursor.end :]
    line_start = before.rfind("\n") + 1
    line_end = text.find("\n", cursor.end)
    indent = re.match(r"[ \t]*", text[line_start:])[0]
    rest = text[line_end:] if line_end >= 0 else ""
    for patched in (text, f"{before}None{cursor.closing}{after}", f"{before}None){cursor.closing}{after}",
                    f"{text[:line_start]}{indent}pass{rest}"):
        analysis = analyse(patched)
        if not isinstance(analysis.item_at(*place), ast.BrokenItem):
            return analysis, place
    return None, place


# ------------------------------------------------------------------ after a dot


def _members(text: str, cursor: Cursor, analyse: Analyse, good: Analysis | None) -> Iterator[Proposal]:
    assert cursor.dot is not None
    span = Places("", text).span(cursor.dot, cursor.dot)
    place = span.line, span.column
    name = re.search(r"[^\W\d]\w*\Z", text[: cursor.dot])
    before, after = text[: cursor.dot], text[cursor.end :]
    for patched in (f"{before}{cursor.closing}{after}", f"{before}){cursor.closing}{after}"):
        analysis = analyse(patched)
        expr = next((n for n in reversed(analysis.path_at(*place)) if isinstance(n, ast.Expr) and end(n) == place), None)
        if expr is None:
            continue
        module = analysis.symbol(expr)
        if isinstance(module, ModuleSymbol):
            yield from _items_of(analysis, module.path)
            return
        found = analysis.checked.expr_types.get(expr)
        if found is not None:
            yield from _of_type(found)
            return
    if good is not None and name is not None:
        yield from _by_name(good, name[0])


def _by_name(good: Analysis, name: str) -> Iterator[Proposal]:
    """The members of what has this name somewhere in the last file that could be read."""
    for symbol in good.checked.symbols.values():
        if symbol.name == name and isinstance(symbol, (LocalSymbol, ConstSymbol)):
            yield from _of_type(symbol.type)
            return


def _of_type(type: Type) -> Iterator[Proposal]:
    for record in records_in(type):
        for field in record.fields:
            yield Proposal(field.name, Kind.FIELD, spell_type(field.type))
    plain = plain_type(type)
    texts = isinstance(plain, StrT) or isinstance(plain, LiteralT) and all(isinstance(v, str) for v in plain.values)
    for name, known in (STR_METHODS if texts else DICT_METHODS if isinstance(plain, DictT) else {}).items():
        yield Proposal(name, Kind.METHOD, _method(name, known))


def _method(name: str, known: Signature) -> str:
    return f"{name}({', '.join([*known.names[: known.required], *(f'{n}=…' for n in known.names[known.required :])])})"


def _items_of(analysis: Analysis, path: str) -> Iterator[Proposal]:
    """What another file of the program declares."""
    file = analysis.checked_file(path)
    for item in file.file.items if file is not None else ():
        name = getattr(item, "name", None)
        symbol = analysis.symbol(name) if isinstance(name, ast.Identifier) else None
        if symbol is not None and not isinstance(item, ast.Import):
            yield from _of_symbol(analysis, symbol.name, symbol)


# ---------------------------------------------------------------------- in code

_IMPORTED = re.compile(r'from\s+(?P<path>"_*")\s+import\b')
_ANNOTATION = re.compile(r"(?:->|:|\||\[|\()\s*\Z")
_HEAD = re.compile(r"\s*(?:(?:pure\s+)?extern\s+)?(?:def|part|type)\b")
_TOP = ("import", "from", "type", "def", "part", "extern", "pure", "test", "config")
_BLOCK = ("if", "elif", "else", "for", "while", "match", "case", "return", "break", "continue", "pass", "assert", "try", "except",
          "fork", "join", "branch", "resume")
_IN_EXPRESSIONS = ("and", "or", "not", "in", "is", "if", "else", "for", "True", "False", "None", "here")


def _in_code(text: str, cursor: Cursor, analysis: Analysis | None, place: tuple[int, int]) -> Iterator[Proposal]:
    item = analysis.item_at(*place) if analysis is not None else None
    if not cursor.line.strip() and not cursor.hole:
        yield from _statement(cursor, item)
    if isinstance(item, ast.Config) and cursor.line.startswith(" ") and "=" not in cursor.line:
        yield from _options(CONFIG)
        return
    if analysis is not None and _wants_type(cursor, item):
        yield from _types(analysis)
        return
    yield from _arguments(cursor, analysis)
    if cursor.line or cursor.hole:
        yield from _names(analysis, place)
        for word in _IN_EXPRESSIONS if cursor.line.strip() or cursor.hole else ():
            yield Proposal(word, Kind.KEYWORD)


def _statement(cursor: Cursor, item: ast.Item | None) -> Iterator[Proposal]:
    """What begins a line."""
    if not cursor.line:
        for word in _TOP:
            yield Proposal(word, Kind.KEYWORD)
    elif not isinstance(item, (ast.Config, ast.RecordDef)):
        for role, doc in ROLES.items():
            yield Proposal(role, Kind.KEYWORD, doc=doc, insert=f"{role}:")
        for word in _BLOCK:
            yield Proposal(word, Kind.KEYWORD)


def _wants_type(cursor: Cursor, item: ast.Item | None) -> bool:
    """After `->`, `:`, `|` and in brackets of an annotation; a `:` that opens a block does not count."""
    if not _ANNOTATION.search(cursor.line):
        return False
    if _HEAD.match(cursor.line):
        return not re.search(r"\(\s*\Z", cursor.line) and not re.search(r"\)\s*(?:->[^:]*)?:\s*\Z", cursor.line)
    if isinstance(item, ast.RecordDef) and cursor.line.startswith(" "):
        return True
    name = re.match(r"\s*([^\W\d]\w*)\s*:", cursor.line)
    return name is not None and name[1] not in words.NOT_VALUES


def _arguments(cursor: Cursor, analysis: Analysis | None) -> Iterator[Proposal]:
    """What can be named in the call around the cursor, and the options of `fork … with`."""
    if cursor.callee == "gen":
        yield from _options(GEN)
    elif cursor.callee in BUILTINS:
        for name in BUILTINS[cursor.callee].names[BUILTINS[cursor.callee].required :]:
            yield Proposal(f"{name}=", Kind.OPTION)
    elif cursor.callee is None and re.match(r"\s*fork\b.*\bwith\b", cursor.line):
        yield from _options(FORK)
    elif cursor.callee is not None and analysis is not None:
        yield from _parameters(analysis, cursor.callee)
    if cursor.callee in ("gen", "select", "score", "schema", "fields", "parse_json") and analysis is not None:
        yield from _types(analysis)


def _parameters(analysis: Analysis, name: str) -> Iterator[Proposal]:
    last = name.rpartition(".")[2]
    for symbol in analysis.checked.symbols.values():
        if symbol.name != last:
            continue
        if isinstance(symbol, (FunctionSymbol, ExternSymbol)):
            for param in symbol.params:
                yield Proposal(f"{param.name}=", Kind.OPTION, spell_type(param.type))
            return
        if isinstance(symbol, TypeSymbol):
            for record in records_in(symbol.type):
                for field in record.fields:
                    yield Proposal(f"{field.name}=", Kind.FIELD, spell_type(field.type))
            return


def _options(known: dict[str, Option]) -> Iterator[Proposal]:
    for name, option in known.items():
        yield Proposal(f"{name}=", Kind.OPTION, spell_type(option.type), OPTIONS[name])


def _importable(text: str, cursor: Cursor, imported: re.Match[str], analyse: Analyse) -> Iterator[Proposal]:
    """The items of the file that the import at the cursor names, found by importing it whole."""
    start = text.rfind("\n", 0, cursor.start) + 1
    path = text[start + imported.start("path") : start + imported.end("path")]
    end = text.find("\n", cursor.end)
    analysis = analyse(f"{text[:start]}import {path} as imported{text[end:] if end >= 0 else ''}")
    item = analysis.item_at(text.count("\n", 0, start) + 1, 1)
    module = analysis.symbol(item.alias) if isinstance(item, ast.Import) and item.alias is not None else None
    if isinstance(module, ModuleSymbol):
        yield from _items_of(analysis, module.path)


def _types(analysis: Analysis) -> Iterator[Proposal]:
    for name in (*BUILTIN_TYPES, "list", "dict"):
        yield Proposal(name, Kind.TYPE)
    for name, symbol in _top_level(analysis):
        if isinstance(symbol, (TypeSymbol, ModuleSymbol)):
            yield from _of_symbol(analysis, name, symbol)


def _names(analysis: Analysis | None, place: tuple[int, int]) -> Iterator[Proposal]:
    if analysis is not None:
        for name, local in analysis.local_names(*place).items():
            yield Proposal(name, Kind.VARIABLE, spell_type(local.type))
        for name, symbol in _top_level(analysis):
            yield from _of_symbol(analysis, name, symbol)
    for name in BUILTINS:
        yield Proposal(name, Kind.FUNCTION, builtin_signature(name), FUNCTIONS[name])


def _top_level(analysis: Analysis) -> Iterator[tuple[str, Symbol]]:
    """The names that the root file declares or imports."""
    for item in analysis.file.items if analysis.file is not None else ():
        if isinstance(item, ast.Import):
            names = [item.alias, *(alias or name for name, alias in item.names)]
        else:
            names = [getattr(item, "name", None)]
        for name in names:
            symbol = analysis.symbol(name) if isinstance(name, ast.Identifier) else None
            if symbol is not None:
                yield name.text, symbol


def _of_symbol(analysis: Analysis, name: str, symbol: Symbol) -> Iterator[Proposal]:
    match symbol:
        case FunctionSymbol() | ExternSymbol():
            yield Proposal(name, Kind.FUNCTION, signature(analysis, symbol))
        case TypeSymbol():
            yield Proposal(name, Kind.TYPE, spell_type(symbol.type))
        case ConstSymbol():
            yield Proposal(name, Kind.CONSTANT, spell_type(symbol.type))
        case ModuleSymbol():
            yield Proposal(name, Kind.MODULE, symbol.path)
        case BuiltinSymbol():
            yield Proposal(name, Kind.FUNCTION, builtin_signature(name), FUNCTIONS[name])
