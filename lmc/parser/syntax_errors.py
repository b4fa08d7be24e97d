"""Says what is wrong where the grammar stopped: one diagnostic for one failure.

The explanations stand in `RULES`, tried in order; the first that knows the failure speaks, the last always does.
Habits brought from Python and from C are in `habits.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from lmc.diagnostics import Diagnostic
from lmc.parser import words
from lmc.parser.failure import Failure, Piece
from lmc.parser.habits import HABITS, Finding
from lmc.parser.places import Places

_HEADERS = words.ROLES | frozenset("if elif else for while match case try except fork branch def part type test config".split())


def explain(failure: Failure, base: int, places: Places, *, hole: tuple[int, int] | None = None) -> Diagnostic:
    """The diagnostic of `failure`; the masked text begins at `base` of the file.  `hole` is where the hole stands that failed."""
    if hole is not None and not failure.pieces:
        return Diagnostic("E0117", "this hole is empty", places.span(*hole), "expected a value",
                          "write an expression, `${# … }` for a comment, or `\\${` for the characters themselves")
    rules = (*(_HOLE_RULES if hole else ()), *HABITS, *RULES)
    finding = next(found for rule in rules if (found := rule(failure)) is not None)
    start, end = finding.place
    return Diagnostic(finding.code, finding.message, places.span(base + start, base + end), finding.label, finding.help)


def follows_from(failure: Failure, broken: set[str]) -> bool:
    """Whether `failure` is only a clause of a statement whose line was reported; `broken` are the first words of such lines."""
    return _OWNERS.get(failure.first) in broken and _stray_clause(failure) is not None


_OWNERS = {"elif": "if", "else": "if", "except": "try", "case": "match", "branch": "fork", "join": "fork"}


def _end_of_line(failure: Failure) -> tuple[int, int]:
    last = failure.pieces[-1].end if failure.pieces else failure.line_end
    return last, last + 1


def _here(failure: Failure) -> tuple[int, int]:
    found = failure.found
    return (found.start, found.end) if found else _end_of_line(failure)


# --------------------------------------------------------------------- holes


def _format_spec(failure: Failure) -> Finding | None:
    found = failure.found
    if found is None or found.text not in (":", "!") or failure.opener or not failure.before:
        return None
    return Finding("E0118", f"`{found.text}` in a hole: there are no format specifications", (found.start, failure.line_end),
                   "a hole holds only an expression",
                   "compute the text in the expression, for instance `${round(x, 2)}` or `${str(x)}`")


def _hole_ends(failure: Failure) -> Finding | None:
    if failure.found is not None:
        return None
    before = failure.pieces[-1]
    return Finding("E0101", f"expected a value after `{before.text}`, found the end of the hole", _end_of_line(failure),
                   "a value is missing here", "write a name, a number, a string, a list or a call")


_HOLE_RULES = (_format_spec, _hole_ends)


# -------------------------------------------------------------------- blocks


def _unexpected_indent(failure: Failure) -> Finding | None:
    if failure.kind != "_INDENT":
        return None
    start = failure.pieces[0].start if failure.pieces else failure.line_start
    return Finding("E0017", "this line is indented, but no block begins here", (failure.line_start, start), "indented too far",
                   "indent it like the line above, or end the line above with `:`")


def _missing_block(failure: Failure) -> Finding | None:
    if failure.expected != {"_INDENT"}:
        return None
    what = f"`{failure.first}`" if failure.pieces else "this line"
    empty = "write its lines" if failure.first in ("type", "config", "match") else "write its statements, or `pass`,"
    return Finding("E0018", f"the block of {what} is empty", _end_of_line(failure), "expected an indented line below",
                   f"{empty} below, indented by four spaces")


def _missing_colon(failure: Failure) -> Finding | None:
    found = failure.found
    if "COLON" not in failure.expected or failure.first not in _HEADERS or failure.opener or failure.has_colon:
        return None
    if found is not None and found.text == "{":
        return Finding("E0104", "a block is indented, not put in braces", (found.start, found.end), "expected `:`",
                       f"end the `{failure.first}` line with `:` and indent the lines below it")
    if found is None:
        return Finding("E0104", f"expected `:` at the end of the `{failure.first}` line", _end_of_line(failure), "`:` is missing",
                       "put `:` here; the block stands indented below it")
    if found.text == "=" and failure.first in ("if", "elif", "while"):
        return Finding("E0103", "`=` assigns, it does not compare", (found.start, found.end), "expected `==` or `:`",
                       "to compare, write `==`")
    if failure.before and failure.before.is_value and found.is_value:
        return Finding("E0104", f"expected `:` before {_name(found)}", (found.start, found.end), "`:` is missing before this",
                       f"end the head of `{failure.first}` with `:`")
    return None


def _stray_clause(failure: Failure) -> Finding | None:
    owner = _CLAUSES.get(failure.first)
    if owner is None or failure.second in ("=", "(", ".") or not _taken_for_a_name(failure):
        return None
    place = (failure.pieces[0].start, failure.pieces[0].end)
    return Finding("E0106", f"`{failure.first}` without {owner[0]}", place, owner[1], owner[2])


def _taken_for_a_name(failure: Failure) -> bool:
    """Whether the first word of the line was no keyword to the lexer: an operator, or an annotation, could follow."""
    if failure.index == 0 or failure.index == 1 and "PLUS" in failure.expected:
        return True
    return failure.second == ":" and failure.index == 2 and "RETURN" not in failure.expected


_CLAUSES = {
    "elif": ("`if`", "nothing here can have an `elif`", "put it directly after the block of an `if`, indented the same"),
    "else": ("`if`", "nothing here can have an `else`",
             "put it directly after the block of an `if`, indented the same; loops have no `else`"),
    "except": ("`try`", "nothing here can have an `except`", "put it directly after the block of a `try`; there is one handler"),
    "case": ("`match`", "a `case` stands in a `match` only", "write `match value:` above and indent the cases below it"),
    "branch": ("`fork`", "a `branch` stands in a `fork:` only", "write `fork:` above and indent the branches below it"),
    "join": ("`fork`", "a `join` follows the block of a `fork`",
             "put it directly after the block of its `fork`, indented like `fork`"),
}


def _wrong_line(failure: Failure) -> Finding | None:
    """A line that cannot stand in the block of a `match` or of a `fork:`."""
    for terminal, owner, line in (("CASE", "match", "case …:"), ("BRANCH", "fork:", "branch name:")):
        if terminal in failure.expected and failure.expected <= {terminal, "_DEDENT"} and failure.found is not None:
            return Finding("E0105", f"only `{line}` lines stand in a `{owner}`", _here(failure), f"expected `{line}`",
                           f"move the line above the `{owner.rstrip(':')}`, or into one of its blocks")
    return None


def _bare_except(failure: Failure) -> Finding | None:
    if failure.first != "except" or failure.expected != {"NAME"}:
        return None
    return Finding("E0121", "`except` names what it takes", _here(failure), "expected `Error`",
                   "write `except Error:` or `except Error as e:`")


def _try_without_except(failure: Failure) -> Finding | None:
    if failure.expected != {"EXCEPT"}:
        return None
    return Finding("E0106", "`try` without `except`", _here(failure), "expected `except Error as e:` here",
                   "put `except Error as e:` directly after the block of `try`, indented the same")


# --------------------------------------------------------------------- words


def _item_word_inside(failure: Failure) -> Finding | None:
    if failure.at_top or failure.first not in ("def", "part", "type", "extern", "pure", "import", "from", "test", "config"):
        return None
    if failure.second in ("=", "(", ".", "["):
        return None
    place = (failure.pieces[0].start, failure.pieces[0].end)
    return Finding("E0109", f"`{failure.first}` inside a block", place, "this stands at the top level only",
                   "move it out, to the start of a line; a function may call any other of its file")


def _statement_at_top(failure: Failure) -> Finding | None:
    if not failure.at_top or not failure.pieces:
        return None
    first = failure.pieces[0]
    if first.text in _STATEMENT_WORDS and failure.second != "=":
        what = f"`{first.text}` at the top level"
    elif failure.index > 1:
        return None
    elif first.is_string:
        what = "a text at the top level"
    elif first.is_word and failure.second in ("(", ".", "["):
        what = "a statement at the top level"
    else:
        return None
    help = "use a `#` comment for notes" if first.is_string else "put it into a function: `def main():`"
    return Finding("E0108", what, (first.start, first.end),
                   "only imports, constants, types, functions, tests and config stand here", help)


_STATEMENT_WORDS = (words.KEYWORDS | words.ROLES) - {"import", "from", "def"}


def _reserved_target(failure: Failure) -> Finding | None:
    """`user = 3`: the keyword was taken for what it means."""
    found, before = failure.found, failure.before
    if found is None or before is None or not before.is_word or found.text not in ("=", "+=", "-=", ",", ")", ":", "in", "as"):
        return None
    kind = words.reserved(before.text)
    listing = failure.first in ("def", "part", "for", "fork")
    if kind is None or found.text in (",", ")", ":", "as") and failure.index > 1 and not listing:
        return None
    return Finding("E0110", f"`{before.text}` is {kind} and cannot be a name here", (before.start, before.end), "reserved",
                   f"choose another name, for instance `{before.text}_`")


_OTHER_ROLES = {"human": "user", "ai": "assistant", "bot": "assistant", "model": "assistant", "developer": "system",
                "instructions": "system", "tool": "user", "function": "user", "prompt": "user", "text": "raw"}


def _other_role(failure: Failure) -> Finding | None:
    """`human: "hi"`, and a block under `human:`."""
    role = _OTHER_ROLES.get(failure.first)
    if role is None or failure.found is not None or failure.second != ":":
        return None
    if len(failure.pieces) > 2 and not failure.pieces[2].is_string:
        return None
    first = failure.pieces[0]
    return Finding("E0102", f"there is no role `{first.text}`", (first.start, first.end), "not a role",
                   f"write `{role}:`; the roles are `system`, `user`, `assistant` and `raw`")


def _turn_as_a_value(failure: Failure) -> Finding | None:
    """`x = assistant: gen()`"""
    found, before = failure.found, failure.before
    if found is None or before is None or found.text != ":" or before.text not in words.ROLES or failure.index < 2 or failure.opener:
        return None
    return Finding("E0101", f"`{before.text}:` is a turn, not a value", (before.start, found.end), "a turn cannot stand here",
                   f"assign inside the turn: `{before.text}: name = …`")


# --------------------------------------------------------------- expressions


def _inside_a_pattern(failure: Failure) -> Finding | None:
    """`case T("a")`, `case T(x=1)`, `case T(U(y))`: a pattern names fields and looks no deeper."""
    found = failure.found
    if failure.first != "case" or not failure.opener or found is None:
        return None
    if not (found.is_string or found.text[0].isdigit() or found.text in ("(", "[", "{", "-", "|")):
        return None
    return Finding("E0115", f"a pattern only names the fields of a record, found {_name(found)}", (found.start, found.end),
                   "expected a name",
                   "give the field a name, `case T(x):`, and look at it in the block: `if x == …:`, or another `match x:`")


def _pattern(failure: Failure) -> Finding | None:
    if failure.first != "case" or not {"STRING", "MINUS", "NAME"} <= failure.expected or "LPAR" in failure.expected:
        return None
    what = _name(failure.found) if failure.found else "the end of the line"
    return Finding("E0115", f"expected a pattern, found {what}", _here(failure), "not a pattern",
                   "a pattern is a literal, `None`, `_`, `T(a, b)` or `T(x=a)`, or several of them with `|`")


def _adjacent_strings(failure: Failure) -> Finding | None:
    if not (failure.found and failure.before and failure.found.is_string and failure.before.is_string):
        return None
    return Finding("E0113", "two strings side by side", (failure.found.start, failure.found.end),
                   "the first string ended before this",
                   "join them with `+`, write one string, or put a `,` between them")


def _tuple(failure: Failure) -> Finding | None:
    found = failure.found
    if found is None or found.text != "," or not (failure.before and failure.before.is_value):
        return None
    if failure.opener and failure.opener.text != "(":
        return None
    asserted = failure.first == "assert" and failure.pieces[1].text == "("
    return Finding("E0119", "there are no tuples", (found.start, found.end), "a `,` cannot stand here",
                   "write `assert condition, \"message\"`, without brackets around both" if asserted else
                   "make a list, `[a, b]`, or a record; one name is assigned at a time")


def _last_comma(failure: Failure) -> Finding | None:
    found = failure.found
    if found is None or found.text != "," or failure.after is not None or failure.index == 0:
        return None
    return Finding("E0101", "a `,` at the end of the line", (found.start, found.end), "nothing follows it",
                   "remove it: lines need no comma")


def _braces(failure: Failure) -> Finding | None:
    if failure.opener is None or failure.opener.text != "{" or "COLON" not in failure.expected:
        return None
    return Finding("E0105", "a value without a key in braces", _here(failure), "expected `:` and a value",
                   'write `{"key": value}` or `{name: value}`; there are no sets, a list is `[a, b]`')


def _comprehension(failure: Failure) -> Finding | None:
    if failure.found is None or failure.found.text != "for" or failure.opener is None:
        return None
    place = (failure.found.start, failure.found.end)
    instead = "a dict is filled in a loop, `d[key] = value`" if failure.opener.text == "{" else "in a call, `f([… for … in …])`"
    return Finding("E0105", f"a comprehension in `{failure.opener.text}`", place, "only lists have comprehensions",
                   f"write `[… for … in …]`; {instead}")


def _missing_comma(failure: Failure) -> Finding | None:
    found, before = failure.found, failure.before
    if not (found and before and failure.opener and before.is_value):
        return None
    if found.text in ")]}" or not (found.is_value or found.text in "([{"):
        return None
    closer = {"(": ")", "[": "]", "{": "}"}[failure.opener.text]
    if failure.first in ("def", "part", "extern", "pure") and before.is_word and found.is_word:
        help = f"a parameter is written with its type: `{before.text}: {found.text}`"
    else:
        help = f"put a `,` or an operator between {_name(before)} and {_name(found)}"
    return Finding("E0101", f"expected `,` or `{closer}`, found {_name(found)}", (found.start, found.end),
                   "something is missing before this", help)


def _declaration(failure: Failure) -> Finding | None:
    """`x: int` alone."""
    if failure.found is not None or failure.second != ":" or "EQUAL" not in failure.expected:
        return None
    return Finding("E0101", f"`{failure.first}` is declared without a value", _end_of_line(failure), "expected `=` and a value",
                   f"write `{failure.first}: type = value`; a name need not be declared before it is assigned")


def _missing_value(failure: Failure) -> Finding | None:
    if "INT" not in failure.expected or "STRING" not in failure.expected:
        return None
    found, before = failure.found, failure.before
    after = f" after `{before.text}`" if before and not before.is_string else ""
    what = _name(found) if found else "the end of the line"
    return Finding("E0101", f"expected a value{after}, found {what}", _here(failure), "a value is missing here",
                   "write a name, a number, a string, a list or a call")


def _anything(failure: Failure) -> Finding:
    found = failure.found
    what = _name(found) if found else ""
    wanted = _expected(failure.expected)
    message = (f"unexpected {what}" if found else "the line ends too early") + (f", expected {wanted}" if wanted else "")
    return Finding("E0101", message, _here(failure), "not expected here", _advice(failure))


def _advice(failure: Failure) -> str:
    if len(failure.expected) <= 3:
        for terminal, help in _ADVICE:
            if terminal in failure.expected:
                return help
    found, before = failure.found, failure.before
    if found is None:
        return "finish the line, or remove what began it"
    if before and before.is_value and found.is_value:
        begins = failure.index == (3 if failure.first in words.ROLES else 1)
        if before.is_word and found.is_word and begins and not failure.at_top:
            return 'text is written in quotes: "…"; otherwise an operator or a line break is missing'
        return f"an operator, a `,` or a line break is missing between {_name(before)} and {_name(found)}"
    return f"remove {_name(found)}, or write what should stand before it"


_ADVICE = (
    ("ELSE", "a conditional has both sides: `a if condition else b`"),
    ("DEF", "write `extern def name(parameter: type) -> type`"),
    ("LPAR", "parameters stand in parentheses, also where there are none: `def f():`"),
    ("IN", "write `for x in xs:` or `fork x in xs:`"),
    ("STRING", 'a test is named by a string, `test "it works":`; an `extern def` may have a docstring and nothing else'),
    ("EQUAL", "write `name = value`, or `type Name:` with fields below"),
    ("COLON", "a field is written `name: type`"),
    ("_DEDENT", "end the block before it"),
)


def _name(piece: Piece) -> str:
    if piece.is_string:
        return "a string"
    if piece.text[0].isdigit():
        return f"the number `{piece.text}`"
    return f"`{piece.text}`"


_SPELLED = {
    "NAME": "a name", "STRING": "a string", "INT": "a number", "_NL": "the end of the line", "COLON": "`:`", "LPAR": "`(`",
    "RPAR": "`)`",
    "LSQB": "`[`", "RSQB": "`]`", "LBRACE": "`{`", "RBRACE": "`}`", "EQUAL": "`=`", "COMMA": "`,`", "DOT": "`.`",
    "__ANON_0": "`->`",
    "_INDENT": "an indented block", "_DEDENT": "the end of the block",
}
_LISTED = 5


def _expected(terminals: frozenset[str]) -> str:
    """The terminals in words; nothing where there are too many to help."""
    if {"NAME", "STRING", "INT"} <= terminals:
        return ""
    spelled = sorted(_SPELLED.get(name) or f"`{name.lower()}`" for name in terminals if not name.startswith("__"))
    if not spelled or len(spelled) > _LISTED:
        return ""
    return " or ".join(spelled) if len(spelled) < 3 else ", ".join(spelled[:-1]) + " or " + spelled[-1]


RULES: tuple[Callable[[Failure], Finding | None], ...] = (
    _unexpected_indent, _missing_block, _wrong_line, _bare_except, _try_without_except, _stray_clause, _item_word_inside,
    _statement_at_top, _turn_as_a_value, _reserved_target, _other_role,
    _missing_colon, _inside_a_pattern, _pattern, _adjacent_strings, _comprehension, _braces, _last_comma, _tuple, _missing_comma,
    _declaration,
    _missing_value, _anything,
)
