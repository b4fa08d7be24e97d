"""Calls: what is called, and the call of functions, parts, externs and records.

    classify(r)        FunctionCall        Search(query=q)    RecordCall
    s.strip()          MethodCall          gen(int)           GenCall

Builtins, methods and generation have files of their own.
"""

from __future__ import annotations

from lmc.parser import ast
from lmc.parser.check.arguments import check_arguments, infer_all
from lmc.parser.check.body import Body
from lmc.parser.check.builtin_calls import infer_builtin
from lmc.parser.check.facts import PartUse
from lmc.parser.check.flow import Turns
from lmc.parser.check.generation import infer_generation
from lmc.parser.check.literals import check_fields
from lmc.parser.check.methods import infer_method, python_module_call
from lmc.parser.check.model import (
    UNKNOWN, BuiltinSymbol, ExternCall, ExternSymbol, FunctionCall, FunctionSymbol, PartKind, RecordCall, Symbol, TypeSymbol,
)
from lmc.parser.check.names import resolve_name
from lmc.parser.check.relations import type_text
from lmc.parser.check.scope import BrokenSymbol
from lmc.types import RecordT, Type, UnionT

_GENERATION = ("gen", "select", "score", "image")


def infer_call(body: Body, call: ast.Call, hint: Type | None) -> Type:
    function = call.function
    if isinstance(function, ast.Name):
        symbol = resolve_name(body, function)
    elif isinstance(function, ast.Attribute):
        if not _is_module(body, function.value):
            return _method(body, call, function, hint)
        symbol = body.file.member(function)
        if symbol is not None:
            body.facts.symbols[function] = symbol
    else:
        return _not_callable(body, call, type_text(body.infer(function)))
    if symbol is None or isinstance(symbol, BrokenSymbol):
        infer_all(body, call)
        return UNKNOWN
    return _call_symbol(body, call, symbol, hint)


def _is_module(body: Body, expr: ast.Expr) -> bool:
    return isinstance(expr, ast.Name) and body.find(expr.text) is None and body.file.module_of(expr) is not None


def _method(body: Body, call: ast.Call, function: ast.Attribute, hint: Type | None) -> Type:
    if isinstance(function.value, ast.Name) and body.find(function.value.text) is None:
        if python_module_call(body, call, function.value.text, function.name.text):
            infer_all(body, call)
            return UNKNOWN
    return infer_method(body, call, function, hint)


def _call_symbol(body: Body, call: ast.Call, symbol: Symbol, hint: Type | None) -> Type:
    match symbol:
        case FunctionSymbol():
            return _function(body, call, symbol)
        case ExternSymbol():
            args = check_arguments(body, call, symbol.name, symbol.params)
            if args is not None:
                body.facts.calls[call] = ExternCall(symbol, args)
            return symbol.result
        case TypeSymbol():
            return _construct(body, call, symbol)
        case BuiltinSymbol(name=name):
            return infer_generation(body, call, name) if name in _GENERATION else infer_builtin(body, call, name, hint)
    return _not_callable(body, call, getattr(symbol, "name", ""))


def _not_callable(body: Body, call: ast.Call, what: str) -> Type:
    infer_all(body, call)
    if what != "?":
        body.facts.error("E0319", f"`{what}` cannot be called", call.function, "not a function")
    return UNKNOWN


# -------------------------------------------------------------- functions, parts


def _function(body: Body, call: ast.Call, symbol: FunctionSymbol) -> Type:
    if symbol.part is not None and not _place_part(body, call, symbol):
        infer_all(body, call)
        return UNKNOWN
    args = check_arguments(body, call, symbol.name, symbol.params)
    if args is not None:
        body.facts.calls[call] = FunctionCall(symbol, args)
    return symbol.result


def _place_part(body: Body, call: ast.Call, symbol: FunctionSymbol) -> bool:
    """A part goes where its turns or its text may stand, and is a whole statement or the right side of an assignment."""
    before = body.facts.mark()
    name = symbol.name
    caller = body.function if body.function is not None and body.function.part is not None else None
    body.facts.part_uses.append(PartUse(caller, symbol, body.role, call.span))
    if not body.has_context:
        _misplaced(body, call, f"the part `{name}` writes into a conversation, and there is none in this place", None)
    elif call not in body.placed:
        _misplaced(body, call, f"the part `{name}` must be a whole statement or the right side of an assignment",
                   f"assign it first: `x = {name}(…)`")
    elif symbol.part is PartKind.TURN and (body.role is not None or body.text_part):
        _misplaced(body, call, f"the part `{name}` opens turns of its own, and cannot stand inside a turn",
                   "call it outside the role block")
    elif symbol.part is PartKind.TEXT and body.role is None and not body.text_part:
        _misplaced(body, call, f"the part `{name}` writes text, and no turn is open here",
                   f"open one: `user: {name}(…)`")
    if symbol.part is PartKind.TURN and body.flow.turns in (Turns.EMPTY, Turns.SYSTEM):
        body.flow.turns = Turns.UNKNOWN  # which turns it opens is its own affair
    return not body.facts.failed_since(before)


def _misplaced(body: Body, call: ast.Call, message: str, help: str | None) -> None:
    body.facts.error("E0408", message, call, "", help)


# ----------------------------------------------------------------------- records


def _construct(body: Body, call: ast.Call, symbol: TypeSymbol) -> Type:
    record = symbol.type
    if not isinstance(record, RecordT):
        infer_all(body, call)
        help = None
        if isinstance(record, UnionT):
            help = f"construct a member: `{type_text(record.members[0])}(…)`"
        body.facts.error("E0319", f"`{symbol.name}` is a type, and only record types are constructed like this", call.function,
                         "", help)
        return UNKNOWN
    before = body.facts.mark()
    names = [f.name for f in record.fields]
    extra = call.args[len(names):]
    if extra:
        body.facts.error("E0302", f"`{symbol.name}` has {len(names)} fields, found {len(call.args)} values", extra[0],
                         "one too many")
    positional = tuple(
        ast.Keyword(arg.span, ast.Identifier(arg.span, name), arg) for name, arg in zip(names, call.args)
    )
    check_fields(body, call, record, (*positional, *call.keywords))
    if not body.facts.failed_since(before):
        given = {k.name.text: k.value for k in (*positional, *call.keywords)}
        body.facts.calls[call] = RecordCall(record, tuple(given.get(n) for n in names))
    return record
