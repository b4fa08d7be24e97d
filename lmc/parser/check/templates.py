"""Text and its holes: what may be shown, and where a hole may generate.

    "Scores: ${notes}"      error: a list in a hole; help names json(x), bullets(xs), lines(xs)

A text that stands as a statement in a role block is prompt; its holes may generate.  Any other text is a value.
"""

from __future__ import annotations

from lmc.parser import ast
from lmc.parser.check.body import Body
from lmc.parser.check.model import UNKNOWN, FunctionCall, GenCall, ImageCall, LocalKind, SelectCall
from lmc.parser.check.relations import fits_literal, is_scalar, known, needs_conversion, type_text
from lmc.types import (
    STR, ContextT, DictT, FallibleT, ListT, LiteralT, NeverT, NoneT, OptionalT, RecordT, StrT, TupleT, Type, UnionT, plain_type,
)


def infer_text(body: Body, expr: ast.Text, hint: Type | None) -> Type:
    prompt = expr in body.placed
    for part in expr.parts:
        if isinstance(part, ast.Hole):
            _hole(body, part, prompt)
    wanted = plain_type(hint) if hint is not None else None
    if isinstance(wanted, (LiteralT, StrT)) and expr.plain is not None and fits_literal(expr.plain, wanted):
        return wanted
    return STR


def _hole(body: Body, hole: ast.Hole, prompt: bool) -> None:
    if prompt:
        body.placed.add(hole.value)
    found = body.infer(hole.value)
    call = body.facts.calls.get(hole.value) if isinstance(hole.value, ast.Call) else None
    generates = isinstance(call, (GenCall, SelectCall))
    shown = generates or isinstance(call, ImageCall)
    if hole.name is not None:
        _bind(body, hole, found, generates, prompt)
    if shown or not known(found):
        return
    if isinstance(call, FunctionCall) and call.target.part is not None:
        body.facts.error("E0408", f"the part `{call.target.name}` cannot stand in a hole", hole.value, "",
                         f"call it as a statement of its own: `{call.target.name}(…)`")
    elif isinstance(found, NeverT) or not is_scalar(found):
        _not_shown(body, hole.value, found)


def _bind(body: Body, hole: ast.Hole, found: Type, generates: bool, prompt: bool) -> None:
    assert hole.name is not None
    if known(found) and not generates:
        body.facts.error("E0403", "a hole binds what is generated in it, and this generates nothing", hole.value, "",
                         f"assign it before the text: `{hole.name.text} = …`, then write `${{{hole.name.text}}}`")
        found = UNKNOWN
    symbol = body.find(hole.name.text)
    if symbol is not None and needs_conversion(found, symbol.type):
        body.convert(hole.value)
    body.bind(hole.name, hole.name.text, found, LocalKind.VARIABLE)


def _not_shown(body: Body, expr: ast.Expr, found: Type) -> None:
    body.facts.error("E0310", f"a hole cannot show a `{type_text(found)}`", expr, f"this is `{type_text(found)}`",
                     _show(expr, found))


def _show(expr: ast.Expr, found: Type) -> str | None:
    shown = expr.text if isinstance(expr, ast.Name) else "…"
    match found:
        case ListT(element) if is_scalar(element):
            return f"say how: `${{bullets({shown})}}`, `${{lines({shown})}}` or `${{json({shown})}}`"
        case ListT() | DictT() | RecordT() | UnionT():
            return f"say how: `${{json({shown})}}`"
        case OptionalT(inner) if is_scalar(inner):
            return f"it may be None: test it first, `if {shown} is not None:`"
        case OptionalT():
            return f"say how: `${{json({shown})}}`"
        case FallibleT():
            return f"it may be an `Error`: `match {shown}:` with `case Error():` and `case _:`"
        case ContextT():
            return "a context cannot be printed; continue from it with `resume`"
        case NoneT():
            return "it has no value; a function that is called for its effect stands as a statement"
        case TupleT():
            return "take it apart: `for i, x in enumerate(xs):`"
    return None
