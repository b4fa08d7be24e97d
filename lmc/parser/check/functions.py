"""Bodies of functions and tests, and what is asked of parts once all bodies are known.

A name whose first value is narrower than a later one (`1..5`, then any int) is given the plain type, and the body is checked
again: types of names do not depend on the order in which the branches of a program are written.
"""

from __future__ import annotations

from lmc.parser import ast
from lmc.parser.check.body import Body
from lmc.parser.check.declare import RULES
from lmc.parser.check.facts import Facts, PartUse
from lmc.parser.check.flow import assigned_names
from lmc.parser.check.model import FunctionSymbol, LocalKind, LocalSymbol, PartKind
from lmc.parser.check.relations import known, type_text
from lmc.parser.check.scope import FileScope
from lmc.parser.check.warnings import warn_about_body
from lmc.types import NONE, Type

# Each round widens at least one name; a chain of names that take one another's type is short.
_MAX_ROUNDS = 10


def check_function(scope: FileScope, symbol: FunctionSymbol) -> None:
    """Check the body of a `def` or `part`."""
    definition = symbol.definition
    body = _check(scope, definition, symbol, symbol.result)
    if body.flow.live and symbol.result != NONE and known(symbol.result):
        scope.facts.error("E0320", f"`{symbol.name}` declares `{type_text(symbol.result)}`, and not every path returns one",
                          definition.result or definition.name, "a path reaches the end without `return`",
                          "end every path with `return …` or `fail(…)`")


def check_test(scope: FileScope, test: ast.TestDef) -> None:
    """Check the body of a `test`: a function with no parameters and no result."""
    _check(scope, test, None, None)


def _check(scope: FileScope, item: ast.FunctionDef | ast.TestDef, symbol: FunctionSymbol | None, result: Type | None) -> Body:
    statements = item.body
    widened: dict[str, Type] = {}
    mark = scope.facts.mark()
    for _ in range(_MAX_ROUNDS):
        body = Body(scope.facts, scope, RULES, symbol, result, has_context=True)
        body.widened = dict(widened)
        body.all_names = assigned_names(statements)
        for param in symbol.params if symbol is not None else ():
            _bind_parameter(body, symbol.definition, param.name, param.type)
        body.block(statements)
        if body.widened == widened:
            break
        widened = body.widened
        scope.facts.rewind(mark)
    if scope.facts.failed_within(item.span):
        scope.facts.drop_warnings(mark)
    else:
        warn_about_body(body, statements)
    return body


def _bind_parameter(body: Body, definition: ast.FunctionDef, name: str, type: Type) -> LocalSymbol:
    node = next(p.name for p in definition.params if p.name.text == name)
    symbol = body.declare(node, name, type, LocalKind.PARAMETER)
    body.flow.assign(symbol)
    return symbol


# ------------------------------------------------------------------------ parts


def check_parts(facts: Facts) -> dict[FunctionSymbol, frozenset[str]]:
    """Refuse recursion of parts and generation under a role that cannot generate; gives the roles each text part is called in."""
    _refuse_recursion(facts)
    roles: dict[FunctionSymbol, set[str]] = {}
    generating = dict(facts.generating_parts)
    changed = True
    while changed:
        changed = False
        for use in facts.part_uses:
            if use.target.part is not PartKind.TEXT:
                continue
            found = {use.role} if use.role is not None else roles.get(use.caller, set()) if use.caller is not None else set()
            there = roles.setdefault(use.target, set())
            if not found <= there:
                there |= found
                changed = True
            if use.role is None and use.caller is not None and use.target in generating and use.caller not in generating:
                generating[use.caller] = use.span
                changed = True
    _refuse_generation(facts, generating)
    return {part: frozenset(found) for part, found in roles.items()}


def _refuse_generation(facts: Facts, generating: dict[FunctionSymbol, object]) -> None:
    for use in facts.part_uses:
        if use.target in generating and use.role in ("system", "user"):
            facts.error("E0402", f"`{use.target.name}` generates, and cannot be called in `{use.role}:`", use.span, "",
                        "the model writes in `assistant:` and `raw:` only")


def _refuse_recursion(facts: Facts) -> None:
    calls: dict[FunctionSymbol, list[PartUse]] = {}
    for use in facts.part_uses:
        if use.caller is not None:
            calls.setdefault(use.caller, []).append(use)
    told: set[FunctionSymbol] = set()
    for part in calls:
        use = next((u for u in calls[part] if _reaches(calls, u.target, part)), None)
        if use is None or part in told:
            continue
        told |= {other for other in calls if _reaches(calls, part, other) and _reaches(calls, other, part)}
        facts.error("E0409", f"the part `{part.name}` calls itself", use.span, "a part is inlined, so it cannot be recursive",
                    "make it a `def`, which has a conversation of its own")


def _reaches(calls: dict[FunctionSymbol, list[PartUse]], start: FunctionSymbol, goal: FunctionSymbol) -> bool:
    seen, stack = set(), [start]
    while stack:
        part = stack.pop()
        if part is goal:
            return True
        if part not in seen:
            seen.add(part)
            stack += [use.target for use in calls.get(part, ())]
    return False
