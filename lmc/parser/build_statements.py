"""The nodes of statements, one function a grammar rule; `build.py` calls them bottom-up."""

from __future__ import annotations

from lark import Token, Tree

from lmc.diagnostics import Span
from lmc.parser.ast import (
    Arm, Assert, Assign, Attribute, Break, BrokenPattern, Case, Continue, Elif, Export, Expr, ExprStmt, For, Fork, Here, Identifier, If, Index, Join,
    LiteralPattern, Match, Name, Pass, Pattern, RecordPattern, Resume, Return, RoleBlock, Stmt, Try, While, WildcardPattern,
)
from lmc.parser.build_expressions import floating, integer, keyword
from lmc.parser.builder import Builder

_CONSTANTS = {"None": None, "True": True, "False": False}


def _suite(builder: Builder, span: Span, kids: list) -> tuple[Stmt, ...]:
    return tuple(kids)


def _expr_stmt(builder: Builder, span: Span, kids: list) -> ExprStmt:
    return ExprStmt(kids[0].span, kids[0])


def _assign(builder: Builder, span: Span, kids: list) -> Assign:
    target, *middle, value = kids
    _check_target(builder, target)
    annotation = middle[0].children[0] if middle else None
    return Assign(target.span.to(value.span), target, value, annotation)


def _augmented(builder: Builder, span: Span, kids: list) -> Assign:
    target, op, value = kids
    _check_target(builder, target)
    return Assign(target.span.to(value.span), target, value, None, str(op)[:-1])


def _check_target(builder: Builder, target: Expr) -> None:
    if isinstance(target, Name):
        builder.allow_keyword(target)
        builder.refuse_reserved(target, "a variable")
    elif not isinstance(target, (Index, Attribute)):
        builder.error("E0120", "this cannot be assigned to", target.span, "expected a name, `xs[i]` or `d[key]`",
                      "put a name on the left of `=`; to compare, write `==`")


def _return(builder: Builder, span: Span, kids: list) -> Return:
    return Return(span, kids[1] if len(kids) > 1 else None)


def _assert(builder: Builder, span: Span, kids: list) -> Assert:
    return Assert(span, kids[1], kids[2] if len(kids) > 2 else None)


def _resume(builder: Builder, span: Span, kids: list) -> Resume:
    return Resume(span, kids[1])


def _if(builder: Builder, span: Span, kids: list) -> If:
    _, condition, then, *clauses = kids
    elifs = tuple(clause for clause in clauses if isinstance(clause, Elif))
    otherwise = clauses[-1].children[1] if len(elifs) < len(clauses) else ()
    return If(span, condition, then, elifs, otherwise)


def _elif(builder: Builder, span: Span, kids: list) -> Elif:
    return Elif(span, kids[1], kids[2])


def _for(builder: Builder, span: Span, kids: list) -> For:
    _, names, _, iterable, body = kids
    return For(span, names, iterable, body)


def _while(builder: Builder, span: Span, kids: list) -> While:
    return While(span, kids[1], kids[2])


def _try(builder: Builder, span: Span, kids: list) -> Try:
    _, body, _, error, *rest = kids
    if error != "Error":
        builder.error("E0121", f"`except {error}`: there is one kind of error, `Error`", builder.at(error), "expected `Error`",
                      "write `except Error as e:` and look at `e.kind`")
    handler = rest[-1]
    name = builder.binding(rest[1], "a variable") if len(rest) > 1 else None
    return Try(span, body, name, handler)


def _match(builder: Builder, span: Span, kids: list) -> Match:
    return Match(span, kids[1], tuple(kids[2:]))


def _case(builder: Builder, span: Span, kids: list) -> Case:
    _, *patterns, body = kids
    return Case(span, tuple(patterns), body)


def _literal_pattern(builder: Builder, span: Span, kids: list) -> LiteralPattern:
    token = kids[-1]
    if token.type == "STRING":
        text = builder.text(token)
        if text.plain is None:
            builder.error("E0115", "a pattern cannot have a hole", text.span, "expected constant text",
                          "compare with `if … == …` instead")
        return LiteralPattern(span, text.plain or "")
    value = integer(builder, token) if token.type == "INT" else floating(builder, token)
    return LiteralPattern(span, -value if len(kids) > 1 else value)


def _name_pattern(builder: Builder, span: Span, kids: list) -> Pattern:
    name = kids[0]
    if name in _CONSTANTS:
        return LiteralPattern(span, _CONSTANTS[name])
    if name != "_":
        builder.error("E0115", f"a pattern cannot be the bare name `{name}`", span, "this would match anything",
                      f"for a record type write `{name}(…)`; for anything else write `_`")
        return BrokenPattern(span, builder.label(name))
    return WildcardPattern(span)


def _record_pattern(builder: Builder, span: Span, kids: list) -> RecordPattern:
    bracket = next(i for i, kid in enumerate(kids) if isinstance(kid, Token) and kid.type == "LPAR")
    names, captures = kids[:bracket], kids[bracket + 1 : -1]
    type_: Expr = builder.name(names[0])
    if len(names) > 1:
        type_ = Attribute(builder.at(names[0]).to(builder.at(names[1])), type_, builder.label(names[1]))
    positional = [_capture(builder, c.children[0]) for c in captures if len(c.children) == 1]
    named = [(builder.label(c.children[0]), _capture(builder, c.children[1])) for c in captures if len(c.children) == 2]
    return RecordPattern(span, type_, tuple(positional), tuple(named))


def _capture(builder: Builder, token: Token) -> Identifier:
    return builder.binding(token, "a variable")


def _role_block(builder: Builder, span: Span, kids: list) -> RoleBlock:
    return RoleBlock(span, str(kids[0]), kids[1])


def _fork(builder: Builder, span: Span, kids: list) -> Fork:
    head = kids[0]
    join = kids[1] if len(kids) > 1 else None
    options = next((kid.children[1:] for kid in head.children if isinstance(kid, Tree) and kid.data == "options"), [])
    if head.data == "fork_arms":
        arms = tuple(kid for kid in head.children if isinstance(kid, Arm))
        return Fork(span, (), None, tuple(options), (), arms, join)
    _, names, _, iterable, *_, body = head.children
    return Fork(span, names, iterable, tuple(options), body, (), join)


def _arm(builder: Builder, span: Span, kids: list) -> Arm:
    return Arm(span, builder.binding(kids[1], "a branch"), kids[2])


def _join(builder: Builder, span: Span, kids: list) -> Join:
    return Join(span, tuple(kids[1:]))


def _export(builder: Builder, span: Span, kids: list) -> Export:
    tokens = list(kids)
    target = None
    if len(tokens) > 2 and tokens[-2].type == "AS":
        target = builder.binding(tokens[-1], "a variable")
        tokens = tokens[:-2]
    value: Expr = Here(builder.at(tokens[0])) if tokens[0] == "here" else builder.name(tokens[0])
    if len(tokens) > 1:
        value = Attribute(builder.at(tokens[0]).to(builder.at(tokens[1])), value, builder.label(tokens[1]))
    return Export(span, value, target)


def _leaf(node: type[Stmt]):
    return lambda builder, span, kids: node(span)


STATEMENTS = {
    "suite": _suite, "expr_stmt": _expr_stmt, "assign": _assign, "augmented": _augmented, "return_stmt": _return,
    "break_stmt": _leaf(Break), "continue_stmt": _leaf(Continue), "pass_stmt": _leaf(Pass), "assert_stmt": _assert,
    "resume_stmt": _resume, "if_stmt": _if, "elif_clause": _elif, "for_stmt": _for, "while_stmt": _while, "try_stmt": _try, "match_stmt": _match,
    "case": _case, "literal_pattern": _literal_pattern, "name_pattern": _name_pattern, "record_pattern": _record_pattern,
    "role_block": _role_block, "fork_stmt": _fork, "entry_option": keyword, "arm": _arm, "join": _join, "export": _export,
}
