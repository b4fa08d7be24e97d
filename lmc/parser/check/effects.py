"""Statements that do nothing: `x == 3`, `s.strip()`, `len(xs)`.  Warned about, because something else was meant."""

from __future__ import annotations

from lmc.parser import ast
from lmc.parser.check.body import Body
from lmc.parser.check.model import BuiltinCall, FunctionCall, MethodCall, RecordCall, ScoreCall
from lmc.parser.check.relations import is_str, known

_WITH_EFFECT = ("print", "input", "fail")


def warn_without_effect(body: Body, value: ast.Expr) -> None:
    """Warn where the value of an expression statement was all there is to it."""
    found = body.facts.expr_types.get(value)
    if found is None or not known(found):
        return
    if isinstance(value, ast.Call):
        call = body.facts.calls.get(value)
        drops = isinstance(call, (MethodCall, RecordCall, ScoreCall))
        drops = drops or isinstance(call, BuiltinCall) and call.name not in _WITH_EFFECT
        # In a turn the text that a `def` gives was surely meant for the prompt.
        drops = drops or body.role is not None and isinstance(call, FunctionCall) and call.target.part is None and is_str(found)
        if not drops:
            return
    help = "assign it: `x = …`" if body.role is None else "assign it: `x = …`, or put it into text: `\"${…}\"`"
    if isinstance(value, ast.Compare) and value.ops == ("==",):
        help = "to assign write one `=`; to check write `assert …`"
    body.facts.warn("W111", "this value is not used", value, "the statement does nothing", help)
