"""What lowering knows while it writes one function: the block being written, the value of each name, the current context.

A name in `.lmp` may be assigned many times; in the IR each assignment is a new value, and `names` says which one a name means
here. The current conversation is the name `HERE`.  Where control flow meets again, `control.py` compares what the names meant on
each way.  This file knows no syntax.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any

from lmc.diagnostics import CompileError, Diagnostic, Span
from lmc.ir.builder import Builder
from lmc.ir.core import Op, Operand, Value
from lmc.ir.ops import Role
from lmc.parser.check.model import Checked, FunctionSymbol, LocalSymbol
from lmc.types import CONTEXT, ListT, Type


class CurrentContext(Enum):
    """The name under which the current context is kept."""

    HERE = "here"


HERE = CurrentContext.HERE
Key = LocalSymbol | CurrentContext

#: Deeper blocks are refused: every later stage walks them recursively.
MAX_DEPTH = 100
#: Chains of more alternatives than this are cut in halves, which costs tests and saves depth.
LONG = 16


@dataclass(frozen=True, slots=True)
class Variant:
    """A part as one caller needs it: the role of the turn it writes into (text parts), and the options of a `fork … with` around
    the call, which it takes as further parameters."""

    part: FunctionSymbol
    role: Role | None
    options: tuple[tuple[str, Type], ...]

    @property
    def name(self) -> str:
        """`greet`, `greet:user`, `greet:user+temperature`, `greet+stop.list` where the option is a list."""
        role = f":{self.role.value}" if self.role else ""
        lists = {name: ".list" if isinstance(type, ListT) else "" for name, type in self.options}
        return self.part.qualified + role + "".join(f"+{name}{suffix}" for name, suffix in lists.items())


class Frame:
    """One function being lowered.

    checked   the program's facts
    wanted    part variants that were called, in order of first call (shared by all functions)
    builder   the block that ops are added to
    names     what each name means here
    role      of the role block around, None outside
    options   defaults of the `fork … with` around, for generations
    loops     carried names of the loops around, innermost last
    kind      `def`, `part` or `test`
    """

    __slots__ = ("checked", "wanted", "builder", "names", "role", "options", "loops", "kind", "result", "_sites", "_depth")

    def __init__(self, checked: Checked, wanted: dict[Variant, None], kind: str, result: Type):
        self.checked, self.wanted, self.kind, self.result = checked, wanted, kind, result
        self.builder = Builder()
        self.names: dict[Key, Operand] = {}
        self.role: Role | None = None
        self.options: dict[str, Operand] = {}
        self.loops: list[tuple[Key, ...]] = []
        self._sites = 0
        self._depth = 0

    # ------------------------------------------------------------ writing ops

    @property
    def closed(self) -> bool:
        """Whether what follows here can never run."""
        return self.builder.closed

    def add(self, op_class: type[Op], span: Span | None, results: Iterable[Value] = (), /, **fields: Any) -> tuple[Value, ...]:
        """Append an op.  After a terminator it is dropped: nothing there can run."""
        if self.closed:
            return tuple(results)
        return self.builder.add(op_class, span, results, **fields)

    def value(self, op_class: type[Op], span: Span | None, type: Type, name: str = "", /, **fields: Any) -> Value:
        return self.add(op_class, span, (Value(type, name),), **fields)[0]

    def site(self) -> str:
        """A new site: an ordinal in the function, in program order."""
        site = str(self._sites)
        self._sites += 1
        return site

    # ---------------------------------------------------------------- context

    @property
    def context(self) -> Operand:
        return self.names[HERE]

    @context.setter
    def context(self, context: Operand) -> None:
        self.names[HERE] = context

    # ---------------------------------------------------------- inner regions

    @contextmanager
    def region(self, args: Iterable[Value], span: Span) -> Iterator[Builder]:
        """Write a nested block: what names mean inside is forgotten after it."""
        outer, names = self.builder, self.names
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise CompileError(_too_deep(span), self.checked.sources)
        self.builder, self.names = Builder(args), dict(names)
        try:
            yield self.builder
        finally:
            self.builder, self.names = outer, names
            self._depth -= 1

    @contextmanager
    def branch(self, options: Mapping[str, Operand]) -> Iterator[None]:
        """Write what runs as a branch of its own: it is in none of the loops around, and has further default options."""
        loops, outer = self.loops, self.options
        self.loops, self.options = [], {**outer, **options}
        try:
            yield
        finally:
            self.loops, self.options = loops, outer

    @contextmanager
    def turn(self, role: Role) -> Iterator[None]:
        outer, self.role = self.role, role
        try:
            yield
        finally:
            self.role = outer


def _too_deep(span: Span) -> Diagnostic:
    return Diagnostic("E0015", f"blocks are nested deeper than {MAX_DEPTH} levels", span, "this is one level too many",
                      "move the inner blocks into a `def`; an `elif` is two levels for what stands inside it, "
                      "a comparison of a chain one")


def key_type(key: Key) -> Type:
    """The static type of a name."""
    return CONTEXT if key is HERE else key.type


def key_hint(key: Key) -> str:
    """How a value of this name is called in the text form."""
    return "c" if key is HERE else key.name
