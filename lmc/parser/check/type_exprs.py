"""Type expressions: from `1..5`, `"A" | "B"`, `list[str](max_items=3)`, `Search | Calc` to types.

    patronus: str(max_len=20) | None      ->  OptionalT(StrT(max_len=20))

A mistake is reported once and gives `UNKNOWN`.  This file knows no values but the constants that a refinement may name.
"""

from __future__ import annotations

from lmc.parser import ast, words
from lmc.parser.check.constraints import check_regex, has_value
from lmc.parser.check.model import UNKNOWN, ConstSymbol, TypeSymbol
from lmc.parser.check.relations import is_int, is_str, known, type_text
from lmc.parser.check.scope import BUILTIN_TYPES, BrokenSymbol, FileScope
from lmc.parser.check.suggest import did_you_mean, nearest
from lmc.types import (
    ERROR, ContextT, DictT, FallibleT, ListT, LiteralT, NoneT, OptionalT, RangeT, RecordT, StrT, TupleT, Type, UnionT, fallible,
)

_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1


def resolve_type(scope: FileScope, expr: ast.Expr, name: str | None = None) -> Type:
    """The type that `expr` spells; `name` is the qualified name of the alias it is for, which a union of records takes."""
    found = _resolve(scope, expr, name)
    scope.facts.types_of[expr] = found
    return found


def _resolve(scope: FileScope, expr: ast.Expr, name: str | None) -> Type:
    match expr:
        case ast.Name() | ast.Attribute():
            return _named(scope, expr)
        case ast.Constant(value=None):
            return NoneT()
        case ast.Constant(value=bool() | int()) | ast.Unary():
            return _number_literal(scope, expr)
        case ast.Text():
            return _text_literal(scope, expr)
        case ast.Binary(op=".."):
            return _range(scope, expr)
        case ast.Binary(op="|"):
            return _union(scope, expr, name)
        case ast.Index():
            return _generic(scope, expr)
        case ast.Call():
            return _refined(scope, expr)
        case ast.BrokenExpr():
            return UNKNOWN
    return _not_a_type(scope, expr)


#: How the types of Python's `typing` are written here.
_TYPING = {
    "List": "list[T]", "Dict": "dict[K, V]", "Optional": "T | None", "Union": "A | B", "Literal": '"a" | "b"', "Sequence": "list[T]",
    "Mapping": "dict[K, V]", "Tuple": "list[T], or a record", "tuple": "list[T], or a record", "set": "list[T]", "Set": "list[T]",
}


def _not_a_type(scope: FileScope, expr: ast.Expr) -> Type:
    if isinstance(expr, ast.Index) and isinstance(expr.value, ast.Name) and expr.value.text in _TYPING:
        name = expr.value.text
        scope.facts.error("E0313", f"`{name}[…]` is a type of Python", expr, "", f"write `{_TYPING[name]}`")
        return UNKNOWN
    scope.facts.error("E0313", "this is not a type", expr, "expected a type",
                      'types are `str`, `int`, `1..5`, `"A" | "B"`, `list[T]`, `T | None` and the names of `type` definitions')
    return UNKNOWN


def _named(scope: FileScope, expr: ast.Name | ast.Attribute) -> Type:
    symbol = scope.type_symbol(expr.text) if isinstance(expr, ast.Name) else scope.member(expr)
    if isinstance(symbol, BrokenSymbol):
        if isinstance(expr, ast.Name) and scope.in_progress(expr.text):
            scope.facts.error("E0901", f"`{expr.text}` contains itself; this version does not execute recursive types", expr,
                              "the type is used in its own definition",
                              "bound the depth: write one type for each level, or keep the parts in a flat list")
        return UNKNOWN
    if isinstance(symbol, TypeSymbol):
        scope.facts.symbols[expr] = symbol
        return symbol.type
    if symbol is not None:
        scope.facts.error("E0313", f"`{symbol.name}` is not a type", expr, "expected a type")
        return UNKNOWN
    if isinstance(expr, ast.Name) and expr.text not in words.NOT_VALUES:
        _unknown_name(scope, expr)
    return UNKNOWN


_HABITS = {"string": "str", "String": "str", "integer": "int", "boolean": "bool", "double": "float", "number": "float",
           "List": "list[…]",
           "Optional": "T | None", "Dict": "dict[…]", "Literal": '"A" | "B"', "Any": "a `type` of your own"}
_NO_TYPES = {"void": "a function that returns nothing has no `->`", "any": "every value has one type: name it, or define a `type`",
             "object": "every value has one type: name it, or define a `type`"}


def _unknown_name(scope: FileScope, expr: ast.Name) -> None:
    if expr.text in ("list", "dict"):
        spelled = "list[str]" if expr.text == "list" else "dict[str, int]"
        scope.facts.error("E0313", f"`{expr.text}` needs the type of its elements", expr, "elements of which type?",
                          f"for example `{spelled}`")
        return
    types = [n for n, item in scope.items.items() if isinstance(item, (ast.TypeAlias, ast.RecordDef))]
    near = _HABITS.get(expr.text) or nearest(expr.text, [*types, *scope.imported, *BUILTIN_TYPES, "list", "dict"])
    help = f"did you mean `{near}`?" if near else _NO_TYPES.get(expr.text, f"define it: `type {expr.text}: …`")
    scope.facts.error("E0313", f"unknown type `{expr.text}`", expr, "not a type that is defined here", help)


# ------------------------------------------------------------- literals, ranges


def _number_literal(scope: FileScope, expr: ast.Expr) -> Type:
    value = _constant(scope, expr)
    return LiteralT((value,)) if isinstance(value, int) else _not_a_type(scope, expr)


def _text_literal(scope: FileScope, expr: ast.Text) -> Type:
    if expr.plain is None:
        scope.facts.error("E0313", "a literal type is fixed text: it cannot have a hole", expr)
        return UNKNOWN
    return LiteralT((expr.plain,))


def _range(scope: FileScope, expr: ast.Binary) -> Type:
    low, high = (_whole(scope, side, "a bound of a range") for side in (expr.left, expr.right))
    if low is None or high is None:
        return UNKNOWN
    if low > high:
        scope.facts.error("E0602", f"the range `{low}..{high}` holds no number", expr, "the first bound is above the second",
                          f"did you mean `{high}..{low}`?")
        return UNKNOWN
    return RangeT(low, high)


def _whole(scope: FileScope, expr: ast.Expr, what: str) -> int | None:
    """An int known at compile time, reported where it is none."""
    value = _constant(scope, expr)
    if isinstance(value, int) and not isinstance(value, bool):
        if _INT_MIN <= value <= _INT_MAX:
            return value
        scope.facts.error("E0602", f"{what} must fit 64 bits", expr)
        return None
    scope.facts.error("E0313", f"{what} must be an integer known at compile time", expr, "expected an integer or a constant")
    return None


def _constant(scope: FileScope, expr: ast.Expr) -> object:
    match expr:
        case ast.Constant():
            return expr.value
        case ast.Text():
            return expr.plain
        case ast.Unary(op="-" | "+", operand=operand):
            inner = _constant(scope, operand)
            if isinstance(inner, int) and not isinstance(inner, bool):
                return -inner if expr.op == "-" else inner
        case ast.Name() | ast.Attribute():
            symbol = scope.lookup(expr.text) if isinstance(expr, ast.Name) else scope.member(expr)
            if isinstance(symbol, ConstSymbol):
                scope.facts.symbols[expr] = symbol
                return scope.facts.constants.get(symbol)
    return None


# ---------------------------------------------------------------------- unions


def _union(scope: FileScope, expr: ast.Binary, name: str | None) -> Type:
    members = _members(expr)
    types = [(m, resolve_type(scope, m)) for m in members]
    if not all(known(t) for _, t in types):
        return UNKNOWN
    optional = any(isinstance(t, NoneT) or isinstance(t, OptionalT) for _, t in types)
    rest = [(m, t.inner if isinstance(t, OptionalT) else t) for m, t in types if not isinstance(t, NoneT)]
    if not rest:
        return NoneT()
    # A named union of records may have `Error` among its members; else it stands beside any one type.
    fails = len(rest) > 1 and _may_fail(types) and not (name and all(isinstance(t, (RecordT, UnionT)) for _, t in rest))
    if fails:
        errors = [m for m, t in rest if t == ERROR or isinstance(t, FallibleT)]
        if len(errors) > 1:
            scope.facts.error("E0602", "`Error` is in the union twice", errors[1], "duplicate")
            return UNKNOWN
        rest = [(m, t.inner if isinstance(t, FallibleT) else t) for m, t in rest if t != ERROR]
    inner = _union_of(scope, expr, rest, name)
    if optional and known(inner):
        inner = OptionalT(inner)
    return fallible(inner) if fails and known(inner) else inner


def _may_fail(types: list[tuple[ast.Expr, Type]]) -> bool:
    return any(t == ERROR or isinstance(t, FallibleT) for _, t in types)


def _members(expr: ast.Expr) -> list[ast.Expr]:
    if isinstance(expr, ast.Binary) and expr.op == "|":
        return _members(expr.left) + _members(expr.right)
    return [expr]


def _union_of(scope: FileScope, expr: ast.Expr, members: list[tuple[ast.Expr, Type]], name: str | None) -> Type:
    types = [t for _, t in members]
    if len(types) == 1:
        return types[0]
    if all(isinstance(t, LiteralT) for t in types):
        return _literals(scope, members)
    if all(isinstance(t, (RecordT, UnionT)) for t in types):
        return _tagged(scope, expr, members, name)
    scope.facts.error("E0314", "a union is of literals, or of records, or of one type and None", expr,
                      "these cannot be told apart: " + ", ".join(f"`{type_text(t)}`" for t in types),
                      "put each alternative into a record: `type A: value: …`, then `type U = A | B`")
    return UNKNOWN


def _literals(scope: FileScope, members: list[tuple[ast.Expr, Type]]) -> Type:
    values: list[str | int | bool] = []
    for expr, type in members:
        for value in type.values:
            if any(value == v and value.__class__ is v.__class__ for v in values):
                scope.facts.error("E0602", f"the literal `{type_text(LiteralT((value,)))}` is given twice", expr, "duplicate")
            elif values and value.__class__ is not values[0].__class__:
                scope.facts.error("E0314", "the literals of a union must be all strings, all integers or all bools", expr)
                return UNKNOWN
            else:
                values.append(value)
    return LiteralT(tuple(values))


def _tagged(scope: FileScope, expr: ast.Expr, members: list[tuple[ast.Expr, Type]], name: str | None) -> Type:
    if name is None:
        scope.facts.error("E0314", "a union of records needs a name", expr, "it is not named here",
                          f"define it: `type Name = {' | '.join(type_text(t) for _, t in members)}`, and write `Name` here")
        return UNKNOWN
    records: list[RecordT] = []
    for node, type in members:
        for record in type.members if isinstance(type, UnionT) else (type,):
            if any(type_text(r) == type_text(record) for r in records):
                scope.facts.error("E0602", f"`{type_text(record)}` is in the union twice", node, "duplicate",
                                  "members are told apart by name")
            elif record.field("type") is not None:
                scope.facts.error("E0314", f"`{type_text(record)}` has a field named `type`, which a union writes itself", node,
                                  "member with a field `type`", "rename the field: `kind`, for example")
            else:
                records.append(record)
    return UnionT(name, tuple(records))


# ------------------------------------------------------- list[T], str(max_len=…)


def _generic(scope: FileScope, expr: ast.Index) -> Type:
    kind = expr.value.text if isinstance(expr.value, ast.Name) else None
    if kind == "list" and not isinstance(expr.index, ast.TupleExpr):
        element = resolve_type(scope, expr.index)
        return ListT(element) if known(element) else UNKNOWN
    if kind == "dict" and isinstance(expr.index, ast.TupleExpr) and len(expr.index.elements) == 2:
        return _dict(scope, *expr.index.elements)
    if kind in ("list", "dict"):
        right = "list[T]" if kind == "list" else "dict[K, V]"
        scope.facts.error("E0313", f"`{kind}` is written `{right}`", expr, f"expected `{right}`")
        return UNKNOWN
    return _not_a_type(scope, expr)


def _dict(scope: FileScope, key_expr: ast.Expr, value_expr: ast.Expr) -> Type:
    key, value = resolve_type(scope, key_expr), resolve_type(scope, value_expr)
    if not (known(key) and known(value)):
        return UNKNOWN
    if not (is_str(key) or is_int(key)):
        scope.facts.error("E0313", f"the keys of a dict are `str` or `int`, not `{type_text(key)}`", key_expr)
        return UNKNOWN
    return DictT(key, value)


def _refined(scope: FileScope, expr: ast.Call) -> Type:
    base = resolve_type(scope, expr.function)
    if not known(base):
        return UNKNOWN
    known_options = {StrT: ("min_len", "max_len", "regex"), ListT: ("min_items", "max_items")}.get(type(base))
    if known_options is None or expr.args:
        scope.facts.error("E0313", f"`{type_text(base)}` takes no refinement like this", expr, "",
                          "`str` takes `min_len=`, `max_len=`, `regex=`; `list[T]` takes `min_items=`, `max_items=`")
        return UNKNOWN
    options = _refinements(scope, expr, known_options)
    if options is None:
        return UNKNOWN
    for low, high in (("min_len", "max_len"), ("min_items", "max_items")):
        if options.get(low) is not None and options.get(high) is not None and options[low] > options[high]:
            scope.facts.error("E0602", f"no value has `{low}={options[low]}` and `{high}={options[high]}`", expr)
            return UNKNOWN
    if isinstance(base, ListT):
        return ListT(base.element, **options)
    refined = StrT(**options)
    if refined.regex is None or len(options) == 1 or has_value(refined):
        return refined
    scope.facts.error("E0602", "no text matches the regex within these lengths", expr, "", "change the lengths or the regex")
    return UNKNOWN


def _refinements(scope: FileScope, expr: ast.Call, allowed: tuple[str, ...]) -> dict[str, object] | None:
    options: dict[str, object] = {}
    for keyword in expr.keywords:
        name = keyword.name.text
        if name not in allowed or name in options:
            problem = f"`{name}` is given twice" if name in options else f"unknown refinement `{name}`"
            scope.facts.error("E0313", problem, keyword.name, "", did_you_mean(name, allowed))
            return None
        value = _regex(scope, keyword.value) if name == "regex" else _length(scope, keyword.value, name)
        if value is None:
            return None
        options[name] = value
    return options


def _length(scope: FileScope, expr: ast.Expr, name: str) -> int | None:
    value = _whole(scope, expr, f"`{name}`")
    if value is not None and value < 0:
        scope.facts.error("E0602", f"`{name}` must not be negative", expr)
        return None
    return value


def _regex(scope: FileScope, expr: ast.Expr) -> str | None:
    pattern = _constant(scope, expr)
    if not isinstance(pattern, str):
        scope.facts.error("E0601", "a regex must be a string known at compile time", expr, "", 'write it as `r"…"`')
        return None
    return pattern if check_regex(scope.facts, expr, pattern) else None


def is_data(type: Type) -> bool:
    """Whether values of the type have a form outside the program: JSON, a schema, something a host can take."""
    match type:
        case ListT(element) | DictT(value=element):
            return is_data(element)
        case OptionalT(inner) | FallibleT(inner):
            return is_data(inner)
        case RecordT():
            return all(is_data(f.type) for f in type.fields)
        case UnionT():
            return all(is_data(m) for m in type.members)
    return not isinstance(type, (ContextT, TupleT))


def is_generable(type: Type) -> bool:
    """Whether a model can be made to write a value of the type: data of a fixed shape."""
    match type:
        case ListT(element):
            return is_generable(element)
        case OptionalT(inner):
            return is_generable(inner)
        case RecordT():
            return all(is_generable(f.type) for f in type.fields)
        case UnionT():
            return all(is_generable(m) for m in type.members)
    return is_data(type) and not isinstance(type, (DictT, NoneT, FallibleT))


