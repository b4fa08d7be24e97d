"""Statements, and the patterns of `match`."""

from __future__ import annotations

from dataclasses import dataclass

from lmc.parser.ast.expressions import Expr, Keyword
from lmc.parser.ast.node import Identifier, Node


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
    condition: Expr
    then: tuple[Stmt, ...]
    elifs: tuple[Elif, ...]
    otherwise: tuple[Stmt, ...]

    @property
    def arms(self) -> tuple[If | Elif, ...]:
        """The `if` and its `elif`s: of the first whose condition holds, `then` runs."""
        return (self, *self.elifs)


@dataclass(frozen=True, slots=True, eq=False)
class Elif(Node):
    """Beside its `if` and not inside it: a chain is as long as one likes, and no nesting."""

    condition: Expr
    then: tuple[Stmt, ...]


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
class BrokenPattern(Pattern):
    """A bare name, which was reported when it was read; the name is known in the case."""

    name: Identifier


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
