"""Habits from Python and from C that get their own message, with the `.lmp` spelling.

    x++              E0103  `++` is not an operator           help: write `x += 1`
    class A:         E0102  there are no classes              help: a record type is `type A:` …
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lmc.parser.failure import Failure


@dataclass(frozen=True, slots=True)
class Finding:
    """A diagnostic whose place still counts in the masked text."""

    code: str
    message: str
    place: tuple[int, int]
    label: str
    help: str


def _statement(failure: Failure) -> Finding | None:
    """A line that begins with a statement of Python."""
    known = _STATEMENTS.get(failure.first)
    if known is None or failure.second in ("=", ".", ",", ")") or failure.index > 3 and failure.first != "async":
        return None
    if failure.second == "(":
        return None
    if failure.first == "with" and failure.found is None:
        return None
    message, help = known
    return Finding("E0102", message, (failure.pieces[0].start, failure.pieces[0].end), "not in this language", help)


_STATEMENTS = {
    "class": ("there are no classes", "a record is `type Name:` with its fields below; what acts on it is a `def`"),
    "with": ("there is no `with` statement",
             "role blocks and `fork` open and close what they need; `with` gives options to a `fork`"),
    "async": ("there is no `async`", "write a plain `def`: independent calls run side by side by themselves"),
    "await": ("there is no `await`", "call the function: a value is waited for where it is used"),
    "raise": ("there is no `raise`", 'write `fail("what went wrong")`'),
    "del": ("there is no `del`", "names go with their function; values never change"),
    "global": ("there is no `global`", "constants can be read everywhere; pass and return what changes"),
    "nonlocal": ("there is no `nonlocal`", "pass and return what changes"),
    "yield": ("there is no `yield`", "collect the values in a list and return it"),
    "finally": ("there is no `finally`", "`try:` has one `except Error as e:`; a context is restored by itself"),
    "print": ("`print` is a function", "write `print(…)`"),
    "let": ("there is no `let`", "write `name = value`"),
    "var": ("there is no `var`", "write `name = value`"),
    "const": ("there is no `const`", "write `NAME = value` at the top level"),
    "function": ("there is no `function`", "write `def name(parameter: type) -> type:`"),
    "fn": ("there is no `fn`", "write `def name(parameter: type) -> type:`"),
    "switch": ("there is no `switch`", "write `match value:` with `case` lines"),
    "elseif": ("there is no `elseif`", "write `elif`"),
}


def _else_if(failure: Failure) -> Finding | None:
    if failure.first != "else" or failure.second != "if":
        return None
    return Finding("E0102", "`else if` is one word", (failure.pieces[0].start, failure.pieces[1].end), "two words",
                   "write `elif`")


def _decorator(failure: Failure) -> Finding | None:
    if failure.first != "@":
        return None
    return Finding("E0102", "there are no decorators", (failure.pieces[0].start, failure.line_end), "not in this language",
                   "call the function where you need it")


def _value(failure: Failure) -> Finding | None:
    """A `lambda` or an `await` within a line."""
    for piece in (failure.before, failure.found):
        if piece is not None and piece.text == "lambda":
            return Finding("E0102", "there is no `lambda`", (piece.start, piece.end), "functions are not values",
                           "write a `def`, or a comprehension `[f(x) for x in xs]`")
        if piece is not None and piece.text == "await":
            return Finding("E0102", _STATEMENTS["await"][0], (piece.start, piece.end), "not in this language",
                           _STATEMENTS["await"][1])
    return None


def _python_import(failure: Failure) -> Finding | None:
    if failure.first not in ("import", "from") or not failure.at_top or failure.index != 1 or failure.found is None:
        return None
    name = failure.found.text
    if failure.first == "import":
        help = f'a file is imported as `import "{name}.lmp" as {name}`; Python comes in by `extern def`'
    else:
        help = f'names come from a file: `from "{name}.lmp" import a, b`; Python comes in by `extern def`'
    return Finding("E0107", "an import names a file, in quotes", (failure.found.start, failure.found.end), "expected a string",
                   help)


def _import_alias(failure: Failure) -> Finding | None:
    if failure.first != "import" or not failure.at_top or failure.expected != {"AS"}:
        return None
    end = failure.pieces[-1].end
    return Finding("E0107", "an import needs a name", (end, end + 1), "expected `as name`", 'write `import "lib/x.lmp" as x`')


def _walrus(failure: Failure) -> Finding | None:
    at = failure.masked.find(":=", max(failure.offset - 1, failure.line_start), failure.offset + 2)
    if at < 0:
        return None
    return Finding("E0114", "`:=` binds a name only as the whole of a hole", (at, at + 2), "not a hole's first name",
                   "write `name = value` on a line of its own, or `${name := gen(…)}` in a text")


def _operator(failure: Failure) -> Finding | None:
    """An operator of another language at the place, or one that ends there."""
    for piece in (failure.found, failure.before):
        if piece is not None and piece.text in _OPERATORS:
            message, help = _OPERATORS[piece.text]
            return Finding("E0103", message, (piece.start, piece.end), "not an operator here", help)
    return None


_OPERATORS = {
    "++": ("`++` is not an operator", "write `x += 1`"),
    "--": ("`--` is not an operator", "write `x -= 1`"),
    "&&": ("`&&` is written `and`", "write `a and b`"),
    "||": ("`||` is written `or`", "write `a or b`"),
    "!": ("`!` is written `not`", "write `not x`"),
    "===": ("`===` is written `==`", "write `a == b`"),
    "!==": ("`!==` is written `!=`", "write `a != b`"),
    "<>": ("`<>` is written `!=`", "write `a != b`"),
    "=>": ("`=>` is not an operator", "a result type is written `->`; at least is `>=`"),
    "<<": ("`<<` is not an operator", "there are no bit operations"),
    ">>": ("`>>` is not an operator", "there are no bit operations"),
    "&": ("`&` is not an operator", "write `and`; there are no bit operations"),
    "^": ("`^` is not an operator", "a power is `**`; there are no bit operations"),
    "~": ("`~` is not an operator", "there are no bit operations"),
    "?": ("`?` is not an operator", "write `a if condition else b`; an optional type is `T | None`"),
    ";": ("`;` does not end a statement", "write one statement a line"),
    "@": ("`@` is not an operator", "there are no decorators and no matrices"),
    "`": ("a backquote opens nothing", 'strings are written "…"'),
    "…": ("`…` is not code", "write what stands for it, or `pass`"),
    "\\": ("a backslash outside a string", "it joins lines only at the very end of a line; inside brackets no `\\` is needed"),
}


def _ellipsis(failure: Failure) -> Finding | None:
    if failure.masked[failure.offset - 2 : failure.offset + 3].count("...") == 0:
        return None
    at = failure.masked.find("...", max(0, failure.offset - 2))
    return Finding("E0102", "`...` is not a statement", (at, at + 3), "not in this language",
                   "write `pass` for an empty block; an `extern def` needs none")


def _star_argument(failure: Failure) -> Finding | None:
    if failure.found is None or failure.found.text not in ("*",
                                                           "**") or failure.before is None or failure.before.text not in ("(",
                                                                                                                          ",",
                                                                                                                          "["):
        return None
    return Finding("E0102", f"there is no `{failure.found.text}` for arguments", (failure.found.start, failure.found.end),
                   "arguments are written out", "name each argument; pass a list as one argument")


def _number(failure: Failure) -> Finding | None:
    """`1.`, `.5` and `5x`."""
    found, before = failure.found, failure.before
    dot = found if found and found.text == "." else before if before and before.text == "." else None
    if dot is not None:
        ahead = failure.masked[dot.end : dot.end + 1]
        behind = failure.masked[dot.start - 1 : dot.start]
        if ahead.isdigit() and not _is_name(behind):
            return Finding("E0014", "a number begins with a digit", (dot.start, dot.end), "a digit is missing before this",
                           f"write `0.{_digits(failure.masked[dot.end : dot.end + 20])}`")
        if behind.isdigit() and ahead.isdigit():
            return Finding("E0014", "a number with two points", (dot.start, dot.end), "the second point",
                           "a number has one point; a range is `1..5`")
        if behind.isdigit():
            return Finding("E0014", "a number ends with a digit", (dot.start, dot.end), "a digit is missing after this",
                           "write `1.0`; a range is `1..5`")
    if found and before and found.start == before.end or found and found.text[0].isdigit() and not found.text.isdigit():
        return _glued(failure)
    return None


def _glued(failure: Failure) -> Finding | None:
    """`5x`: a number that runs into a name."""
    piece = failure.found
    assert piece is not None
    text = piece.text
    if not text[0].isdigit() or all(c.isdigit() or c in "._eE" for c in text):
        return None
    kind = "numbers are decimal" if text[:2].lower() in ("0x", "0b", "0o") else "a name cannot begin with a digit"
    return Finding("E0014", f"`{text}` is neither a number nor a name", (piece.start, piece.end), kind,
                   "write the number in decimal, or put an operator between number and name")


def _digits(text: str) -> str:
    return text[: next((i for i, c in enumerate(text) if not c.isdigit()), len(text))]


def _is_name(char: str) -> bool:
    return char.isalnum() or char in '_)]}"'


def _guard(failure: Failure) -> Finding | None:
    if failure.first != "case" or failure.found is None or failure.found.text != "if":
        return None
    return Finding("E0102", "a `case` has no guard", (failure.found.start, failure.found.end), "`if` cannot stand here",
                   "put the `if` inside the case's block")


HABITS: tuple[Callable[[Failure], Finding | None], ...] = (
    _else_if, _decorator, _statement, _value, _python_import, _import_alias, _walrus, _ellipsis, _operator, _star_argument,
    _number, _guard,
)
