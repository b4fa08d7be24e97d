"""Types of expressions: the entrance, names, attributes, index and slice, conditions.

    infer(body, expr, hint)     the type of `expr`; `hint` is the type wanted where it stands

Operators, literals, text and calls have files of their own.  This file knows nothing of statements.
"""

from __future__ import annotations

from lmc.parser import ast
from lmc.parser.check.body import Body
from lmc.parser.check.calls import infer_call
from lmc.parser.check.iteration import no_element
from lmc.parser.check.literals import infer_comprehension, infer_dict, infer_list, infer_record
from lmc.parser.check.model import UNKNOWN, BuiltinSymbol, ConstSymbol, ModuleSymbol, Symbol, TypeSymbol
from lmc.parser.check.names import resolve_name
from lmc.parser.check.narrowing import check_condition
from lmc.parser.check.operators import infer_binary, infer_bool_op, infer_compare, infer_unary
from lmc.parser.check.relations import fits_literal, is_int, is_str, join, known, type_text
from lmc.parser.check.scope import BrokenSymbol
from lmc.parser.check.suggest import nearest
from lmc.parser.check.templates import infer_text
from lmc.types import (
    BOOL, CONTEXT, FLOAT, INT, NONE, STR, DictT, FallibleT, ListT, LiteralT, NeverT, OptionalT, RangeT, RecordT, StrT, TupleT, Type,
    UnionT, base_type, plain_type,
)


def infer(body: Body, expr: ast.Expr, hint: Type | None) -> Type:
    """The type of any expression."""
    match expr:
        case ast.Constant():
            return _constant(body, expr, hint)
        case ast.Text():
            return infer_text(body, expr, hint)
        case ast.Name():
            return _name(body, expr)
        case ast.Here():
            return _here(body, expr)
        case ast.Attribute():
            return _attribute(body, expr)
        case ast.Index():
            return _index(body, expr)
        case ast.Slice():
            return _slice(body, expr)
        case ast.Call():
            return infer_call(body, expr, hint)
        case ast.Unary():
            return infer_unary(body, expr, hint)
        case ast.Binary():
            return infer_binary(body, expr, hint)
        case ast.Compare():
            return infer_compare(body, expr)
        case ast.BoolOp():
            return infer_bool_op(body, expr)
        case ast.Conditional():
            return _conditional(body, expr, hint)
    return _collection(body, expr, hint)


def _collection(body: Body, expr: ast.Expr, hint: Type | None) -> Type:
    match expr:
        case ast.ListExpr():
            return infer_list(body, expr, hint)
        case ast.DictExpr():
            return infer_dict(body, expr, hint)
        case ast.RecordExpr():
            return infer_record(body, expr, hint)
        case ast.Comprehension():
            return infer_comprehension(body, expr, hint)
        case ast.BrokenExpr():
            for part in expr.parts:
                # A type among them was an argument where types may stand.
                if not (isinstance(part, ast.Name) and isinstance(body.file.type_symbol(part.text), TypeSymbol)):
                    body.infer(part)
            return UNKNOWN
    assert isinstance(expr, ast.TupleExpr), expr
    for element in expr.elements:
        body.infer(element)
    body.facts.error("E0313", "a tuple cannot be a value", expr, "",
                     "use a list `[…]`, or a record where the parts differ in type")
    return UNKNOWN


def _constant(body: Body, expr: ast.Constant, hint: Type | None) -> Type:
    value = expr.value
    wanted = plain_type(hint) if hint is not None else None
    if value is not None and isinstance(wanted, (LiteralT, RangeT)) and fits_literal(value, wanted):
        return wanted
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        body.facts.error("E0308", "an integer must fit 64 bits", expr)
        return INT
    return {bool: BOOL, int: INT, float: FLOAT, type(None): NONE}[type(value)]


def _here(body: Body, expr: ast.Here) -> Type:
    if not body.has_context:
        body.facts.error("E0410", "`here` is the conversation of a function, and there is none in this place", expr)
    return CONTEXT


# ------------------------------------------------------------ names, attributes


def _name(body: Body, expr: ast.Name) -> Type:
    symbol = resolve_name(body, expr)
    if symbol is None:
        return UNKNOWN
    path = body.path(expr)
    if path is not None:
        return body.flow.narrowed.get(path, symbol.type) if symbol not in body.retyped else UNKNOWN
    return _value_of(body, expr, symbol)


def _value_of(body: Body, expr: ast.Expr, symbol: Symbol) -> Type:
    """The type of a top-level name where a value is wanted."""
    if isinstance(symbol, ConstSymbol):
        return symbol.type
    if not isinstance(symbol, BrokenSymbol):
        kind, help = _not_a_value(symbol)
        body.facts.error("E0209", f"`{symbol.name}` is {kind}, not a value", expr, f"this is {kind}", help)
    return UNKNOWN


def _not_a_value(symbol: Symbol) -> tuple[str, str | None]:
    match symbol:
        case TypeSymbol():
            return "a type", f"to show it in a prompt write `schema({symbol.name})` or `fields({symbol.name})`"
        case ModuleSymbol():
            return "an imported file", f"use one of its names: `{symbol.name}.…`"
        case BuiltinSymbol():
            return "a built-in function", f"call it: `{symbol.name}(…)`"
    return "a function", f"call it: `{symbol.name}(…)`"


def _attribute(body: Body, expr: ast.Attribute) -> Type:
    if isinstance(expr.value, ast.Name) and body.find(expr.value.text) is None and body.file.module_of(expr.value):
        symbol = body.file.member(expr)
        if symbol is None:
            return UNKNOWN
        body.facts.symbols[expr] = symbol
        return _value_of(body, expr, symbol)
    receiver = body.infer(expr.value)
    if not known(receiver):
        return UNKNOWN
    found = _field(body, expr, receiver)
    path = body.path(expr)
    return body.flow.narrowed.get(path, found) if path is not None else found


def _field(body: Body, expr: ast.Attribute, receiver: Type) -> Type:
    name = expr.name.text
    if isinstance(receiver, RecordT):
        field = receiver.field(name)
        if field is not None:
            return field.type
        near = nearest(name, [f.name for f in receiver.fields])
        names = ", ".join(f"`{f.name}`" for f in receiver.fields)
        body.facts.error("E0318", f"`{type_text(receiver)}` has no field `{name}`", expr.name, "unknown field",
                         f"did you mean `{near}`?" if near else f"its fields: {names}")
    elif isinstance(receiver, UnionT):
        body.facts.error("E0318", f"`{type_text(receiver)}` may be any of {_names(receiver)}, so a field cannot be taken yet",
                         expr.name,
                         "which member is it?", f"use `match`: `case {type_text(receiver.members[0])}(…):`")
    elif isinstance(receiver, OptionalT):
        body.facts.error("E0318", f"this may be None, so `.{name}` cannot be taken", expr.value,
                         f"this is `{type_text(receiver)}`", "test it first: `if x is not None:`")
    elif isinstance(receiver, FallibleT):
        body.facts.error("E0318", f"this may be an `Error`, so `.{name}` cannot be taken yet", expr.value,
                         f"this is `{type_text(receiver)}`", "use `match`: `case Error():` and `case _:`")
    else:
        body.facts.error("E0318", f"`{type_text(receiver)}` has no `{name}`", expr.name, "only records have fields",
                         _instead_of_field(expr, receiver))
    return UNKNOWN


def _instead_of_field(expr: ast.Attribute, receiver: Type) -> str | None:
    """What to write where something that is no record is asked for a field."""
    name = expr.name.text
    if name in ("len", "length", "size", "count") and (is_str(receiver) or isinstance(receiver, (ListT, DictT))):
        return f"write `len({expr.value.text if isinstance(expr.value, ast.Name) else 'x'})`"
    if isinstance(receiver, DictT):
        return f'a dict has keys: `["{name}"]`'
    return "methods are called: `.strip()`" if is_str(receiver) else None


def _names(union: UnionT) -> str:
    return ", ".join(f"`{type_text(m)}`" for m in union.members)


# ------------------------------------------------------------------- index, slice


def _index(body: Body, expr: ast.Index) -> Type:
    receiver = body.infer(expr.value)
    match receiver:
        case ListT(element):
            _expect_index(body, expr.index)
            return element if not isinstance(element, NeverT) else no_element(body, expr.value)
        case DictT(key, value):
            body.expect(expr.index, base_type(key), "the key")
            return value
        case TupleT(items):
            return _tuple_item(body, expr, items)
        case StrT() | LiteralT() if is_str(receiver):
            _expect_index(body, expr.index)
            return STR
    body.infer(expr.index)
    if known(receiver):
        _not_indexable(body, expr.value, receiver, expr.index)
    return UNKNOWN


def _expect_index(body: Body, index: ast.Expr) -> None:
    body.expect(index, INT, "an index")


def _not_indexable(body: Body, expr: ast.Expr, receiver: Type, index: ast.Expr | None = None) -> None:
    help = None
    if isinstance(receiver, RecordT) and receiver.fields:
        asked = [field.name for field in receiver.fields if isinstance(index, ast.Text) and index.plain == field.name]
        help = f"take a field with a dot: `.{(asked or [receiver.fields[0].name])[0]}`"
    elif isinstance(receiver, OptionalT):
        help = "it may be None: test it first, `if x is not None:`"
    body.facts.error("E0319", f"`{type_text(receiver)}` cannot be indexed", expr, f"this is `{type_text(receiver)}`", help)


def _tuple_item(body: Body, expr: ast.Index, items: tuple[Type, ...]) -> Type:
    body.infer(expr.index)
    index = expr.index
    value = index.value if isinstance(index, ast.Constant) else None
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(items):
        return items[value]
    body.facts.error("E0319", f"take an element with a number from 0 to {len(items) - 1}", index, "",
                     "or take the tuple apart: `for i, x in enumerate(xs):`")
    return UNKNOWN


def _slice(body: Body, expr: ast.Slice) -> Type:
    receiver = body.infer(expr.value)
    for bound in (expr.start, expr.stop, expr.step):
        if bound is not None:
            _expect_index(body, bound)
    if isinstance(receiver, ListT):
        return ListT(receiver.element)
    if is_str(receiver):
        return STR
    if known(receiver):
        _not_indexable(body, expr.value, receiver)
    return UNKNOWN


# ------------------------------------------------------------------- conditional


def _conditional(body: Body, expr: ast.Conditional, hint: Type | None) -> Type:
    when_true, when_false = check_condition(body, expr.condition)
    with body.narrowed(when_true):
        then = body.infer(expr.then, hint)
    with body.narrowed(when_false):
        otherwise = body.infer(expr.otherwise, hint if hint is not None else then)
    found = join(then, otherwise)
    if found is None:
        body.facts.error("E0301", f"the two sides are `{type_text(then)}` and `{type_text(otherwise)}`", expr,
                         "the sides must have one type")
        return UNKNOWN
    if base_type(found) == FLOAT:
        for side, type in ((expr.then, then), (expr.otherwise, otherwise)):
            if is_int(type):
                body.convert(side)
    return found
