"""W107: a value that varies stands before long constant text, which ends the prefix that calls could share.

    user: "Today is ${day}. You are an editor who …"        # every call computes the instructions again
    user: "You are an editor who … Today is ${day}."        # computed once

Only what a function says before its first generation counts, and only text long enough to matter.
"""

from __future__ import annotations

from collections.abc import Iterator

from lmc.parser import ast
from lmc.parser.check.body import Body
from lmc.parser.check.model import ExternSymbol, LocalSymbol

#: Characters of constant text, about forty tokens: below that, computing them again costs less than a warning.
_LONG = 200


def warn_about_sharing(body: Body, statements: tuple[ast.Stmt, ...]) -> None:
    """Warn at the first hole whose value varies, where one piece of long constant text follows it."""
    varying: ast.Hole | None = None
    for part in _parts(body, statements):
        if isinstance(part, ast.Hole):
            if varying is None and _varies(body, part.value):
                varying = part
        elif varying is not None and len(part.text) >= _LONG:
            body.facts.warn("W107", f"this value differs from call to call, and {len(part.text):,} characters of constant text follow it",
                            varying, "the shared prefix ends here",
                            "put what is the same for all calls first: it is computed once and shared")
            return


def _parts(body: Body, statements: tuple[ast.Stmt, ...]) -> Iterator[ast.TextPiece | ast.Hole]:
    """The text said in a row, up to the first statement that is no text, or the first generation."""
    for statement in statements:
        if isinstance(statement, ast.RoleBlock):
            yield from _parts(body, statement.body)
            if not all(_plain(inner) for inner in statement.body):
                return
        elif _plain(statement):
            yield from statement.value.parts
        elif not isinstance(statement, ast.Assign) or isinstance(statement.value, ast.Call) and not _asks_host(body, statement.value):
            return


def _plain(statement: ast.Stmt) -> bool:
    """Text without a generation in it."""
    return (isinstance(statement, ast.ExprStmt) and isinstance(statement.value, ast.Text)
            and not any(isinstance(p, ast.Hole) and (p.name is not None or isinstance(p.value, ast.Call) and _generates(p.value))
                        for p in statement.value.parts))


def _generates(call: ast.Call) -> bool:
    return isinstance(call.function, ast.Name) and call.function.text in ("gen", "select")


def _varies(body: Body, expr: ast.Expr) -> bool:
    symbols = (body.facts.symbols.get(node) for node in ast.walk(expr) if isinstance(node, ast.Name))
    return any(isinstance(symbol, (LocalSymbol, ExternSymbol)) for symbol in symbols)


def _asks_host(body: Body, call: ast.Call) -> bool:
    """A call of an extern, such as a clock: it says nothing, and gives another value each time."""
    return isinstance(body.facts.symbols.get(call.function), ExternSymbol)
