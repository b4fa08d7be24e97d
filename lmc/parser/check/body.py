"""One function, test or constant while it is checked: its scopes, its flow, where in the conversation it is.

The rules are functions that take a `Body` first and live in one file per kind (expressions, calls, statements, forks …).  Those
files would need one another in a circle; instead a `Body` is given the two entrances, `Rules`, and everything goes through
`infer`, `expect` and `block`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lmc.parser import ast
from lmc.parser.check.facts import Facts
from lmc.parser.check.flow import Flow, Path, Turns
from lmc.parser.check.model import UNKNOWN, ConstSymbol, FunctionSymbol, GenCall, LocalKind, LocalSymbol, PartKind
from lmc.parser.check.relations import (
    assignable, assignable_inside, fits_literal, is_int, known, needs_conversion, strip_optional, type_text,
)
from lmc.parser.check.scope import FileScope
from lmc.parser.check.suggest import nearest
from lmc.types import FLOAT, NONE, IntT, ListT, LiteralT, StrT, Type, base_type


@dataclass(frozen=True, slots=True)
class Rules:
    """`infer` gives the type of an expression, with the type hoped for; `block` checks statements."""

    infer: Callable[[Body, ast.Expr, Type | None], Type]
    block: Callable[[Body, tuple[ast.Stmt, ...]], None]


class Scope:
    """Names bound in a function, branch or comprehension."""

    __slots__ = ("names",)

    def __init__(self) -> None:
        self.names: dict[str, LocalSymbol] = {}


class Loop:
    """A loop around the statement being checked: the states at its breaks."""

    __slots__ = ("breaks",)

    def __init__(self) -> None:
        self.breaks: list[Flow] = []


class Body:
    """The state.

    role          role of the block being checked, None outside; in a `text_part` the caller has a block open
    result        what `return` must give; None in a test
    widened       plain types that names need, found in an earlier attempt (`functions.check_function`)
    annotated     names whose type was written
    outer_names   names of the file that were read here
    branch_names  names that were bound in a branch that is over, for the message when one is used
    all_names     all names that are bound anywhere in the body
    unassigned    names already reported as used without a value
    retyped       names reported as given values of two types: which one was meant nobody knows
    placed        texts and calls that stand where text is prompt and where the model may be asked
    """

    __slots__ = (
        "facts", "file", "rules", "function", "result", "has_context", "scopes", "flow", "role", "loops", "in_fork", "widened",
        "annotated", "outer_names", "branch_names", "all_names", "placed", "unassigned",
        "retyped",
    )

    def __init__(self, facts: Facts, file: FileScope, rules: Rules, function: FunctionSymbol | None = None,
                 result: Type | None = None, *, has_context: bool = False):
        self.facts, self.file, self.rules, self.function, self.result = facts, file, rules, function, result
        self.has_context = has_context
        self.scopes = [Scope()]
        self.flow = Flow(set(), {}, Turns.UNKNOWN if function is not None and function.part else Turns.EMPTY)
        self.role: str | None = None
        self.loops: list[Loop] = []
        self.in_fork = False
        self.widened: dict[str, Type] = {}
        self.annotated: set[str] = set()
        self.outer_names: set[str] = set()
        self.branch_names: dict[str, ast.Node] = {}
        self.all_names: set[str] = set()
        self.placed: set[ast.Expr] = set()
        self.unassigned: set[str] = set()
        self.retyped: set[LocalSymbol] = set()

    @property
    def text_part(self) -> bool:
        return self.function is not None and self.function.part is PartKind.TEXT

    # ------------------------------------------------------------ expressions

    def infer(self, expr: ast.Expr, hint: Type | None = None) -> Type:
        """The type of `expr`; `hint` is the type wanted where it stands, and is not enforced."""
        found = self.rules.infer(self, expr, hint)
        self.facts.expr_types[expr] = found
        return found

    def expect(self, expr: ast.Expr, wanted: Type, what: str, code: str = "E0301") -> Type:
        """The type of `expr`, which must be a `wanted`; `what` names the place: "argument `n`"."""
        found = self.infer(expr, wanted)
        if not assignable(found, wanted) and not self._constant_fits(expr, wanted):
            self.facts.error(code, f"{what} must be `{type_text(wanted)}`, found `{_found(found, wanted, expr)}`", expr,
                             f"this is `{type_text(found)}`", mismatch_help(found, wanted, expr))
            return UNKNOWN
        if needs_conversion(found, wanted):
            self.convert(expr)
        return found

    def _constant_fits(self, expr: ast.Expr, wanted: Type) -> bool:
        """Whether `expr` names a constant whose value fits: constants stand for their values."""
        symbol = self.facts.symbols.get(expr)
        return isinstance(symbol, ConstSymbol) and fits_literal(self.facts.constants.get(symbol), wanted)

    def convert(self, expr: ast.Expr) -> None:
        """An int stands where a float is wanted.  What the model writes stays what it is: its text is in the conversation."""
        call = self.facts.calls.get(expr) if isinstance(expr, ast.Call) else None
        if isinstance(call, GenCall):
            self.facts.error("E0301", "this generates an `int`, and a `float` is wanted", expr, "",
                             "write `gen(float, …)`, or bind it to a name of its own and use that")
        else:
            self.facts.conversions.add(expr)

    def block(self, statements: tuple[ast.Stmt, ...]) -> None:
        self.rules.block(self, statements)

    # ------------------------------------------------------------------ names

    def find(self, name: str) -> LocalSymbol | None:
        return next((s.names[name] for s in reversed(self.scopes) if name in s.names), None)

    def bind(self, node: ast.Node, name: str, type: Type, kind: LocalKind) -> LocalSymbol:
        """Give `name` a value of `type` here; its symbol is made where it is new in the function or branch."""
        symbol = self.find(name)
        if symbol is None:
            plain = self.widened.get(name)
            fits = plain is not None and name not in self.annotated and assignable(type, plain)
            symbol = self.declare(node, name, plain if fits else type, kind)
        elif known(symbol.type) and not (assignable if kind is LocalKind.VARIABLE else assignable_inside)(type, symbol.type):
            self._retype(node, symbol, type)
        self.facts.symbols[node] = symbol
        self.flow.assign(symbol)
        self.narrow_on_assignment(symbol, type)
        return symbol

    def declare(self, node: ast.Node, name: str, type: Type, kind: LocalKind) -> LocalSymbol:
        """A new symbol in the innermost scope."""
        symbol = LocalSymbol(name, node.span, type, kind)
        self.scopes[-1].names[name] = symbol
        self.facts.symbols[node] = symbol
        return symbol

    def narrow_on_assignment(self, symbol: LocalSymbol, type: Type) -> None:
        """After `x = "a"` an `x: str | None` is known to be a str."""
        if known(type) and strip_optional(symbol.type) != symbol.type and strip_optional(type) == type:
            inner = strip_optional(symbol.type)
            self.flow.narrowed[(symbol,)] = inner if assignable(type, inner) else type

    def _retype(self, node: ast.Node, symbol: LocalSymbol, type: Type) -> None:
        plain = base_type(symbol.type)
        fixed = symbol.kind is LocalKind.PARAMETER or symbol.name in self.annotated
        if not fixed and plain != symbol.type and assignable(type, plain):
            # The first value was narrower than the name needs (`1..5`, then any int): check again with the plain type.
            self.widened[symbol.name] = plain
            return
        if symbol not in self.retyped:
            self.facts.error(
                "E0307", f"`{symbol.name}` is `{type_text(symbol.type)}`, and here it would become `{type_text(type)}`", node,
                f"this is `{type_text(type)}`", retype_help(symbol, type), (f"it got its type at {symbol.span}",))
            self.retyped.add(symbol)

    def path(self, expr: ast.Expr) -> Path | None:
        """`x` or `x.a.b` as something that can be narrowed."""
        if isinstance(expr, ast.Name):
            symbol = self.find(expr.text)
            return (symbol,) if symbol is not None else None
        if isinstance(expr, ast.Attribute):
            path = self.path(expr.value)
            return (*path, expr.name.text) if path is not None else None
        return None

    # ----------------------------------------------------------------- scopes

    @contextmanager
    def scope(self) -> Iterator[Scope]:
        """Names first bound inside are gone afterwards."""
        self.scopes.append(Scope())
        yield self.scopes[-1]
        gone = self.scopes.pop()
        self.flow.assigned -= set(gone.names.values())

    @contextmanager
    def narrowed(self, facts: dict[Path, Type]) -> Iterator[None]:
        """What a condition has established, for the expressions it guards."""
        before = dict(self.flow.narrowed)
        self.flow.narrow(facts)
        yield
        self.flow.narrowed = before


def _found(found: Type, wanted: Type, expr: ast.Expr) -> str:
    """The value where it is written and of the right base type, else its type."""
    value = _written(expr)
    return type_text(LiteralT((value,))) if value is not None and base_type(strip_optional(wanted)) == found else type_text(found)


def _written(expr: ast.Expr) -> str | int | bool | None:
    if isinstance(expr, ast.Text):
        return expr.plain
    return expr.value if isinstance(expr, ast.Constant) and isinstance(expr.value, int) else None


def mismatch_help(found: Type, wanted: Type, expr: ast.Expr) -> str | None:
    """What to do where a value has the wrong type."""
    wanted = strip_optional(wanted)
    value = _written(expr)
    if isinstance(wanted, LiteralT) and isinstance(value, str):
        near = nearest(value, [v for v in wanted.values if isinstance(v, str)])
        return f'did you mean `"{near}"`?' if near else None
    if isinstance(value, str) and type_text(wanted) in ("int", "float") and re.fullmatch(r"[-+]?\d+(\.\d+)?", value):
        return f"write `{value}` without quotes"
    if value is not None:
        return f'write `"{value}"`' if isinstance(base_type(wanted), StrT) and not isinstance(value, str) else None
    if found == NONE:
        return f"where there may be no value the type is `{type_text(wanted)} | None`"
    if isinstance(found, ListT) and isinstance(wanted, ListT) and is_int(found.element) and wanted.element == FLOAT:
        return "write `[float(x) for x in xs]`"
    if strip_optional(found) != found and assignable(strip_optional(found), wanted):
        return "it may be None: test it first, `if x is not None:`"
    if isinstance(found, StrT) and (number := {"int": "int", "float": "float"}.get(type_text(wanted))):
        return f"write `{number}(…)`, which fails where the text is no number"
    if isinstance(base_type(found), IntT) and type_text(wanted) == "str":
        return "write `str(…)`, or put it into text: `\"${…}\"`"
    if base_type(wanted) == found and found != wanted:
        declared = type_text(wanted)
        return f"not every `{type_text(found)}` is one; declare it `{declared}` where it comes from, or widen what is expected"
    return None


def retype_help(symbol: LocalSymbol, type: Type) -> str:
    """A name has one type per function."""
    if isinstance(base_type(symbol.type), IntT) and type_text(type) == "float":
        return f"start it as a float: `{symbol.name} = 0.0`"
    if type_text(symbol.type) == "None":
        return f"give it a type where it begins: `{symbol.name}: {type_text(type)} | None = None`"
    return "a name keeps one type in a function; use another name"
