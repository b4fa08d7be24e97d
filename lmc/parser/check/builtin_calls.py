"""Types of the built-in functions.

    len(xs) -> int        majority(list[T]) -> T        zip(list[A], list[B]) -> list[(A, B)]

One small rule for each; the parameters are in `builtins.py`, what they compute in `lmc/pure`.
"""

from __future__ import annotations

from collections.abc import Callable

from lmc.parser import ast
from lmc.parser.check.arguments import infer_all, match_arguments
from lmc.parser.check.body import Body
from lmc.parser.check.builtins import BUILTINS
from lmc.parser.check.constraints import check_regex
from lmc.parser.check.iteration import element_of, no_element
from lmc.parser.check.model import UNKNOWN, BuiltinCall
from lmc.parser.check.relations import is_bool, is_int, is_number, is_scalar, is_str, join, known, type_text
from lmc.parser.check.type_exprs import is_data, resolve_type
from lmc.types import (
    BOOL, FLOAT, INT, NEVER, NONE, STR, ContextT, DictT, ListT, NeverT, NoneT, OptionalT, RecordT, TupleT, Type, UnionT,
    base_type,
)

Args = tuple[ast.Expr | None, ...]


def infer_builtin(body: Body, call: ast.Call, name: str, hint: Type | None) -> Type:
    """The type of a call of the built-in `name`; the call is recorded where its arguments match."""
    if name in ("schema", "fields", "parse_json"):
        return _with_type(body, call, name, hint)
    args = _arguments(body, call, name)
    if args is None:
        infer_all(body, call)
        return UNKNOWN
    before = body.facts.mark()
    found, type = _RULES[name](body, args, hint), None
    if name == "json" and args[0] is not None:
        type = body.facts.expr_types.get(args[0])
    if not body.facts.failed_since(before):
        body.facts.calls[call] = BuiltinCall(name, args, type)
    return found


def _arguments(body: Body, call: ast.Call, name: str) -> Args | None:
    signature = BUILTINS[name]
    if not signature.repeats:
        return match_arguments(body, call, name, signature.names, signature.names[: signature.required])
    if call.keywords:
        body.facts.error("E0303", f"`{name}` takes no named arguments", call.keywords[0].name, "unknown name",
                         "it shows its arguments with spaces between them, on a line of their own" if name == "print" else None)
        return None
    if len(call.args) < signature.required:
        body.facts.error("E0305", f"`{name}` needs an argument", call, "missing argument")
        return None
    return call.args


# ------------------------------------------------------ those that take a type


def _with_type(body: Body, call: ast.Call, name: str, hint: Type | None) -> Type:
    signature = BUILTINS[name]
    args = match_arguments(body, call, name, signature.names, signature.names[: signature.required])
    if args is None:
        return UNKNOWN
    if name == "parse_json":
        return _parse_json(body, call, args, hint)
    assert args[0] is not None
    type = resolve_type(body.file, args[0])
    if not known(type):
        return STR
    if name == "fields" and not isinstance(type, RecordT):
        body.facts.error("E0301", f"`fields` takes a record type, found `{type_text(type)}`", args[0], "no record",
                         f"use `schema({type_text(type)})`")
    elif not is_data(type):
        body.facts.error("E0301", f"`{type_text(type)}` has no JSON schema", args[0])
    else:
        body.facts.calls[call] = BuiltinCall(name, (), type)
    return STR


def _parse_json(body: Body, call: ast.Call, args: Args, hint: Type | None) -> Type:
    text, type_expr = args
    assert text is not None
    body.expect(text, STR, "argument `text`")
    type = resolve_type(body.file, type_expr) if type_expr is not None else hint
    if type is None:
        body.facts.error("E0312", "`parse_json` needs to know what it reads", call, "which type?",
                         "name it: `parse_json(s, T)`, or annotate the name: `x: T = parse_json(s)`")
        return UNKNOWN
    if known(type):
        body.facts.calls[call] = BuiltinCall("parse_json", (text,), type)
    return type


# ------------------------------------------------------------------ one rule each


def _refuse(body: Body, expr: ast.Expr, name: str, wanted: str, found: Type, help: str | None = None) -> Type:
    if known(found):
        body.facts.error("E0301", f"`{name}` takes {wanted}, found `{type_text(found)}`", expr, f"this is `{type_text(found)}`",
                         help)
    return UNKNOWN


def _len(body: Body, args: Args, hint: Type | None) -> Type:
    found = body.infer(args[0])
    if not (isinstance(found, (ListT, DictT)) or is_str(found)):
        _refuse(body, args[0], "len", "a list, a dict or text", found)
    return INT


def _range(body: Body, args: Args, hint: Type | None) -> Type:
    for arg in args:
        if arg is not None:
            body.expect(arg, INT, "an argument of `range`")
    return ListT(INT)


def _enumerate(body: Body, args: Args, hint: Type | None) -> Type:
    element = element_of(body, args[0])
    if args[1] is not None:
        body.expect(args[1], INT, "argument `start`")
    return ListT(TupleT((INT, element))) if known(element) else UNKNOWN


def _zip(body: Body, args: Args, hint: Type | None) -> Type:
    elements = tuple(element_of(body, arg) for arg in args)
    return ListT(TupleT(elements)) if all(map(known, elements)) else UNKNOWN


def _extreme(name: str) -> Callable[[Body, Args, Type | None], Type]:
    def rule(body: Body, args: Args, hint: Type | None) -> Type:
        types = [_list_element(body, args[0], name)] if len(args) == 1 else [body.infer(arg) for arg in args]
        found: Type = types[0]
        for arg, type in zip(args, types):
            if not known(type):
                return UNKNOWN
            if not (is_number(type) or is_str(type)):
                return _refuse(body, arg, name, "numbers or texts", type)
            both = join(found, type)
            if both is None:
                return _refuse(body, arg, name, f"values of one type, here `{type_text(found)}`", type)
            found = both
        if len(args) > 1 and base_type(found) == FLOAT:
            for arg, type in zip(args, types):
                if is_int(type):
                    body.convert(arg)
        return found

    return rule


def _list_element(body: Body, expr: ast.Expr, name: str) -> Type:
    found = body.infer(expr)
    if isinstance(found, ListT):
        if isinstance(found.element, NeverT) and name in ("min", "max", "majority", "argmax", "top"):
            return no_element(body, expr)
        return found.element
    return _refuse(body, expr, name, "a list", found)


def _sum(body: Body, args: Args, hint: Type | None) -> Type:
    element = _list_element(body, args[0], "sum")
    if isinstance(element, NeverT):
        return INT
    if known(element) and not is_number(element):
        help = 'join texts with `"".join(xs)`' if is_str(element) else None
        return _refuse(body, args[0], "sum", "a list of numbers", ListT(element), help)
    return base_type(element)


def _sorted(body: Body, args: Args, hint: Type | None) -> Type:
    element = _list_element(body, args[0], "sorted")
    if args[1] is not None:
        body.expect(args[1], BOOL, "argument `reverse`")
    if known(element) and not (is_number(element) or is_str(element) or isinstance(element, (TupleT, NeverT))):
        return _refuse(body, args[0], "sorted", "a list of numbers or texts", ListT(element),
                       "`top(xs, scores, n)` orders any list by scores")
    return ListT(element) if known(element) else UNKNOWN


def _abs(body: Body, args: Args, hint: Type | None) -> Type:
    found = body.infer(args[0])
    return base_type(found) if is_number(found) else _refuse(body, args[0], "abs", "a number", found)


def _round(body: Body, args: Args, hint: Type | None) -> Type:
    found = body.infer(args[0])
    if not is_number(found):
        _refuse(body, args[0], "round", "a number", found)
    if args[1] is None:
        return INT
    body.expect(args[1], INT, "argument `digits`")
    return base_type(found) if known(found) else UNKNOWN


def _str(body: Body, args: Args, hint: Type | None) -> Type:
    found = body.infer(args[0])
    if not is_scalar(found):
        _refuse(body, args[0], "str", "a text, number or bool", found, "write `json(x)`")
    return STR


def _number(name: str, result: Type) -> Callable[[Body, Args, Type | None], Type]:
    def rule(body: Body, args: Args, hint: Type | None) -> Type:
        found = body.infer(args[0])
        if not (is_number(found) or is_str(found) or is_bool(found)):
            _refuse(body, args[0], name, "a number, a bool or text", found)
        return result

    return rule


def _bool(body: Body, args: Args, hint: Type | None) -> Type:
    found = body.infer(args[0])
    if not (is_scalar(found) or isinstance(found, (ListT, DictT, OptionalT, NoneT))):
        _refuse(body, args[0], "bool", "a text, number, list or dict", found)
    return BOOL


def _print(body: Body, args: Args, hint: Type | None) -> Type:
    for arg in args:
        found = body.infer(arg)
        if not is_scalar(found):
            _refuse(body, arg, "print", "texts, numbers and bools", found, "write `json(x)`")
    return NONE


def _input(body: Body, args: Args, hint: Type | None) -> Type:
    if args[0] is not None:
        body.expect(args[0], STR, "argument `prompt`")
    return STR


def _fail(body: Body, args: Args, hint: Type | None) -> Type:
    body.expect(args[0], STR, "argument `message`")
    return NEVER


def _json(body: Body, args: Args, hint: Type | None) -> Type:
    found = body.infer(args[0])
    if isinstance(found, (ContextT, NeverT)) or isinstance(found, ListT) and isinstance(found.element, ContextT):
        _refuse(body, args[0], "json", "a value that can be written", found, "contexts cannot be printed")
    return STR


def _shown_list(name: str) -> Callable[[Body, Args, Type | None], Type]:
    def rule(body: Body, args: Args, hint: Type | None) -> Type:
        element = _list_element(body, args[0], name)
        if known(element) and not (is_scalar(element) or isinstance(element, NeverT)):
            nested = isinstance(element, (RecordT, UnionT, ListT, DictT))
            _refuse(body, args[0], name, "a list of texts, numbers or bools", ListT(element),
                    f"write each: `{name}([json(x) for x in xs])`" if nested else None)
        return STR

    return rule


def _majority(body: Body, args: Args, hint: Type | None) -> Type:
    element = _list_element(body, args[0], "majority")
    return _refuse(body, args[0], "majority", "a list of values", ListT(element)) if isinstance(element, ContextT) else element


def _argmax(body: Body, args: Args, hint: Type | None) -> Type:
    element = _list_element(body, args[0], "argmax")
    if known(element) and not is_number(element):
        _refuse(body, args[0], "argmax", "a list of numbers", ListT(element), "it gives the index of the largest")
    return INT


def _top(body: Body, args: Args, hint: Type | None) -> Type:
    element = _list_element(body, args[0], "top")
    scores = _list_element(body, args[1], "top")
    if known(scores) and not is_number(scores):
        _refuse(body, args[1], "top", "a list of numbers as scores", ListT(scores))
    body.expect(args[2], INT, "argument `n`")
    return ListT(element) if known(element) else UNKNOWN


def _regex(result: Type) -> Callable[[Body, Args, Type | None], Type]:
    def rule(body: Body, args: Args, hint: Type | None) -> Type:
        pattern, text = args
        body.expect(pattern, STR, "argument `regex`")
        if isinstance(pattern, ast.Text) and pattern.plain is not None:
            check_regex(body.facts, pattern, pattern.plain)
        body.expect(text, STR, "argument `text`")
        return result

    return rule


_RULES: dict[str, Callable[[Body, Args, Type | None], Type]] = {
    "len": _len, "range": _range, "enumerate": _enumerate, "zip": _zip, "min": _extreme("min"), "max": _extreme("max"),
    "sum": _sum,
    "sorted": _sorted, "abs": _abs, "round": _round, "str": _str, "int": _number("int", INT), "float": _number("float", FLOAT),
    "bool": _bool, "print": _print, "input": _input, "fail": _fail, "json": _json, "bullets": _shown_list("bullets"),
    "lines": _shown_list("lines"), "majority": _majority, "argmax": _argmax, "top": _top, "findall": _regex(ListT(STR)),
    "matches": _regex(BOOL),
}
