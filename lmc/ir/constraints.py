"""What the values of generations must match, and the automata made of it, each built once for a program.

    gen(1..5)  gen(1..5)  gen(regex=r"[1-5]")          automaton type "1..5"          0: both
                                                       automaton regex "[1-5]"        1: the arrays of 0

A generation is constrained by its `regex`, its `schema`, its `grammar`, or the type of its value unless that is plain `str`.  The
pass `fold_constraints` puts the automata into the module; what it has not seen is built when a program is emitted.  All that cannot
be built is reported together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from lmc.diagnostics import CompileError, Diagnostic, Span
from lmc.ir.core import Automaton
from lmc.ir.ops import Gen
from lmc.regex.build import compile_regex
from lmc.regex.dfa import ByteDfa
from lmc.regex.grammar import LARK, Grammar, check_grammar
from lmc.regex.schema import compile_type, schema_constraint
from lmc.type_text import parse_type
from lmc.types import STR, RecordT, Type, UnionT


class AutomatonTable:
    """Automata in order of first use; those of `known` need not be built again."""

    __slots__ = ("_known", "_found", "_by_digest", "_errors", "automata")

    def __init__(self, known: Iterable[Automaton] = ()):
        self._known = {(a.kind, a.source): a for a in known}
        self._found: dict[tuple[str, str], int | None] = {}
        self._by_digest: dict[str, ByteDfa] = {}
        self._errors: list[Diagnostic] = []
        self.automata: list[Automaton] = []

    def index(self, gen: Gen) -> int | None:
        """The number of the automaton that the value must match; None where it is free or the automaton cannot be built."""
        kind, constraint = constraint_of(gen)
        if constraint == STR:
            return None
        key = (kind, str(constraint))
        if key not in self._found:
            self._found[key] = self._add(*key, constraint, gen.span)
        return self._found[key]

    def raise_errors(self, sources: dict[str, str]) -> None:
        if self._errors:
            raise CompileError(self._errors, sources)

    def _add(self, kind: str, source: str, constraint: str | Type, span: Span | None) -> int | None:
        known = self._known.get((kind, source))
        try:
            built = known.built if known is not None else _BUILD[kind](constraint)
        except ValueError as error:
            message = f"no value can be generated for this {kind}: {error}"
            help = "see `lmc explain E0610` for what a constraint may hold"
            self._errors.append(Diagnostic("E0610", message, span, help=help))
            return None
        self.automata.append(Automaton(kind, source, self._shared(built)))
        return len(self.automata) - 1

    def _shared(self, built: ByteDfa | Grammar) -> ByteDfa | Grammar:
        """Equal automata of different sources hold the same arrays; the source stays each one's own, since it is shown."""
        if isinstance(built, Grammar):
            return built
        first = self._by_digest.setdefault(built.digest(), built)
        return replace(first, source=built.source)


def constraint_of(gen: Gen) -> tuple[str, str | Type]:
    """The kind of what a value must match, and its source; a type that is plain `str` is no constraint."""
    for kind in ("regex", "schema", "grammar"):
        if (source := getattr(gen, kind)) is not None:
            return kind, source
    return "type", gen.results[1].type


def build_automaton(kind: str, source: str, named: Mapping[str, RecordT | UnionT]) -> Automaton:
    """The automaton that the text form names.  Raises `ValueError`."""
    if kind not in _BUILD:
        raise ValueError(f"there is no constraint of the kind `{kind}`")
    return Automaton(kind, source, _BUILD[kind](parse_type(source, named) if kind == "type" else source))


def _lark(text: str) -> Grammar:
    grammar = Grammar(LARK, text)
    check_grammar(grammar)
    return grammar


_BUILD: Mapping[str, Callable[..., ByteDfa | Grammar]] = {
    "regex": compile_regex, "schema": schema_constraint, "grammar": _lark, "type": compile_type,
}
