"""Constraints that no finite automaton holds: a context-free grammar, or a JSON Schema that is recursive.

    Grammar("lark", 'start: "(" start ")" | "x"')
    check_grammar(grammar)        # raises GrammarError where it is wrong, or the extra `lmc[grammar]` is not there

Its texts are matched by `llguidance` (`lmc.runtime.grammar`), which is imported only where there is such a constraint.
"""

from __future__ import annotations

import importlib.util
import json
import re
from dataclasses import dataclass

from lmc.regex.parse import RegexError

LARK, SCHEMA = "lark", "schema"
#: Characters of a grammar.
MAX_GRAMMAR = 1_000_000
# Masks are to hold every token that fits, also where the text can go one way only.
_ALL_TOKENS = '%llguidance {"no_forcing": true}\n'


class GrammarError(RegexError):
    """The grammar is wrong, or nothing is installed that reads it."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """`kind` is `lark` or `schema`; `source` is the grammar, or the schema as JSON text."""

    kind: str
    source: str


def check_grammar(grammar: Grammar) -> None:
    """Raises `GrammarError`: it cannot be read, asks for too much, or `llguidance` is not installed."""
    if len(grammar.source) > MAX_GRAMMAR:
        raise GrammarError(f"the grammar has more than {MAX_GRAMMAR:,} characters", 0)
    from llguidance import LLMatcher

    error = LLMatcher.validate_grammar(compiled_text(grammar))
    if error:
        raise GrammarError(first_line(error), 0)


def first_line(error: str) -> str:
    """What `llguidance` says, with the line as the grammar has it: one stands before it."""
    line = error.strip().splitlines()[0][:300]
    return re.sub(r"^(\d+)\((\d+)\)", lambda found: f"line {int(found[1]) - 1}, column {found[2]}", line)


def installed() -> bool:
    """Whether the extra is there."""
    return importlib.util.find_spec("llguidance") is not None


def compiled_text(grammar: Grammar) -> str:
    """What `llguidance` reads."""
    if not installed():
        raise GrammarError("grammars need `llguidance`, which is not installed: `pip install 'lmc[grammar]'`", 0)
    from llguidance import LLMatcher

    if grammar.kind == LARK:
        return LLMatcher.grammar_from_lark(_ALL_TOKENS + grammar.source)
    schema = json.loads(grammar.source)
    if isinstance(schema, dict):
        schema["x-guidance"] = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}
    return LLMatcher.grammar_from_lark(f"{_ALL_TOKENS}start: %json {json.dumps(schema)}")
