"""`fork` and `join`: branches with names of their own, and what comes out of them.

    fork d in dimensions:        # d, think: local to the branch
        assistant: think = gen()
    join think as thoughts       # thoughts: list[str], bound after the fork

    fork:
        branch pros: …
        branch cons: …
    join pros.x as p, cons.here as c

After the fork the conversation and the names are as they were before it; only the exports are new.  With `errors="collect"` each
may be an `Error`.
"""

from __future__ import annotations

from dataclasses import dataclass

from lmc.parser import ast
from lmc.parser.check.body import Body, Scope
from lmc.parser.check.flow import Flow, assigned_names
from lmc.parser.check.iteration import bind_targets, element_of
from lmc.parser.check.model import UNKNOWN, ExportInfo, ForkInfo, LocalKind, LocalSymbol
from lmc.parser.check.options import FORK, check_options
from lmc.parser.check.relations import known
from lmc.parser.check.suggest import did_you_mean, nearest
from lmc.types import CONTEXT, ListT, Type, fallible


@dataclass(frozen=True, slots=True)
class _Branch:
    """A checked branch: its name (of an arm), its local names, the outer names it assigned, the flow at its end."""

    name: str | None
    scope: Scope
    outer: dict[str, LocalSymbol]
    end: Flow


def check_fork(body: Body, fork: ast.Fork) -> None:
    options = check_options(body, "fork", fork.options, FORK)
    collect = _collects(body, options.pop("errors", None))
    element = element_of(body, fork.iterable) if fork.iterable is not None else None
    _duplicate_arms(body, fork)
    bodies = [(a.name.text, a.body) for a in fork.arms] if fork.arms else [(None, fork.body)]
    branches = [_branch(body, fork, name, statements, element) for name, statements in bodies]
    if fork.join is None:
        body.facts.error("E0501", "this `fork` has no `join`", _head(fork), "branches must come together",
                         "put `join name as names` directly after it, or `join` alone to drop the branches")
        exports: list[ExportInfo] = []
        # Their names are known to be meant for a join, so that a use is not a second mistake.
        _assume_joined(body, branches)
    else:
        exports = _exports(body, fork, branches, collect=collect)
    _lost_assignments(body, fork, branches)
    body.facts.forks[fork] = ForkInfo(element, options, tuple(exports), collect)


def _head(fork: ast.Fork) -> ast.Node:
    return fork.iterable if fork.iterable is not None else fork.arms[0].name if fork.arms else fork


def _collects(body: Body, errors: ast.Expr | None) -> bool:
    if errors is None or isinstance(errors, ast.Text) and errors.plain == "collect":
        return errors is not None
    body.facts.error("E0504", "`errors` is `\"collect\"` or not given", errors, "", 'write `with errors="collect"`')
    return False


def _duplicate_arms(body: Body, fork: ast.Fork) -> None:
    seen: set[str] = set()
    for arm in fork.arms:
        if arm.name.text in seen:
            body.facts.error("E0503", f"there are two branches named `{arm.name.text}`", arm.name, "duplicate")
        seen.add(arm.name.text)


def _branch(body: Body, fork: ast.Fork, name: str | None, statements: tuple[ast.Stmt, ...], element: Type | None) -> _Branch:
    entry, loops, in_fork = body.flow, body.loops, body.in_fork
    body.flow, body.loops, body.in_fork = entry.copy(), [], True
    # Not `body.scope()`: the flow at the end, with the branch's names in it, is needed to check the join.
    scope = Scope()
    body.scopes.append(scope)
    if fork.iterable is not None and element is not None:
        bind_targets(body, fork.targets, element, LocalKind.LOOP, fork.iterable, fresh=True)
    body.block(statements)
    outer = {n: s for n in assigned_names(statements) if n not in scope.names and (s := body.find(n)) is not None}
    body.scopes.pop()
    end = body.flow
    body.flow, body.loops, body.in_fork = entry, loops, in_fork
    for local in scope.names:
        body.branch_names[local] = fork
    return _Branch(name, scope, outer, end)


def _assume_joined(body: Body, branches: list[_Branch]) -> None:
    for branch in branches:
        for name, symbol in branch.scope.names.items():
            if body.find(name) is None:
                body.scopes[-1].names[name] = LocalSymbol(name, symbol.span, UNKNOWN, LocalKind.JOINED)
                body.flow.assign(body.scopes[-1].names[name])


# ---------------------------------------------------------------------- exports


def _exports(body: Body, fork: ast.Fork, branches: list[_Branch], *, collect: bool) -> list[ExportInfo]:
    assert fork.join is not None
    found = []
    seen: set[str] = set()
    for export in fork.join.exports:
        target = _target(export)
        if target is None:
            body.facts.error("E0502", "an exported `here` needs a name", export, "", "write `here as states`")
            continue
        if target.text in seen:
            body.facts.error("E0502", f"`{target.text}` is joined twice", target, "duplicate")
        seen.add(target.text)
        info = _export(body, export, target, branches, collect=collect)
        if info is not None:
            found.append(info)
    return found


def _target(export: ast.Export) -> ast.Identifier | None:
    if export.target is not None:
        return export.target
    match export.value:
        case ast.Name(span=span, text=text):
            return ast.Identifier(span, text)
        case ast.Attribute(name=name) if name.text != "here":
            return name
    return None


def _export(body: Body, export: ast.Export, target: ast.Identifier, branches: list[_Branch], *,
            collect: bool) -> ExportInfo | None:
    """Bind the target; where the export is wrong it is bound to an unknown type, so that its uses are no mistakes."""
    arm, name = _source(body, export, branches)
    source: LocalSymbol | None = None
    type: Type = UNKNOWN
    if arm is not None and name == "here":
        type = CONTEXT
    elif arm is not None and name is not None:
        source = _branch_name(body, export, branches[arm], name)
        type = source.type if source is not None else UNKNOWN
    if collect and known(type):
        type = fallible(type)
    if branches[0].name is None and known(type):
        type = ListT(type)
    symbol = body.bind(export.target if export.target is not None else export, target.text, type, LocalKind.JOINED)
    body.facts.symbols[target] = symbol
    if not known(type):
        return None
    return ExportInfo(source, arm if branches[0].name is not None else None, symbol)


def _source(body: Body, export: ast.Export, branches: list[_Branch]) -> tuple[int | None, str | None]:
    """Which branch an export reads, and which of its names."""
    named = branches[0].name is not None
    match export.value:
        case ast.Here() if not named:
            return 0, "here"
        case ast.Name(text=text) if not named:
            return 0, text
        case ast.Attribute(value=ast.Name(text=arm_name), name=name) if named:
            arm = next((i for i, b in enumerate(branches) if b.name == arm_name), None)
            if arm is None:
                known_arms = [b.name for b in branches if b.name is not None]
                body.facts.error("E0503", f"there is no branch `{arm_name}`", export.value.value, "unknown branch",
                                 did_you_mean(arm_name, known_arms))
            return arm, name.text
    shown = export.value.text if isinstance(export.value, ast.Name) else "x"
    help = f"say of which branch: `{branches[0].name}.{shown}`" if named else "write `name as names` or `here as states`"
    body.facts.error("E0502", "this is not a name of a branch", export.value, "", help)
    return None, None


def _branch_name(body: Body, export: ast.Export, branch: _Branch, name: str) -> LocalSymbol | None:
    symbol = branch.scope.names.get(name) or branch.outer.get(name)
    if symbol is None:
        near = nearest(name, branch.scope.names)
        known_names = ", ".join(f"`{n}`" for n in branch.scope.names)
        bound = f"the branch binds {known_names}" if known_names else "the branch binds no name"
        help = f"did you mean `{near}`?" if near else bound
        body.facts.error("E0502", f"the branch does not bind `{name}`", export.value, "not bound in the branch", help)
        return None
    body.facts.symbols[export.value] = symbol
    body.facts.reads.add(symbol)
    if symbol not in branch.end.assigned and branch.end.live:
        body.facts.error("E0502", f"`{name}` may have no value at the end of the branch", export.value,
                         "not assigned on every path",
                         f"give `{name}` a value at the start of the branch")
    return symbol


def _lost_assignments(body: Body, fork: ast.Fork, branches: list[_Branch]) -> None:
    exported = set()
    for export in fork.join.exports if fork.join is not None else ():
        value = export.value.name if isinstance(export.value, ast.Attribute) else export.value
        exported.add(getattr(value, "text", ""))
    for branch in branches:
        for name, symbol in branch.outer.items():
            # A loop variable that is used again in a branch is not meant to come out of it.
            if name not in exported and symbol.kind is not LocalKind.LOOP:
                body.facts.warn("W110", f"`{name}` gets a value in a branch, and it is lost at the join", _head(fork),
                                f"`{name}` has its old value after the fork", f"export it: `join {name} as …`")
