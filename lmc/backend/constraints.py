"""The automata of a program's constrained generations, each built once.

A generation is constrained by its `regex`, its `schema`, its `grammar`, or the type of its value unless that is plain `str`.  All that cannot be
built is reported together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lmc.diagnostics import CompileError, Diagnostic
from lmc.ir.ops import Gen
from lmc.regex.build import compile_regex
from lmc.regex.dfa import ByteDfa
from lmc.regex.grammar import LARK, Grammar, check_grammar
from lmc.regex.schema import compile_type, schema_constraint
from lmc.types import STR, Type


@dataclass(slots=True)
class ConstraintTable:
    """Automata in order of first use."""

    _found: dict[tuple[str, str | Type], int | None] = field(default_factory=dict)
    _automata: list[ByteDfa | Grammar] = field(default_factory=list)
    _errors: list[Diagnostic] = field(default_factory=list)

    @property
    def automata(self) -> tuple[ByteDfa | Grammar, ...]:
        return tuple(self._automata)

    def index(self, gen: Gen) -> int | None:
        """The number of the automaton that the value must match; None where it is free or the automaton cannot be built."""
        kind, constraint, build = _constraint(gen)
        if constraint == STR:
            return None
        key = (kind, constraint)
        if key not in self._found:
            self._found[key] = self._build(gen, kind, constraint, build)
        return self._found[key]

    def _build(self, gen: Gen, kind: str, constraint: str | Type, build: Callable[..., ByteDfa | Grammar]) -> int | None:
        try:
            self._automata.append(build(constraint))
        except ValueError as error:
            message = f"no value can be generated for this {kind}: {error}"
            help = "see `lmc explain E0610` for what a constraint may hold"
            self._errors.append(Diagnostic("E0610", message, gen.span, help=help))
            return None
        return len(self._automata) - 1

    def raise_errors(self, sources: dict[str, str]) -> None:
        if self._errors:
            raise CompileError(self._errors, sources)


def _lark(text: str) -> Grammar:
    grammar = Grammar(LARK, text)
    check_grammar(grammar)
    return grammar


def _constraint(gen: Gen) -> tuple[str, str | Type, Callable[..., ByteDfa | Grammar]]:
    if gen.regex is not None:
        return "regex", gen.regex, compile_regex
    if gen.schema is not None:
        return "schema", gen.schema, schema_constraint
    if gen.grammar is not None:
        return "grammar", gen.grammar, _lark
    return "type", gen.results[1].type, compile_type
