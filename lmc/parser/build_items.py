"""The nodes of top-level items, one function a grammar rule; `build.py` calls them bottom-up."""

from __future__ import annotations

from lark import Token, Tree

from lmc.diagnostics import Span
from lmc.parser.ast import (
    Config, ConstDef, ExprStmt, ExternDef, FieldDef, FunctionDef, Identifier, Import, Param, RecordDef, RoleBlock, Stmt, TestDef,
    Text,
    TypeAlias, walk,
)
from lmc.parser.build_expressions import keyword
from lmc.parser.builder import Builder


def _import(builder: Builder, span: Span, kids: list) -> Import:
    _, path, _, alias = kids
    return Import(span, _plain(builder, path, "a path"), builder.binding(alias, "an import"), ())


def _from(builder: Builder, span: Span, kids: list) -> Import:
    names = tuple(kid for kid in kids if isinstance(kid, tuple))
    return Import(span, _plain(builder, kids[1], "a path"), None, names)


def _imported(builder: Builder, span: Span, kids: list) -> tuple[Identifier, Identifier | None]:
    if len(kids) == 1:
        return builder.binding(kids[0], "an import"), None
    return builder.label(kids[0]), builder.binding(kids[2], "an import")


def _constant(builder: Builder, span: Span, kids: list) -> ConstDef:
    name, *middle, value = kids
    return ConstDef(span, builder.binding(name, "a constant"), middle[0].children[0] if middle else None, value)


def _alias(builder: Builder, span: Span, kids: list) -> TypeAlias:
    return TypeAlias(span, builder.binding(kids[1], "a type"), kids[2])


def _record(builder: Builder, span: Span, kids: list) -> RecordDef:
    doc = next((kid for kid in kids if isinstance(kid, Text)), None)
    return RecordDef(span, builder.binding(kids[1], "a type"), doc, tuple(kid for kid in kids if isinstance(kid, FieldDef)))


def _doc(builder: Builder, span: Span, kids: list) -> Text:
    return _plain(builder, kids[0], "a docstring")


def _field(builder: Builder, span: Span, kids: list) -> FieldDef:
    return FieldDef(span, builder.label(kids[0]), kids[1], _optional(kids, "default"))


def _param(builder: Builder, span: Span, kids: list) -> Param:
    return Param(span, builder.binding(kids[0], "a parameter"), _optional(kids, "annotation"), _optional(kids, "default"))


def _params(builder: Builder, span: Span, kids: list) -> tuple[Param, ...]:
    return tuple(kids[1:-1])


def _function(builder: Builder, span: Span, kids: list) -> FunctionDef:
    kind, name, params, *_, body = kids
    doc, body = _split_doc(str(kind), body)
    return FunctionDef(span, str(kind), builder.binding(name, "a function"), params, _optional(kids, "result"), doc, body)


def _split_doc(kind: str, body: tuple[Stmt, ...]) -> tuple[Text | None, tuple[Stmt, ...]]:
    """The docstring and the rest.  In a part without role blocks a leading string is text, which must never vanish."""
    first = body[0]
    if not (isinstance(first, ExprStmt) and isinstance(first.value, Text) and first.value.plain is not None):
        return None, body
    if kind == "part" and not any(isinstance(node, RoleBlock) for stmt in body for node in walk(stmt)):
        return None, body
    return first.value, body[1:]


def _extern(builder: Builder, span: Span, kids: list) -> ExternDef:
    pure = kids[0].type == "PURE"
    name = next(kid for kid in kids if isinstance(kid, Token) and kid.type == "NAME")
    params = next(kid for kid in kids if isinstance(kid, tuple))
    doc = next((kid for kid in kids if isinstance(kid, Text)), None)
    return ExternDef(span, builder.binding(name, "a function"), params, _optional(kids, "result"), doc, pure)


def _test(builder: Builder, span: Span, kids: list) -> TestDef:
    return TestDef(span, _plain(builder, kids[1], "a test's name"), kids[2])


def _config(builder: Builder, span: Span, kids: list) -> Config:
    return Config(span, tuple(kids[1:]))


def _optional(kids: list, rule: str):
    """The expression of an optional part such as `annotation`, or None."""
    return next((kid.children[-1] for kid in kids if isinstance(kid, Tree) and kid.data == rule), None)


def _plain(builder: Builder, token: Token, what: str) -> Text:
    text = builder.text(token)
    if text.plain is None:
        builder.error("E0116", f"{what} cannot have a hole", text.span, "expected constant text",
                      "write the text out; a dollar before a brace is `\\${`")
    return text


ITEMS = {
    "import_item": _import, "from_item": _from, "imported": _imported, "constant": _constant, "alias": _alias, "record": _record,
    "doc": _doc, "extern_doc": _doc, "field": _field, "param": _param, "params": _params, "function": _function,
    "extern": _extern,
    "test": _test, "config": _config, "entry": keyword,
}
