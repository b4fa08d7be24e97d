"""What stands at the top level of a file."""

from __future__ import annotations

from dataclasses import dataclass

from lmc.parser.ast.expressions import Expr, Keyword, Text
from lmc.parser.ast.node import Identifier, Node
from lmc.parser.ast.statements import Stmt


class Item(Node):
    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class Import(Item):
    """`import "path" as alias` or `from "path" import a as b, c`."""

    path: Text
    alias: Identifier | None
    names: tuple[tuple[Identifier, Identifier | None], ...]


@dataclass(frozen=True, slots=True, eq=False)
class ConstDef(Item):
    name: Identifier
    annotation: Expr | None
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class TypeAlias(Item):
    """`type Name = …`."""

    name: Identifier
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class RecordDef(Item):
    """`type Name:` with fields."""

    name: Identifier
    doc: Text | None
    fields: tuple[FieldDef, ...]


@dataclass(frozen=True, slots=True, eq=False)
class FieldDef(Node):
    name: Identifier
    type: Expr
    default: Expr | None


@dataclass(frozen=True, slots=True, eq=False)
class Param(Node):
    """`annotation` is None where it is missing, which the checker reports."""

    name: Identifier
    annotation: Expr | None
    default: Expr | None


@dataclass(frozen=True, slots=True, eq=False)
class FunctionDef(Item):
    """`def` (`kind == "def"`) or `part`."""

    kind: str
    name: Identifier
    params: tuple[Param, ...]
    result: Expr | None
    doc: Text | None
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ExternDef(Item):
    name: Identifier
    params: tuple[Param, ...]
    result: Expr | None
    doc: Text | None
    pure: bool


@dataclass(frozen=True, slots=True, eq=False)
class TestDef(Item):
    name: Text
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Config(Item):
    """`config:` with `name = value` lines."""

    entries: tuple[Keyword, ...]


@dataclass(frozen=True, slots=True, eq=False)
class BrokenItem(Item):
    """An item that did not parse, kept so that the names of its header stay known; `kind` as its keyword says."""

    kind: str
    names: tuple[Identifier, ...]


@dataclass(frozen=True, slots=True, eq=False)
class File(Node):
    path: str
    items: tuple[Item, ...]
