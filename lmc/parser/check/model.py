"""What the checker knows about a program, as tables keyed by AST node; lowering reads these and never looks a name up itself.

    checked = check("judge.lmp")
    checked.symbols[name]        # what a Name, Identifier or `module.name` Attribute refers to
    checked.expr_types[expr]     # its static type
    checked.calls[call]          # what a Call is, its arguments matched to parameters

If `checked.errors` is empty: every value expression that is evaluated has an entry in `expr_types`, every name in `symbols`,
every `ast.Call` that is evaluated in `calls`, every `ast.Fork` in `forks`, and no type contains `UnknownT`.  With errors the
tables are partial.
Type expressions (annotations, `gen(Note)`, `list[str]`, `schema(Action)`) are in `types_of` and not in `expr_types`.
This file knows nothing of how these facts are found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from lmc.diagnostics import Diagnostic, Severity, Span
from lmc.parser import ast
from lmc.types import RecordT, Type, UnionT


@dataclass(frozen=True, slots=True)
class UnknownT(Type):
    """The type of what has already been reported as wrong; compatible with everything, so that one mistake is one error."""


UNKNOWN = UnknownT()


# -------------------------------------------------------------------- symbols


@dataclass(frozen=True, slots=True, eq=False)
class Symbol:
    """Something a name refers to.  Compared by identity.  `span` is where it was declared; None for what is built in."""

    name: str
    span: Span | None


class LocalKind(Enum):
    PARAMETER = "parameter"
    VARIABLE = "variable"
    LOOP = "loop variable"
    PATTERN = "pattern variable"
    JOINED = "joined name"
    ERROR = "error"
    """The name of `except Error as name`."""


@dataclass(frozen=True, slots=True, eq=False)
class LocalSymbol(Symbol):
    """A parameter or variable; one symbol for each name and scope.

    Scopes are: a function, a branch of a fork (for names first bound in it), a comprehension.  A branch that assigns a name bound
    outside keeps the outer symbol, but the new value is the branch's own: after the join the name has its old value.
    `type` is the static type; `expr_types` of one use may be narrower (inside `case`, after `is not None`).
    """

    type: Type
    kind: LocalKind


@dataclass(frozen=True, slots=True, eq=False)
class ConstSymbol(Symbol):
    """A constant of a file.  Its value is in `Checked.constants`."""

    type: Type
    qualified: str
    value: ast.Expr


@dataclass(frozen=True, slots=True, eq=False)
class TypeSymbol(Symbol):
    """A `type`, or a built-in type name (`str`, `Error`) with `definition` None.

    `type` is a `RecordT` or `UnionT` named `qualified`, or whatever an alias stands for.
    """

    type: Type
    qualified: str
    definition: ast.RecordDef | ast.TypeAlias | None


@dataclass(frozen=True, slots=True)
class ParamInfo:
    """A parameter.  `default` is the constant expression behind `=`; its value is in `Checked.values`."""

    name: str
    type: Type
    default: ast.Expr | None
    span: Span


class PartKind(Enum):
    """A part either opens turns itself or writes into the turn that is open where it is called."""

    TURN = "turn"
    TEXT = "text"


@dataclass(frozen=True, slots=True, eq=False)
class FunctionSymbol(Symbol):
    """A `def` or `part`.  `qualified` is its name in the IR.  `result` is `NONE` where it returns nothing.

    `part` is None for a `def`.  Of a text part `Checked.part_roles` has the roles in which it is called.
    `uses_context` of a `def`: it has role blocks, `here`, `resume`, a fork or a turn part somewhere, so it starts an empty
    context.
    """

    qualified: str
    params: tuple[ParamInfo, ...]
    result: Type
    part: PartKind | None
    uses_context: bool
    definition: ast.FunctionDef


@dataclass(frozen=True, slots=True, eq=False)
class ExternSymbol(Symbol):
    qualified: str
    params: tuple[ParamInfo, ...]
    result: Type
    pure: bool
    definition: ast.ExternDef


@dataclass(frozen=True, slots=True, eq=False)
class BuiltinSymbol(Symbol):
    """A built-in function, by its name."""


@dataclass(frozen=True, slots=True, eq=False)
class ModuleSymbol(Symbol):
    """What `import "path" as name` binds; `path` is the key of the file in `Checked.sources`."""

    path: str


# ---------------------------------------------------------------------- calls


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A `def` or `part`; one argument for each parameter, None where the default is taken."""

    target: FunctionSymbol
    args: tuple[ast.Expr | None, ...]


@dataclass(frozen=True, slots=True)
class ExternCall:
    """As `FunctionCall`."""

    target: ExternSymbol
    args: tuple[ast.Expr | None, ...]


@dataclass(frozen=True, slots=True)
class RecordCall:
    """`Search(query=…)`: one argument for each field, None where the field's default is taken."""

    type: RecordT
    args: tuple[ast.Expr | None, ...]


@dataclass(frozen=True, slots=True)
class BuiltinCall:
    """A built-in function.  `args` are the value arguments in the order of the builtin's parameters; None: not given.

    `type` is the type argument of `schema(T)`, `fields(T)`; for `parse_json` the type to read (from its second argument or from
    where it stands); for `json(x)` the static type of `x`; else None.
    """

    name: str
    args: tuple[ast.Expr | None, ...]
    type: Type | None = None


@dataclass(frozen=True, slots=True)
class MethodCall:
    """`receiver.name(args)` on a string or dict; None: not given."""

    name: str
    receiver: ast.Expr
    args: tuple[ast.Expr | None, ...]


@dataclass(frozen=True, slots=True)
class GenCall:
    """`gen(T, option=…)`.  `options` has each option given, by name, `regex` and `schema` too; `regex` is its pattern."""

    type: Type
    options: Mapping[str, ast.Expr]
    regex: str | None = None


@dataclass(frozen=True, slots=True)
class SelectCall:
    """`select(options, method=…)`.  Exactly one of `choices` (the values of a literal type) and `options` (a list) is given."""

    type: Type
    choices: tuple[str | int | bool, ...] | None
    options: ast.Expr | None
    method: str


@dataclass(frozen=True, slots=True)
class ScoreCall:
    """`score(options)`, as `SelectCall`; its type is `list[Scored]`."""

    choices: tuple[str | int | bool, ...] | None
    options: ast.Expr | None


@dataclass(frozen=True, slots=True)
class ImageCall:
    """`image(value)`: the picture at the path, or in the data URL, that `value` gives.  It has no value."""

    value: ast.Expr


Callee = FunctionCall | ExternCall | RecordCall | BuiltinCall | MethodCall | GenCall | SelectCall | ScoreCall | ImageCall


# ----------------------------------------------------------- matches and forks


@dataclass(frozen=True, slots=True)
class RecordMatch:
    """A record pattern: the member it tests for and what it binds, as (field name, symbol)."""

    type: RecordT
    bindings: tuple[tuple[str, LocalSymbol], ...]


@dataclass(frozen=True, slots=True)
class MatchInfo:
    """`subject` is the static type of the subject.  `exhaustive`: a case always applies, so nothing falls through."""

    subject: Type
    exhaustive: bool


@dataclass(frozen=True, slots=True)
class ExportInfo:
    """One export of a join.  `source` is the branch's symbol, None for `here`; `arm` the index of its arm, None for a list fork.

    `target` is bound after the join, with the type of `source`, or a list of it for a list fork; where errors are collected it may
    be an `Error` instead.
    """

    source: LocalSymbol | None
    arm: int | None
    target: LocalSymbol


@dataclass(frozen=True, slots=True)
class ForkInfo:
    """`options` are the defaults of `with` for the gens in the branches; `collect` is `errors="collect"`."""

    element: Type | None
    options: Mapping[str, ast.Expr]
    exports: tuple[ExportInfo, ...]
    collect: bool = False


# ------------------------------------------------------------------ the whole


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """One file.  `module` is the prefix of its qualified names: "" for the root file, `lib.x` for `lib/x.lmp`."""

    path: str
    module: str
    file: ast.File
    constants: tuple[ConstSymbol, ...]
    types: tuple[RecordT | UnionT, ...]
    functions: tuple[FunctionSymbol, ...]
    externs: tuple[ExternSymbol, ...]
    tests: tuple[ast.TestDef, ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """A program and all that is known of it.

    files         imports before importers, the root last
    types_of      type of an annotation or type argument
    values        value of each constant expression: initialisers of constants, defaults of parameters and fields, config entries
                  (as `lmc.values` describes values)
    conversions   expressions of type int that stand where a float is wanted: the value is converted (`pure.call float`)
    part_roles    roles in which a text part is called, also through other text parts
    config        entries of the root file's `config:`, as JSON values
    """

    files: tuple[CheckedFile, ...]
    diagnostics: tuple[Diagnostic, ...]
    sources: Mapping[str, str]
    expr_types: Mapping[ast.Expr, Type]
    types_of: Mapping[ast.Expr, Type]
    symbols: Mapping[ast.Node, Symbol]
    calls: Mapping[ast.Call, Callee]
    matches: Mapping[ast.Match, MatchInfo]
    patterns: Mapping[ast.RecordPattern, RecordMatch]
    forks: Mapping[ast.Fork, ForkInfo]
    constants: Mapping[ConstSymbol, Any]
    values: Mapping[ast.Expr, Any]
    conversions: frozenset[ast.Expr]
    part_roles: Mapping[FunctionSymbol, frozenset[str]]
    config: Mapping[str, Any]

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.diagnostics if d.severity is Severity.ERROR)

    @property
    def root(self) -> CheckedFile:
        return self.files[-1]
