"""The nodes of expressions, one function a grammar rule; `build.py` calls them bottom-up."""

from __future__ import annotations

from lark import Token, Tree

from lmc.diagnostics import Span
from lmc.parser.ast import (
    Attribute, Binary, BoolOp, BrokenExpr, Call, Compare, Comprehension, Conditional, Constant, DictExpr, Expr, ForClause, Here, Hole,
    Identifier, Index, Keyword, ListExpr, Name, RecordExpr, Slice, TupleExpr, Unary,
)
from lmc.parser.builder import Builder

_CONSTANTS = {"None": None, "True": True, "False": False}
_MAX_DIGITS = 19
_MAX_INT = 2**63


def _hole(builder: Builder, span: Span, kids: list) -> Hole:
    name, value = kids
    return Hole(span, value, builder.binding(name, "a variable"))


def _name(builder: Builder, span: Span, kids: list) -> Expr:
    token = kids[0]
    if token in _CONSTANTS:
        return Constant(span, _CONSTANTS[token])
    return Here(span) if token == "here" else builder.name(token)


def _integer(builder: Builder, span: Span, kids: list) -> Constant:
    return Constant(span, integer(builder, kids[0]))


def integer(builder: Builder, token: Token) -> int:
    """The value of an INT token; too large a one is reported and becomes 0."""
    digits = token.replace("_", "").lstrip("0") or "0"
    # Python's own int() refuses thousands of digits.
    if len(digits) <= _MAX_DIGITS and int(digits) <= _MAX_INT:
        return int(digits)
    builder.error("E0014", "this integer is too large", builder.at(token), "an `int` is a signed 64-bit number",
                  "use a `float`, or keep the digits in a string")
    return 0


def _floating(builder: Builder, span: Span, kids: list) -> Constant:
    return Constant(span, floating(builder, kids[0]))


def floating(builder: Builder, token: Token) -> float:
    value = float(token.replace("_", ""))
    if value == float("inf"):
        builder.error("E0014", "this number is too large for a `float`", builder.at(token), "beyond 1.8e308",
                      "write a smaller number")
        return 0.0
    return value


def _string(builder: Builder, span: Span, kids: list) -> Expr:
    return builder.text(kids[0])


def _conditional(builder: Builder, span: Span, kids: list) -> Conditional:
    then, _, condition, _, otherwise = kids
    return Conditional(span, condition, then, otherwise)


def _bool_op(op: str):
    def build(builder: Builder, span: Span, kids: list) -> BoolOp:
        return BoolOp(span, op, tuple(kid for kid in kids if not isinstance(kid, Token)))

    return build


def _not(builder: Builder, span: Span, kids: list) -> Unary:
    return Unary(span, "not", kids[1])


def _unary(builder: Builder, span: Span, kids: list) -> Unary:
    return Unary(span, str(kids[0]), kids[1])


def _binary(builder: Builder, span: Span, kids: list) -> Binary:
    left, op, right = kids
    return Binary(left.span.to(right.span), str(op), left, right)


def _union(builder: Builder, span: Span, kids: list) -> Expr:
    """`a | b | c`, as a balanced tree: a literal type may have hundreds of members, and `|` is associative."""
    if len(kids) == 1:
        return kids[0]
    middle = (len(kids) + 1) // 2
    left, right = _union(builder, span, kids[:middle]), _union(builder, span, kids[middle:])
    return Binary(left.span.to(right.span), "|", left, right)


def _comparator(builder: Builder, span: Span, kids: list) -> str:
    return " ".join(kids)


MAX_COMPARISONS = 50
"""In one chain.  Each is asked only where those before it hold, so each is a block inside the one before."""


def _compare(builder: Builder, span: Span, kids: list) -> Compare:
    if len(kids) // 2 > MAX_COMPARISONS:
        builder.error("E0015", f"more than {MAX_COMPARISONS} comparisons in one chain", span, f"{len(kids) // 2} in a row",
                      "join shorter chains with `and`: `a < b < c` is `a < b and b < c`")
    return Compare(span, kids[0], tuple(kids[1::2]), tuple(kids[2::2]))


def _attribute(builder: Builder, span: Span, kids: list) -> Attribute:
    return Attribute(span, kids[0], builder.label(kids[1]))


def _call(builder: Builder, span: Span, kids: list) -> Call | BrokenExpr:
    function, _, *args, _ = kids
    late = next((arg for before, arg in zip(args, args[1:]) if isinstance(before, Keyword) and not isinstance(arg, Keyword)), None)
    if late is not None:
        builder.error("E0111", "a positional argument after a keyword argument", late.span, "this one has no name",
                      "name it, or move it before the named ones")
        return BrokenExpr(span, tuple(arg.value if isinstance(arg, Keyword) else arg for arg in args))
    positional = tuple(arg for arg in args if not isinstance(arg, Keyword))
    return Call(span, function, positional, tuple(arg for arg in args if isinstance(arg, Keyword)))


def _argument(builder: Builder, span: Span, kids: list) -> Expr | Keyword:
    return kids[0] if len(kids) == 1 else keyword(builder, span, kids)


def keyword(builder: Builder, span: Span, kids: list) -> Keyword:
    """`name = value`."""
    return Keyword(span, builder.label(kids[0]), kids[1])


def _index(builder: Builder, span: Span, kids: list) -> Index | Slice:
    value, _, subscript, _ = kids
    if not isinstance(subscript, Tree):
        return Index(span, value, subscript)
    parts = {part.data: part.children[0] for part in subscript.children if isinstance(part, Tree)}
    return Slice(span, value, parts.get("slice_start"), parts.get("slice_stop"), parts.get("slice_step"))


def _subscript(builder: Builder, span: Span, kids: list) -> Expr:
    return kids[0]


def _subscripts(builder: Builder, span: Span, kids: list) -> TupleExpr:
    return TupleExpr(span, tuple(kids))


def _list(builder: Builder, span: Span, kids: list) -> ListExpr:
    return ListExpr(span, tuple(kids[1:-1]))


def _comprehension(builder: Builder, span: Span, kids: list) -> Comprehension:
    return Comprehension(span, kids[1], tuple(kids[2:-1]))


def _clause(builder: Builder, span: Span, kids: list) -> ForClause:
    _, names, _, iterable, *conditions = kids
    return ForClause(span, names, iterable, tuple(condition.children[1] for condition in conditions))


def targets(builder: Builder, span: Span, kids: list) -> tuple[Identifier, ...]:
    return tuple(builder.binding(token, "a variable") for token in kids)


def _braces(builder: Builder, span: Span, kids: list) -> RecordExpr | DictExpr | BrokenExpr:
    pairs = [(_key(builder, pair.children[0]), pair.children[1]) for pair in kids[1:-1]]
    names = [key for key, _ in pairs if isinstance(key, Name)]
    if len(names) == len(pairs):
        return RecordExpr(span, tuple(_field(builder, key, value) for key, value in pairs))
    if names:
        builder.error("E0112", "a name and a value as keys of the same braces", names[0].span, "this key is a name",
                      f'write `"{names[0].text}"` for a dict; a record `{{name: value}}` has names only')
        return BrokenExpr(span, tuple(value for _, value in pairs))
    return DictExpr(span, tuple(key for key, _ in pairs), tuple(value for _, value in pairs))


def _key(builder: Builder, key: Expr | Token) -> Expr:
    return Name(builder.at(key), str(key)) if isinstance(key, Token) else key


def _field(builder: Builder, key: Name, value: Expr) -> Keyword:
    builder.allow_keyword(key)
    return Keyword(key.span.to(value.span), Identifier(key.span, key.text), value)


EXPRESSIONS = {
    "binding": _hole, "name": _name, "integer": _integer, "floating": _floating, "string": _string, "conditional": _conditional,
    "or_op": _bool_op("or"), "and_op": _bool_op("and"), "not_op": _not, "unary": _unary, "binary": _binary, "union_op": _union,
    "comparator": _comparator, "compare": _compare, "attribute": _attribute, "call": _call, "argument": _argument,
    "index": _index, "subscript": _subscript, "subscripts": _subscripts, "list": _list, "comprehension": _comprehension,
    "clause": _clause, "targets": targets, "braces": _braces,
}
