"""Names at the top level of a file: its own items, what it imports, and what is built in.

An item becomes a symbol when it is first looked up, so that items may stand in any order; `resolve` is handed in by
`declare.py`, which this file does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from lmc.parser import ast
from lmc.parser.check.builtins import BUILTINS
from lmc.parser.check.facts import Facts
from lmc.parser.check.model import BuiltinSymbol, ModuleSymbol, Symbol, TypeSymbol
from lmc.parser.check.suggest import nearest
from lmc.types import BOOL, BUILTIN_RECORDS, CONTEXT, FLOAT, INT, NONE, STR

#: Items that declare a name; one that is broken may declare several.
Declaration = (
    ast.ConstDef | ast.TypeAlias | ast.RecordDef | ast.FunctionDef | ast.ExternDef | ast.BrokenItem
)


class BrokenSymbol(Symbol):
    """A name whose declaration is wrong and was reported; whatever is done with it is accepted."""

    __slots__ = ()


BUILTIN_TYPES: dict[str, TypeSymbol] = {
    name: TypeSymbol(name, None, type, name, None)
    for name, type in (
        ("str", STR), ("int", INT), ("float", FLOAT), ("bool", BOOL), ("None", NONE), ("context", CONTEXT),
        *((r.name, r) for r in BUILTIN_RECORDS),
    )
}
BUILTIN_FUNCTIONS: dict[str, BuiltinSymbol] = {name: BuiltinSymbol(name, None) for name in BUILTINS}


MAX_CHAIN = 60
"""Definitions being resolved at once.  Only those round a circle are (`order.py`), each by recursion over some eleven frames."""


class FileScope:
    """The names of one file.  `module` is the prefix of its qualified names, `files` has the scopes of the files it imports."""

    __slots__ = ("facts", "file", "module", "files", "items", "symbols", "imported", "resolving", "_resolve")

    def __init__(self, facts: Facts, file: ast.File, module: str, files: Mapping[str, FileScope],
                 resolve: Callable[[FileScope, Declaration], Symbol]):
        self.facts, self.file, self.module, self.files, self._resolve = facts, file, module, files, resolve
        self.items: dict[str, Declaration] = {}
        self.symbols: dict[str, Symbol] = {}
        self.imported: dict[str, Symbol] = {}
        self.resolving: list[str] = []

    def qualify(self, name: str) -> str:
        return f"{self.module}.{name}" if self.module else name

    def own(self, name: str) -> Symbol | None:
        """The symbol of an item of this file."""
        if name in self.symbols:
            return self.symbols[name]
        item = self.items.get(name)
        if item is None:
            return None
        if self.in_progress(name) or isinstance(item, ast.BrokenItem):
            return BrokenSymbol(name, item.span)
        if len(self.resolving) > MAX_CHAIN:
            self._refuse_chain(item)
            return BrokenSymbol(name, item.span)
        self.resolving.append(name)
        self.symbols[name] = self._resolve(self, item)
        self.resolving.pop()
        return self.symbols[name]

    def _refuse_chain(self, item: Declaration) -> None:
        """Once, however many times the circle is as long as the bound."""
        if all(d.code != "E0015" for d in self.facts.diagnostics):
            self.facts.error("E0015", f"more than {MAX_CHAIN} definitions need one another in a circle, or lead into one", item,
                             "one of them", "mend the circle first; definitions cannot need themselves")

    def in_progress(self, name: str) -> bool:
        """Whether the item is being resolved right now; who meets this has found a definition by itself and reports it."""
        return name in self.resolving

    def lookup(self, name: str) -> Symbol | None:
        """What `name` refers to outside any function."""
        if name in self.items:
            return self.own(name)
        return self.imported.get(name) or BUILTIN_FUNCTIONS.get(name) or BUILTIN_TYPES.get(name)

    def type_symbol(self, name: str) -> Symbol | None:
        """What `name` refers to where a type is wanted: `str` is a function and a type."""
        if name in self.items:
            return self.own(name)
        return self.imported.get(name) or BUILTIN_TYPES.get(name)

    def module_of(self, expr: ast.Expr) -> ModuleSymbol | None:
        """The imported file that `expr` names."""
        symbol = self.lookup(expr.text) if isinstance(expr, ast.Name) else None
        return symbol if isinstance(symbol, ModuleSymbol) else None

    def member(self, expr: ast.Attribute) -> Symbol | None:
        """What `module.name` refers to; reports where it is nothing, and then gives None."""
        module = self.module_of(expr.value)
        if module is None and isinstance(expr.value, ast.Name) and isinstance(self.lookup(expr.value.text), BrokenSymbol):
            return BrokenSymbol(expr.name.text, expr.name.span)
        if module is None:
            self.facts.error("E0209", "only an imported file has names behind a dot here", expr)
            return None
        self.facts.symbols[expr.value] = module
        return self.imported_name(module, expr.name)

    def imported_name(self, module: ModuleSymbol, name: ast.Identifier) -> Symbol | None:
        """The item `name` of an imported file, reported where it has none."""
        other = self.files.get(module.path)
        if other is None:
            return BrokenSymbol(name.text, name.span)
        symbol = other.own(name.text)
        if symbol is None:
            near = nearest(name.text, other.items)
            self.facts.error("E0208", f"`{module.path}` has no `{name.text}`", name, "not defined there",
                             f"did you mean `{near}`?" if near else None)
        return symbol

    def names(self) -> Iterator[str]:
        """All names of the file, its imports and what is built in, for suggestions."""
        yield from self.items
        yield from self.imported
        yield from BUILTINS
