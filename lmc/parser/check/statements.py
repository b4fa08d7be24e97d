"""Statements: assignment, control flow, and where each may stand.

    block(body, statements)     checks them in order and moves `body.flow` along

Roles, forks and matches have files of their own.
"""

from __future__ import annotations

from lmc.parser import ast
from lmc.parser.check.assignments import check_assign
from lmc.parser.check.body import Body, Loop
from lmc.parser.check.effects import warn_without_effect
from lmc.parser.check.flow import Flow, Turns, assigned_names, meet
from lmc.parser.check.forks import check_fork
from lmc.parser.check.iteration import bind_targets, element_of
from lmc.parser.check.matching import check_match
from lmc.parser.check.model import LocalKind
from lmc.parser.check.narrowing import check_condition
from lmc.parser.check.relations import is_scalar, known, type_text
from lmc.parser.check.roles import check_role_block, check_text, refuse_value
from lmc.types import CONTEXT, ERROR, NONE, NeverT, Type


def block(body: Body, statements: tuple[ast.Stmt, ...]) -> None:
    """Check statements in order; what follows a `return` is warned about once and checked all the same."""
    warned = not body.flow.live
    for before, statement in zip((None, *statements), statements):
        if not body.flow.live and not warned:
            warned = True
            if not _in_doubt(body, before):
                body.facts.warn("W109", "this is never reached", statement, "the statement before it always leaves")
        _statement(body, statement)


def _in_doubt(body: Body, statement: ast.Stmt | None) -> bool:
    """Whether it is a `match` on a value of a type that is wrong: nobody knows whether its cases are all there are."""
    return isinstance(statement, ast.Match) and not known(body.facts.matches[statement].subject)


def _statement(body: Body, statement: ast.Stmt) -> None:
    match statement:
        case ast.ExprStmt():
            _expression(body, statement)
        case ast.Assign():
            check_assign(body, statement)
        case ast.If():
            _if(body, statement)
        case ast.For():
            _for(body, statement)
        case ast.While():
            _while(body, statement)
        case ast.Match():
            check_match(body, statement)
        case ast.RoleBlock():
            check_role_block(body, statement)
        case ast.Fork():
            check_fork(body, statement)
        case ast.Try():
            _try(body, statement)
        case _:
            _simple(body, statement)


def _simple(body: Body, statement: ast.Stmt) -> None:
    match statement:
        case ast.Return():
            _return(body, statement)
        case ast.Break() | ast.Continue():
            _leave_loop(body, statement)
        case ast.Assert():
            when_true, _ = check_condition(body, statement.condition)
            if statement.message is not None:
                found = body.infer(statement.message)
                if known(found) and not is_scalar(found):
                    body.facts.error("E0301", f"the message of `assert` is text, found `{type_text(found)}`", statement.message)
            body.flow.narrow(when_true)
        case ast.Resume():
            body.expect(statement.context, CONTEXT, "what is resumed")
            body.flow.turns = Turns.UNKNOWN
        case _:
            assert isinstance(statement, ast.Pass), statement


def _expression(body: Body, statement: ast.ExprStmt) -> None:
    value = statement.value
    if isinstance(value, ast.Text):
        check_text(body, value)
        return
    body.placed.add(value)
    found = body.infer(value)
    if isinstance(found, NeverT):
        body.flow.live = False
    if (body.role is not None or body.text_part) and not isinstance(value, ast.Call):
        refuse_value(body, value)
    else:
        warn_without_effect(body, value)


# ------------------------------------------------------------------ control flow


def _if(body: Body, statement: ast.If) -> None:
    ends = []
    for arm in statement.arms:
        when_true, when_false = check_condition(body, arm.condition)
        other = body.flow.copy()
        body.flow.narrow(when_true)
        body.block(arm.then)
        ends.append(body.flow)
        body.flow = other
        body.flow.narrow(when_false)
    body.block(statement.otherwise)
    body.flow = meet([*ends, body.flow])


def _enter_loop(body: Body, statement: ast.For | ast.While) -> Loop:
    """The state at the head of a loop must also hold after a round."""
    for name in assigned_names(statement.body):
        symbol = body.find(name)
        if symbol is not None:
            body.flow.forget(symbol)
    if body.flow.turns in (Turns.EMPTY, Turns.SYSTEM) and any(
        isinstance(n, (ast.RoleBlock, ast.Call)) for s in statement.body for n in ast.walk(s)
    ):
        body.flow.turns = Turns.UNKNOWN
    loop = Loop()
    body.loops.append(loop)
    return loop


def _for(body: Body, statement: ast.For) -> None:
    element = element_of(body, statement.iterable)
    loop = _enter_loop(body, statement)
    after = body.flow.copy()
    bind_targets(body, statement.targets, element, LocalKind.LOOP, statement.iterable)
    body.block(statement.body)
    body.loops.pop()
    _leave(body, after, loop)


def _while(body: Body, statement: ast.While) -> None:
    loop = _enter_loop(body, statement)
    when_true, when_false = check_condition(body, statement.condition)
    after = body.flow.copy()
    after.narrow(when_false)
    if isinstance(statement.condition, ast.Constant) and statement.condition.value is True:
        after.live = False
    body.flow.narrow(when_true)
    body.block(statement.body)
    body.loops.pop()
    _leave(body, after, loop)


def _leave(body: Body, after: Flow, loop: Loop) -> None:
    if body.flow.live and body.flow.turns is not after.turns:
        after.turns = Turns.UNKNOWN
    body.flow = meet([after, *loop.breaks])


def _leave_loop(body: Body, statement: ast.Break | ast.Continue) -> None:
    word = "break" if isinstance(statement, ast.Break) else "continue"
    if not body.loops:
        if body.in_fork:
            body.facts.error("E0505", f"`{word}` cannot leave a branch of a `fork`", statement, "",
                             "the loop is outside the branch")
        else:
            body.facts.error("E0506", f"`{word}` outside a loop", statement, "",
                             "it stands in a `for` or `while`; to leave the function write `return`")
        return  # what follows is not unreachable for this reason
    if word == "break":
        body.loops[-1].breaks.append(body.flow.copy())
    body.flow.live = False


def _try(body: Body, statement: ast.Try) -> None:
    entry = body.flow.copy()
    for name in assigned_names(statement.body):
        symbol = body.find(name)
        if symbol is not None:
            entry.forget(symbol)
    body.block(statement.body)
    end, body.flow = body.flow, entry
    if statement.name is not None:
        body.bind(statement.name, statement.name.text, ERROR, LocalKind.ERROR)
    body.block(statement.handler)
    body.flow = meet([end, body.flow])


# ----------------------------------------------------------------------- return


def _return(body: Body, statement: ast.Return) -> None:
    wanted = body.result
    if body.in_fork:
        if statement.value is not None:
            body.infer(statement.value)
        body.facts.error("E0505", "`return` cannot leave a branch of a `fork`", statement, "",
                         "bind a name, export it with `join`, and return after it")
    elif wanted is None:
        if statement.value is not None:
            body.infer(statement.value)
        body.facts.error("E0320", "a test returns nothing", statement)
    elif statement.value is None:
        if wanted != NONE and known(wanted):
            body.facts.error("E0320", f"`return` needs a value of `{type_text(wanted)}`", statement, "no value")
    elif wanted == NONE:
        _return_from_nothing(body, statement.value)
    else:
        body.expect(statement.value, wanted, "the returned value", "E0320")
    body.flow.live = False


def _return_from_nothing(body: Body, value: ast.Expr) -> None:
    found: Type = body.infer(value)
    if not known(found) or found == NONE:
        return
    assert body.function is not None
    head = body.function.definition
    body.facts.error("E0320", f"`{head.name.text}` declares no result, and this returns `{type_text(found)}`", value,
                     f"this is `{type_text(found)}`", f"declare it: `{head.kind} {head.name.text}(…) -> {type_text(found)}:`")
