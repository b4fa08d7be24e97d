"""Calls -> ops: functions, parts, externs, record constructors, builtins and methods.

    solve(q, n=3)        %1: int = call(%q, 3)[callee = "solve", site = "0"]
    greet(name)          a part takes the context first and gives the next one first
    schema(Action)       text, computed now
    xs.split(",")        pure.call(%xs, ",")[function = "split"]

Arguments are computed in the order written.  `lower` writes an expression; it is passed in by `expressions.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from lmc.diagnostics import Span
from lmc.ir.builder import literal
from lmc.ir.core import Literal, Operand, Value
from lmc.ir.ops import Call, ExternCall, Fail, Input, Print, PureCall, RecordMake
from lmc.json_schema import field_list, json_schema
from lmc.parser import ast
from lmc.parser.check import model
from lmc.parser.lower.constants import constant, json_constant
from lmc.parser.lower.frame import Frame, Variant
from lmc.types import CONTEXT, NEVER, NONE, STR, DictT, FallibleT, ListT, RecordT, Type, UnionT, base_type, parts, plain_type

Lower = Callable[[Frame, ast.Expr], Operand]


def call(frame: Frame, expr: ast.Call, lower: Lower, hint: str) -> Operand:
    """The value of a call."""
    info = frame.checked.calls[expr]
    match info:
        case model.FunctionCall(target, args):
            return _function(frame, expr, target, _arguments(frame, expr.span, target.params, args, lower), hint)
        case model.ExternCall(target, args):
            given = _arguments(frame, expr.span, target.params, args, lower)
            return frame.value(ExternCall, expr.span, target.result, hint, args=given, name=target.qualified, pure=target.pure)
        case model.RecordCall(type, args):
            operands = _in_source_order(frame, args, lower)
            given = {f.name: operands[a] for f, a in zip(type.fields, args) if a is not None}
            return make_record(frame, expr.span, type, given, hint)
        case model.BuiltinCall():
            return _BUILTINS.get(info.name, _pure)(frame, expr, info, lower, hint)
        case model.MethodCall(name, receiver, args):
            value = lower(frame, receiver)
            return _pure_call(frame, expr, name, [value, *_given(frame, args, lower)], hint)
    raise AssertionError(f"{type(info).__name__} is no expression: generating calls are statements")


def make_record(frame: Frame, span: Span, type: RecordT, given: Mapping[str, Operand], hint: str = "") -> Operand:
    """A record of the fields given; the others take their defaults."""
    assert isinstance(type, RecordT), type
    values = [given[f.name] if f.name in given else json_constant(frame, span, f.default, f.type) for f in type.fields]
    return frame.value(RecordMake, span, type, hint, values=tuple(values))


def as_list(frame: Frame, span: Span, items: Operand, type: Type) -> Operand:
    """What is run over, as a list: the keys of a dict, the characters of a text."""
    type = plain_type(type)
    if isinstance(type, ListT):
        return items
    if isinstance(type, DictT):
        return frame.value(PureCall, span, ListT(type.key), "keys", args=(items,), function="keys")
    return frame.value(PureCall, span, ListT(STR), "characters", args=(literal(r"[\s\S]"), items), function="findall")


# --------------------------------------------------------------------- arguments


def _in_source_order(frame: Frame, args: tuple[ast.Expr | None, ...], lower: Lower) -> dict[ast.Expr, Operand]:
    """The operands of the arguments given: written first, computed first, whatever parameter they are for."""
    written = sorted((a for a in args if a is not None), key=lambda a: (a.span.line, a.span.column))
    return {arg: lower(frame, arg) for arg in written}


def _arguments(frame: Frame, span: Span, params: tuple[model.ParamInfo, ...], args: tuple[ast.Expr | None, ...],
               lower: Lower) -> tuple[Operand, ...]:
    operands = _in_source_order(frame, args, lower)
    return tuple(
        operands[arg] if arg is not None else constant(frame, span, frame.checked.values[param.default], param.type, param.name)
        for param, arg in zip(params, args)
    )


def _given(frame: Frame, args: tuple[ast.Expr | None, ...], lower: Lower) -> list[Operand]:
    """The arguments up to the last one given; one left out before it is None."""
    operands = _in_source_order(frame, args, lower)
    found = [operands[a] if a is not None else literal(None) for a in args]
    while found and args[len(found) - 1] is None:
        found.pop()
    return found


# --------------------------------------------------------------------- functions


def _function(frame: Frame, expr: ast.Call, target: model.FunctionSymbol, args: tuple[Operand, ...], hint: str) -> Operand:
    if target.part is None:
        return frame.value(Call, expr.span, target.result, hint, args=args, callee=target.qualified, site=frame.site())
    role = frame.role if target.part is model.PartKind.TEXT else None
    options = dict(sorted(frame.options.items()))
    variant = Variant(target, role, tuple((name, base_type(option.type)) for name, option in options.items()))
    frame.wanted.setdefault(variant)
    results = (Value(CONTEXT, "c"), Value(target.result, hint))
    operands = (frame.context, *args, *options.values())
    frame.add(Call, expr.span, results, args=operands, callee=variant.name, site=frame.site())
    frame.context = results[0]
    return results[1]


# ---------------------------------------------------------------------- builtins


def _pure(frame: Frame, expr: ast.Call, info: model.BuiltinCall, lower: Lower, hint: str) -> Operand:
    return _pure_call(frame, expr, info.name, _given(frame, info.args, lower), hint)


def _pure_call(frame: Frame, expr: ast.Call, name: str, args: list[Operand], hint: str) -> Operand:
    return frame.value(PureCall, expr.span, frame.checked.expr_types[expr], hint, args=tuple(args), function=name)


def _print(frame: Frame, expr: ast.Call, info: model.BuiltinCall, lower: Lower, hint: str) -> Operand:
    frame.add(Print, expr.span, values=tuple(_given(frame, info.args, lower)))
    return Literal(None, NONE)


def _input(frame: Frame, expr: ast.Call, info: model.BuiltinCall, lower: Lower, hint: str) -> Operand:
    prompt, = _given(frame, info.args, lower) or [literal("")]
    return frame.value(Input, expr.span, STR, hint, prompt=prompt)


def _fail(frame: Frame, expr: ast.Call, info: model.BuiltinCall, lower: Lower, hint: str) -> Operand:
    message, = _given(frame, info.args, lower)
    frame.add(Fail, expr.span, message=message)
    return Literal(None, NEVER)


def _schema(frame: Frame, expr: ast.Call, info: model.BuiltinCall, lower: Lower, hint: str) -> Operand:
    return literal(json.dumps(json_schema(info.type), ensure_ascii=False, separators=(",", ":")))


def _fields(frame: Frame, expr: ast.Call, info: model.BuiltinCall, lower: Lower, hint: str) -> Operand:
    return literal(field_list(info.type))


def _json(frame: Frame, expr: ast.Call, info: model.BuiltinCall, lower: Lower, hint: str) -> Operand:
    """The tag of a union or an error follows from the static type, which is passed as text where there is one in it."""
    args = _given(frame, info.args, lower)
    if info.type is not None and any(isinstance(t, (UnionT, FallibleT)) for t in parts(info.type)):
        args.append(literal(str(info.type)))
    return _pure_call(frame, expr, "json", args, hint)


_BUILTINS: Mapping[str, Callable[[Frame, ast.Call, model.BuiltinCall, Lower, str], Operand]] = {
    "print": _print, "input": _input, "fail": _fail, "schema": _schema, "fields": _fields, "json": _json,
}
