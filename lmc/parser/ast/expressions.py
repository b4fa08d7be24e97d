"""Expressions, those that stand for types included: `A | B` is a `Binary`, `1..5` a `Binary` with `..`, `list[T]` an `Index`."""

from __future__ import annotations

from dataclasses import dataclass

from lmc.parser.ast.node import Identifier, Node


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


@dataclass(frozen=True, slots=True, eq=False)
class BrokenExpr(Expr):
    """An expression that was reported when it was read: its parts are looked at, and whatever is done with it is accepted."""

    parts: tuple[Expr, ...]
