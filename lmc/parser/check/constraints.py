"""Regexes written in a program: they must parse, and the mistake is shown inside the string.

    error[E0601]: invalid regex: unbalanced parenthesis
    warning[W112]: `"-_` in this class is a range of 62 characters

What a regex means is `lmc/regex`; this file only finds the place.
"""

from __future__ import annotations

from lmc.diagnostics import Span
from lmc.parser import ast
from lmc.parser.check.facts import Facts
from lmc.regex.parse import RegexError, odd_ranges, parse_regex
from lmc.types import StrT


def check_regex(facts: Facts, expr: ast.Expr, pattern: str) -> bool:
    """Report where `pattern`, written as `expr`, is no regex that can be enforced."""
    try:
        parse_regex(pattern)
    except RegexError as error:
        facts.error("E0601", f"this regex cannot be used: {error.message}", _inside(expr, error.position, pattern), "",
                    "regexes are Python's without look-around and back-references, and match the whole text")
        return False
    for position, text, count in odd_ranges(pattern):
        facts.warn("W112", f"`{text}` in this class is a range of {count} characters", _inside(expr, position, pattern), "",
                   "put `-` last where it is meant itself; letters of both cases are `A-Za-z`")
    return True


def has_value(type: StrT) -> bool:
    """Whether any text fits a regex and lengths together."""
    # Building automata needs numpy, which most programs are checked without.
    from lmc.regex.schema import compile_type

    try:
        compile_type(type)
    except RegexError:
        return False
    return True


def _inside(expr: ast.Expr, position: int | None, pattern: str) -> Span:
    """The place of character `position` of the pattern, where the string is written on one line without escapes before it."""
    span = expr.span
    if position is None or not isinstance(expr, ast.Text) or not expr.parts or span.line != span.end_line or expr.block:
        return span
    start = expr.parts[0].span
    # A cooked string is as long as its source only where it has no escape; a raw one always is.
    if start.end_column - start.column != len(pattern) or start.line != start.end_line:
        return span
    column = start.column + min(position, len(pattern))
    return Span(span.file, span.line, column, span.line, column + 1)
