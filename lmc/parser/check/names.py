"""What a `Name` refers to: a local name with a value on every path, else a name of the file, else a mistake with a suggestion.

    error[E0201]: undefined name `revew`
       = help: a parameter with a similar name exists: `review`

Nothing here knows types.
"""

from __future__ import annotations

from lmc.parser import ast, words
from lmc.parser.check.body import Body
from lmc.parser.check.model import (
    BuiltinSymbol, ConstSymbol, ExternSymbol, FunctionSymbol, LocalSymbol, ModuleSymbol, Symbol, TypeSymbol,
)
from lmc.parser.check.scope import BrokenSymbol
from lmc.parser.check.suggest import nearest

_GEN = "the model writes with `gen(…)`, in `assistant:` or `raw:`"
#: Names that people reach for, most of them Python's.
_PYTHON = {
    "open": "declare an `extern def` and bind it in Python", "isinstance": "use `match`",
    "any": "write the loop, or count: `len([x for x in xs if …]) > 0`",
    "all": "write the loop, or count: `len([x for x in xs if not …]) == 0`",
    "map": "use a comprehension: `[f(x) for x in xs]`", "filter": "use a comprehension: `[x for x in xs if …]`",
    "reversed": "use `xs[::-1]`", "list": "use a comprehension or `[…]`", "dict": "use `{\"key\": value}`", "set": "use a list",
    "tuple": "use a list", "self": "there are no classes; pass a value", "repr": "use `json(x)`", "type": "use `match`",
    "format": "put the value into text: `\"${x}\"`", "true": "`True`", "false": "`False`", "null": "`None`", "none": "`None`",
    "generate": _GEN, "complete": _GEN, "completion": _GEN, "llm": _GEN, "chat": _GEN,
    "re": "use `findall(regex, s)` or `matches(regex, s)`", "os": "declare an `extern def` and bind it in Python",
}


def resolve_name(body: Body, expr: ast.Name) -> Symbol | None:
    """The symbol of a use, recorded; None where it is a mistake, which is reported."""
    symbol: Symbol | None = body.find(expr.text)
    if isinstance(symbol, LocalSymbol):
        body.facts.reads.add(symbol)
        if symbol not in body.flow.assigned and body.flow.live:
            if expr.text not in body.unassigned:
                body.facts.error("E0203", f"`{expr.text}` may have no value here", expr,
                                 "not assigned on every path to this point",
                                 f"give `{expr.text}` a value before the branching at line {symbol.span.line}")
            # Said once: from here on it counts as assigned.
            body.flow.assigned.add(symbol)
    else:
        symbol = body.file.lookup(expr.text)
        if symbol is None:
            report_undefined(body, expr)
            return None
        if isinstance(symbol, BrokenSymbol) and body.file.in_progress(expr.text):
            body.facts.error("E0321", f"`{expr.text}` is defined by itself", expr, "",
                             "write its value without it")
        if not isinstance(symbol, BuiltinSymbol):
            body.outer_names.add(expr.text)
    body.facts.symbols[expr] = symbol
    return symbol


def report_undefined(body: Body, expr: ast.Name) -> None:
    """Say what is wrong with a name that nothing declares."""
    name, facts = expr.text, body.facts
    if name in words.NOT_VALUES:
        return  # reported when it was read
    if name in body.branch_names:
        fork = body.branch_names[name]
        facts.error("E0507", f"`{name}` is local to its branch", expr, "not known after the fork",
                    f"export it: `join {name} as …` gives it after the fork at line {fork.span.line}")
    elif name in body.all_names:
        body.unassigned.add(name)
        facts.error("E0203", f"`{name}` is used before it has a value", expr, "assigned only later",
                    "move the assignment before this place")
    elif name in body.file.items or body.file.lookup(name) is not None:
        facts.error("E0209", f"`{name}` is not a value", expr)
    else:
        facts.error("E0201", f"undefined name `{name}`", expr, "not found in this scope", _suggestion(body, name))


def _suggestion(body: Body, name: str) -> str | None:
    if name in _PYTHON:
        hint = _PYTHON[name]
        return f"it is spelled {hint}" if hint.startswith("`") else hint
    local = {n: s.kind.value for scope in body.scopes for n, s in scope.names.items()}
    near = nearest(name, [*local, *body.file.names()])
    if near is None:
        return "assign it first, define it at the top level, or import it"
    kind = local.get(near) or _kind(body.file.lookup(near))
    article = "an" if kind[0] in "aeiou" else "a"
    return f"{article} {kind} with a similar name exists: `{near}`"


def _kind(symbol: Symbol | None) -> str:
    match symbol:
        case ConstSymbol():
            return "constant"
        case TypeSymbol():
            return "type"
        case FunctionSymbol(part=None):
            return "function"
        case FunctionSymbol():
            return "part"
        case ExternSymbol():
            return "extern function"
        case ModuleSymbol():
            return "module"
    return "built-in function"
