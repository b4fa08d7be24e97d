"""The syntax tree of a `.lmp` file.

Nodes are frozen and compare by identity, so that the checker can keep what it learns in tables keyed by node.  Every node has a
span.  Type expressions are ordinary expressions here (`A | B` is a `Binary`, `1..5` a `Binary` with `..`, `list[T]` an `Index`,
`str(max_len=3)` a `Call`); the checker reads them as types.  This file knows nothing of names or types.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from lmc.diagnostics import Span


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    span: Span


# ---------------------------------------------------------------- expressions


class Expr(Node):
    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class Constant(Expr):
    """An int, float, bool or None.  Strings are `Text`."""

    value: int | float | bool | None


@dataclass(frozen=True, slots=True, eq=False)
class Text(Expr):
    """A string literal, escapes processed and dedented: literal pieces and holes, in order.

    A plain string has one `TextPiece` (or none where it is empty).  `raw` strings never have holes.
    """

    parts: tuple[TextPiece | Hole, ...]
    raw: bool = False
    block: bool = False

    @property
    def plain(self) -> str | None:
        """The text where there is no hole, else None."""
        return None if any(isinstance(p, Hole) for p in self.parts) else "".join(p.text for p in self.parts)


@dataclass(frozen=True, slots=True, eq=False)
class TextPiece(Node):
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Hole(Node):
    """`${expr}`, or `${name := expr}`.  Comments (`${# … }`) leave no node."""

    value: Expr
    name: Identifier | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Identifier(Node):
    """A name where it is declared or bound (a parameter, a target, a keyword's name); a use is a `Name`."""

    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Name(Expr):
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Here(Expr):
    """`here`: the current context."""


@dataclass(frozen=True, slots=True, eq=False)
class Attribute(Expr):
    value: Expr
    name: Identifier


@dataclass(frozen=True, slots=True, eq=False)
class Index(Expr):
    """`value[index]`; in a type, `list[T]` and `dict[K, V]` (a `TupleExpr`)."""

    value: Expr
    index: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Slice(Expr):
    """`value[start:stop:step]`."""

    value: Expr
    start: Expr | None
    stop: Expr | None
    step: Expr | None


@dataclass(frozen=True, slots=True, eq=False)
class Call(Expr):
    function: Expr
    args: tuple[Expr, ...]
    keywords: tuple[Keyword, ...]

    def keyword(self, name: str) -> Keyword | None:
        return next((k for k in self.keywords if k.name.text == name), None)


@dataclass(frozen=True, slots=True, eq=False)
class Keyword(Node):
    name: Identifier
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Unary(Expr):
    """`op` is `-`, `+` or `not`."""

    op: str
    operand: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Binary(Expr):
    """`op` is one of `+ - * / // % **`, or, in types, `|` and `..`."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Compare(Expr):
    """`a < b <= c`: `ops` are `== != < <= > >= in`, `not in`, `is`, `is not`."""

    first: Expr
    ops: tuple[str, ...]
    rest: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class BoolOp(Expr):
    """`op` is `and` or `or`."""

    op: str
    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Conditional(Expr):
    """`then if condition else otherwise`."""

    condition: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True, slots=True, eq=False)
class ListExpr(Expr):
    elements: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TupleExpr(Expr):
    """`a, b`: legal in `dict[K, V]` and in `for i, x in …` only; the checker refuses it elsewhere."""

    elements: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class DictExpr(Expr):
    """`{"key": value}`."""

    keys: tuple[Expr, ...]
    values: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RecordExpr(Expr):
    """`{name: value}`, a record of the type expected where it stands.  `{}` is an empty `RecordExpr`."""

    fields: tuple[Keyword, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Comprehension(Expr):
    """`[element for … in … if …]`."""

    element: Expr
    clauses: tuple[ForClause, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ForClause(Node):
    """`for targets in iterable if condition if …`."""

    targets: tuple[Identifier, ...]
    iterable: Expr
    conditions: tuple[Expr, ...]


# ----------------------------------------------------------------- statements


class Stmt(Node):
    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class ExprStmt(Stmt):
    """An expression alone.  Inside a role block a `Text` is text, a `gen` generates, a call of a text part inlines it."""

    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Assign(Stmt):
    """`target = value`, `target: annotation = value`, or `target op= value` (`op` without the `=`).

    `target` is a `Name`, an `Index` or an `Attribute` (the last is refused: records are values).
    """

    target: Expr
    value: Expr
    annotation: Expr | None = None
    op: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class If(Stmt):
    """`elif` is an `If` alone in `otherwise`."""

    condition: Expr
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, eq=False)
class For(Stmt):
    targets: tuple[Identifier, ...]
    iterable: Expr
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, eq=False)
class While(Stmt):
    condition: Expr
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Break(Stmt):
    pass


@dataclass(frozen=True, slots=True, eq=False)
class Continue(Stmt):
    pass


@dataclass(frozen=True, slots=True, eq=False)
class Pass(Stmt):
    pass


@dataclass(frozen=True, slots=True, eq=False)
class Return(Stmt):
    value: Expr | None


@dataclass(frozen=True, slots=True, eq=False)
class Assert(Stmt):
    condition: Expr
    message: Expr | None


@dataclass(frozen=True, slots=True, eq=False)
class Try(Stmt):
    """`try: body except Error as name: handler`."""

    body: tuple[Stmt, ...]
    name: Identifier | None
    handler: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Match(Stmt):
    subject: Expr
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Case(Node):
    """`patterns` are the alternatives of `a | b`."""

    patterns: tuple[Pattern, ...]
    body: tuple[Stmt, ...]


class Pattern(Node):
    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class LiteralPattern(Pattern):
    """A string, number, bool or None."""

    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True, eq=False)
class WildcardPattern(Pattern):
    """`_`."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordPattern(Pattern):
    """`T(a, b)`, `T(x=a)`, `T()`.  A target `_` binds nothing."""

    type: Expr
    positional: tuple[Identifier, ...]
    named: tuple[tuple[Identifier, Identifier], ...]


@dataclass(frozen=True, slots=True, eq=False)
class RoleBlock(Stmt):
    """`system:`, `user:`, `assistant:` or `raw:`; the one-line form has one statement."""

    role: str
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Fork(Stmt):
    """`fork x in xs with option=value:` with its `join`.

    Exactly one of `iterable` and `arms` is given: the form over a list has `targets`, `iterable` and `body`, the form with
    named arms has `arms`.
    """

    targets: tuple[Identifier, ...]
    iterable: Expr | None
    options: tuple[Keyword, ...]
    body: tuple[Stmt, ...]
    arms: tuple[Arm, ...]
    join: Join | None
    """None where `join` is missing, which the checker reports."""


@dataclass(frozen=True, slots=True, eq=False)
class Arm(Node):
    """`branch name:`."""

    name: Identifier
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Join(Node):
    exports: tuple[Export, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Export(Node):
    """`value as target`: `value` is a `Name`, `Here`, or with named arms an `Attribute` of the arm's name.

    `join x` without `as` has `target` None and keeps the name.
    """

    value: Expr
    target: Identifier | None


@dataclass(frozen=True, slots=True, eq=False)
class Resume(Stmt):
    context: Expr


# ------------------------------------------------------------------ top level


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
    """An item whose body did not parse, kept so that the names of its header stay known; `kind` as its keyword says."""

    kind: str
    name: Identifier | None


@dataclass(frozen=True, slots=True, eq=False)
class File(Node):
    path: str
    items: tuple[Item, ...]


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below, in the order written."""
    for f in fields(node):
        yield from _nodes(getattr(node, f.name))


def _nodes(value: object) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes(item)


def walk(node: Node) -> Iterator[Node]:
    """`node` and all nodes below it, parents first."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(list(children(current))))
