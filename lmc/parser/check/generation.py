"""`gen`, `select`, `score` and `image`: where they may stand, what they give, their constraints.

    note = gen(Note, max_tokens=80)      GenCall; a Note
    label = select(Label)                SelectCall; a Label
    s = score(["yes", "no"])             ScoreCall; list[Scored]
    image(path)                          ImageCall; whether the model has eyes is known when the program is bound to one

A call is legal where the statement around it put it into `body.placed`: a whole statement, the right side of an assignment or a
whole hole.
"""

from __future__ import annotations

import json

from lmc.parser import ast
from lmc.parser.check.arguments import infer_all, match_arguments
from lmc.parser.check.body import Body
from lmc.parser.check.constraints import check_regex
from lmc.parser.check.model import UNKNOWN, GenCall, ImageCall, ScoreCall, SelectCall, TypeSymbol
from lmc.parser.check.options import GEN, check_options
from lmc.parser.check.relations import is_str, known, type_text
from lmc.parser.check.suggest import did_you_mean
from lmc.parser.check.type_exprs import is_generable, resolve_type
from lmc.regex.parse import RegexError
from lmc.types import NONE, SCORED, STR, ListT, LiteralT, RangeT, Type

_METHODS = ("token_length_normalized", "greedy_token", "unconditional_likelihood_normalized")


def infer_generation(body: Body, call: ast.Call, name: str) -> Type:
    """The type of a call of `gen`, `select`, `score` or `image`."""
    if name == "image":
        return _image(body, call)
    if _placed(body, call, name):
        _in_turn(body, call, name)
    if name == "gen":
        return _gen(body, call)
    return _choice(body, call, name)


# ------------------------------------------------------------------------ place


def _placed(body: Body, call: ast.Call, name: str) -> bool:
    if call in body.placed:
        return True
    body.facts.error("E0403", f"`{name}` must be a whole statement, the right side of an assignment, or a whole hole", call, "",
                     f"assign it first: `x = {name}(…)`")
    return False


def _in_turn(body: Body, call: ast.Call, name: str) -> None:
    if body.role in ("assistant", "raw"):
        return
    if body.text_part and body.role is None:
        assert body.function is not None
        body.facts.generating_parts.setdefault(body.function, call.span)
        return
    where = f"in `{body.role}:`" if body.role else "outside a turn"
    body.facts.error("E0402", f"`{name}` cannot stand {where}", call.function, "the model writes in `assistant:` and `raw:` only",
                     f"open a turn for it: `assistant: x = {name}(…)`")


def _image(body: Body, call: ast.Call) -> Type:
    args = match_arguments(body, call, "image", ("value",), ("value",))
    if args is None:
        infer_all(body, call)
        return UNKNOWN
    body.expect(args[0], STR, "a picture")
    if _placed(body, call, "image"):
        if body.role == "user":
            body.facts.calls[call] = ImageCall(args[0])
            return NONE
        where = f"in `{body.role}:`" if body.role else "in a part" if body.text_part else "outside a turn"
        body.facts.error("E0402", f"`image` cannot stand {where}", call.function, "pictures are shown in `user:` only",
                         "open a turn for it: `user: image(…)`")
    return UNKNOWN


# -------------------------------------------------------------------------- gen


def _gen(body: Body, call: ast.Call) -> Type:
    keywords = tuple(k for k in call.keywords if k.name.text != "type")
    named = [k.value for k in call.keywords if k.name.text == "type"]
    types = [*call.args, *named]
    type = _gen_type(body, call, types) if types else STR
    options = check_options(body, "gen", keywords, GEN)
    regex = _constraint(body, types, type, options)
    if known(type):
        body.facts.calls[call] = GenCall(type, options, regex)
    return type


def _gen_type(body: Body, call: ast.Call, types: list[ast.Expr]) -> Type:
    for extra in types[1:]:
        body.facts.error("E0302", "`gen` takes one type", extra, "one too many",
                         "everything else is an option: `gen(int, max_tokens=8)`")
    if isinstance(types[0], ast.Text) and types[0].plain is None:
        body.facts.error("E0313", "`gen` takes a type, not a prompt", types[0], "", "write the prompt as text before the `gen`")
        return UNKNOWN
    type = resolve_type(body.file, types[0])
    if known(type) and not is_generable(type):
        body.facts.error("E0301", f"a `{type_text(type)}` cannot be generated", types[0], "",
                         "generate texts, numbers, bools, literals, lists, records and unions of records")
        return UNKNOWN
    return type


def _constraint(body: Body, types: list[ast.Expr], type: Type, options: dict[str, ast.Expr]) -> str | None:
    """At most one constraint; gives the pattern where it is a regex."""
    given = [name for name in ("regex", "schema", "grammar") if name in options]
    if types and known(type) and type != STR:
        given.insert(0, "type")
    if len(given) > 1:
        first = f"the type `{type_text(type)}`" if given[0] == "type" else f"`{given[0]}`"
        body.facts.error("E0603", f"this `gen` has two constraints: {first} and `{given[1]}`", options[given[1]], "",
                         "keep one; a `type` can hold a regex: `str(regex=…)`")
        return None
    if "grammar" in options:
        _grammar(body, options["grammar"])
    if "schema" in options:
        _schema(body, options["schema"])
    return _pattern(body, options["regex"]) if "regex" in options else None


def _constant_text(body: Body, expr: ast.Expr, what: str) -> str | None:
    text = expr.plain if isinstance(expr, ast.Text) else None
    symbol = body.facts.symbols.get(expr)
    if text is None and symbol in body.facts.constants:
        text = body.facts.constants[symbol]
    if isinstance(text, str):
        return text
    if known(body.facts.expr_types.get(expr, UNKNOWN)):
        body.facts.error("E0601", f"{what} must be known at compile time", expr, "",
                         "write it here, or name a constant of the file")
    return None


def _pattern(body: Body, expr: ast.Expr) -> str | None:
    pattern = _constant_text(body, expr, "a regex")
    return pattern if pattern is not None and check_regex(body.facts, expr, pattern) else None


def _schema(body: Body, expr: ast.Expr) -> None:
    text = _constant_text(body, expr, "a schema")
    if text is None:
        return
    # Building automata needs numpy, which programs without a schema are checked without.
    from lmc.regex.schema import schema_constraint

    try:
        schema_constraint(text)
    except RegexError as error:
        body.facts.error("E0605", f"this schema cannot be used: {error}", expr)


def _grammar(body: Body, expr: ast.Expr) -> None:
    text = _constant_text(body, expr, "a grammar")
    if text is None:
        return
    from lmc.regex.grammar import LARK, Grammar, check_grammar

    try:
        check_grammar(Grammar(LARK, text))
    except RegexError as error:
        body.facts.error("E0606", f"this grammar cannot be used: {error}", expr)


# --------------------------------------------------------------- select and score


def _choice(body: Body, call: ast.Call, name: str) -> Type:
    wanted = {"options": None, "method": None} if name == "select" else {"options": None}
    given: dict[str, ast.Expr] = dict(zip(wanted, call.args))
    for extra in call.args[len(wanted):]:
        body.infer(extra)
        body.facts.error("E0302", f"`{name}` takes its options as one list", extra, "one too many", f"write `{name}([a, b])`")
    for keyword in call.keywords:
        if keyword.name.text not in wanted or keyword.name.text in given:
            body.infer(keyword.value)
            body.facts.error("E0407", f"`{name}` has no option `{keyword.name.text}`", keyword.name, "unknown option",
                             did_you_mean(keyword.name.text, wanted))
        else:
            given[keyword.name.text] = keyword.value
    if "options" not in given:
        body.facts.error("E0305", f"`{name}` needs its options", call, "missing argument",
                         f"a list or a literal type: `{name}([a, b])`")
        return UNKNOWN
    return _options(body, call, name, given["options"], given.get("method"))


def _options(body: Body, call: ast.Call, name: str, expr: ast.Expr, method_expr: ast.Expr | None) -> Type:
    type, choices, options = STR, None, None
    if _is_type(body, expr):
        type = resolve_type(body.file, expr)
        if not known(type):
            return UNKNOWN
        choices = _choices(body, expr, type, name)
        if choices is None:
            return UNKNOWN
    else:
        options = expr
        if not _option_list(body, expr, name):
            return UNKNOWN
    method = _method(body, method_expr) if method_expr is not None else _METHODS[0]
    if name == "score":
        body.facts.calls[call] = ScoreCall(choices, options)
        return ListT(SCORED)
    body.facts.calls[call] = SelectCall(type, choices, options, method)
    return type


def _is_type(body: Body, expr: ast.Expr) -> bool:
    match expr:
        case ast.Name(text=text):
            return body.find(text) is None and isinstance(body.file.type_symbol(text), TypeSymbol)
        case ast.Attribute():
            module = body.file.module_of(expr.value)
            other = body.file.files.get(module.path) if module is not None else None
            return other is not None and isinstance(other.own(expr.name.text), TypeSymbol)
        case ast.Binary(op=op):
            return op in ("|", "..")
    return False


def _choices(body: Body, expr: ast.Expr, type: Type, name: str) -> tuple[str | int | bool, ...] | None:
    if isinstance(type, LiteralT):
        return type.values
    if isinstance(type, RangeT) and type.high - type.low < 1000:
        return tuple(range(type.low, type.high + 1))
    body.facts.error("E0604", f"`{name}` chooses among the values of a literal type, and `{type_text(type)}` is none", expr, "",
                     f"use `gen({type_text(type)})`" if name == "select" else None)
    return None


def _option_list(body: Body, expr: ast.Expr, name: str) -> bool:
    found = body.infer(expr, ListT(STR))
    if not known(found):
        return False
    if not (isinstance(found, ListT) and is_str(found.element)) and _is_not_empty(expr):
        body.facts.error("E0604", f"`{name}` takes a list of texts or a literal type, found `{type_text(found)}`", expr, "",
                         f"write `{name}([\"yes\", \"no\"])`")
        return False
    if isinstance(expr, ast.ListExpr):
        return _distinct(body, expr, name)
    constant = body.facts.constants.get(body.facts.symbols.get(expr))
    if constant is not None and (not constant or len(set(constant)) < len(constant) or "" in constant):
        body.facts.error("E0604", "the options are empty or repeat one", expr, "",
                         "each option stands once and has at least one character")
        return False
    return True


def _is_not_empty(expr: ast.Expr) -> bool:
    """Whether it is something else than `[]`, which has its own message."""
    return not (isinstance(expr, ast.ListExpr) and not expr.elements)


def _distinct(body: Body, expr: ast.ListExpr, name: str) -> bool:
    if not expr.elements:
        body.facts.error("E0604", f"`{name}` needs at least one option", expr, "empty")
        return False
    seen: set[str] = set()
    for element in expr.elements:
        text = element.plain if isinstance(element, ast.Text) else None
        if text is not None and text in seen:
            body.facts.error("E0604", f"the option {json.dumps(text, ensure_ascii=False)} is given twice", element, "duplicate")
        if text == "":
            body.facts.error("E0604", "an option must not be empty: it has no token to score", element)
        if text is not None:
            seen.add(text)
    return True


def _method(body: Body, expr: ast.Expr) -> str:
    body.expect(expr, STR, "`method`")
    text = expr.plain if isinstance(expr, ast.Text) else None
    if text in _METHODS:
        return text
    body.facts.error("E0407", "unknown method of `select`" if text is not None else "`method` must be written here", expr, "",
                     did_you_mean(text or "", _METHODS))
    return _METHODS[0]
