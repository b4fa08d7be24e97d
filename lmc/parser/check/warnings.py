"""Warnings about a whole body: what is legal and probably not meant.

    W101  text ends in a space before a gen whose healing is off
    W102  two pieces of text glued together
    W103  {name} without $ while `name` is in scope
    W105  an option that is the beginning of another
    W106  a loop with gen that nothing bounds
    W107  a varying value before long constant text (`sharing.py`)
    W108  a name never read

Each has a switch, `# lmc: allow W103`.  Those found on the way (W109 unreachable, W110 lost in a branch, W111 without effect) are
where they are found.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator

from lmc.diagnostics import Span
from lmc.parser import ast
from lmc.parser.check.body import Body
from lmc.parser.check.mentions import warn_about_mentions
from lmc.parser.check.model import GenCall, LocalKind, LocalSymbol, ScoreCall, SelectCall
from lmc.parser.check.sharing import warn_about_sharing
from lmc.types import LiteralT


def warn_about_body(body: Body, statements: tuple[ast.Stmt, ...]) -> None:
    """All warnings that need the whole body."""
    nodes = [node for statement in statements for node in ast.walk(statement)]
    braced: set[str] = set()
    for node in nodes:
        match node:
            case ast.TextPiece():
                braced |= _missing_dollar(body, node)
            case ast.RoleBlock():
                _trailing_space(body, node)
                _glued(body, node.body)
            case ast.While():
                _unbounded(body, node)
            case ast.Call():
                _prefix_options(body, node)
    _glued_turns(body, statements)
    warn_about_mentions(body, nodes)
    warn_about_sharing(body, statements)
    _never_read(body, nodes, braced)


# ---------------------------------------------------------------- W103, W101, W102

_IN_BRACES = re.compile(r"\{([^\W\d]\w*)\}")
_BRACED = re.compile(rf"(?<![$\w{{]){_IN_BRACES.pattern}(?!\}})")


def _missing_dollar(body: Body, piece: ast.TextPiece) -> set[str]:
    """Warn, and give the names that were meant to be shown."""
    names = body.scopes[0].names
    meant = {found.start(): found[1] for found in _BRACED.finditer(piece.text) if found[1] in names}
    if not meant:
        return set()
    places = _written(piece.span, body.facts.lines(piece.span.file))
    for found in _IN_BRACES.finditer(piece.text):
        # The same occurrence in the source as in the text, since escapes and dedent move columns but not what braces hold.
        place = next(places.get(found[1], iter(())), piece.span)
        if found.start() in meant:
            body.facts.warn("W103", f"`{found[0]}` is plain text: braces alone interpolate nothing", place,
                            "shown as it stands", f"write `${found[0]}` to show the value of `{found[1]}`")
    return set(meant.values())


def _written(span: Span, lines: list[str]) -> dict[str, Iterator[Span]]:
    """The places of each `{name}` in the source, in order."""
    places: dict[str, list[Span]] = defaultdict(list)
    for number in range(span.line, span.end_line + 1):
        line = lines[number - 1]
        start = span.column - 1 if number == span.line else 0
        end = span.end_column - 1 if number == span.end_line else len(line)
        for found in _IN_BRACES.finditer(line, start, end):
            places[found[1]].append(Span(span.file, number, found.start() + 1, number, found.end() + 1))
    return {name: iter(spans) for name, spans in places.items()}


def _pieces(body: Body, statements: tuple[ast.Stmt, ...]) -> Iterator[ast.TextPiece | ast.Call | None]:
    """Text and generations in the order written; None where something else stands between."""
    for statement in statements:
        value = statement.value if isinstance(statement, (ast.ExprStmt, ast.Assign)) else None
        if isinstance(value, ast.Text) and isinstance(statement, ast.ExprStmt):
            for part in value.parts:
                yield part if isinstance(part, ast.TextPiece) else part.value if isinstance(part.value, ast.Call) else None
        elif isinstance(value, ast.Call) and isinstance(body.facts.calls.get(value), (GenCall, SelectCall)):
            yield value
        else:
            yield None


def _trailing_space(body: Body, block: ast.RoleBlock) -> None:
    previous = None
    for piece in _pieces(body, block.body):
        call = body.facts.calls.get(piece) if isinstance(piece, ast.Call) else None
        if isinstance(call, GenCall) and isinstance(previous, ast.TextPiece) and previous.text.endswith(" "):
            heal = call.options.get("heal")
            if isinstance(heal, ast.Constant) and heal.value is False:
                body.facts.warn("W101", "the text before this `gen` ends in a space, and healing is off", previous,
                                "ends in a space",
                                "most tokens begin with their space: end the text before it, or leave `heal` on")
        previous = piece


def _glued(body: Body, statements: tuple[ast.Stmt, ...]) -> None:
    """Two texts one after another with no white space between them."""
    for first, second in zip(statements, statements[1:]):
        if isinstance(first, ast.ExprStmt) and isinstance(second, ast.ExprStmt):
            _glued_texts(body, first.value, second.value)


def _glued_turns(body: Body, statements: tuple[ast.Stmt, ...]) -> None:
    """The same for neighbouring blocks of one role, which are one turn."""
    for first, second in zip(statements, statements[1:]):
        if isinstance(first, ast.RoleBlock) and isinstance(second, ast.RoleBlock) and first.role == second.role:
            last, head = first.body[-1], second.body[0]
            if isinstance(last, ast.ExprStmt) and isinstance(head, ast.ExprStmt):
                _glued_texts(body, last.value, head.value)


def _glued_texts(body: Body, first: ast.Expr, second: ast.Expr) -> None:
    if not (isinstance(first, ast.Text) and isinstance(second, ast.Text) and first.parts and second.parts):
        return
    end, start = first.parts[-1], second.parts[0]
    if isinstance(end, ast.Hole) or isinstance(start, ast.Hole) or not end.text or not start.text:
        return
    if (end.text[-1].isalnum() or end.text[-1] in ".,;:!?)") and start.text[0].isalnum():
        seam = _inline(end.text[-8:] + start.text[:8])
        body.facts.warn("W102", f"this text follows the one before it with nothing between: `{seam}`", second,
                        "glued to the text before it", "end the first with `\\n` or a space")


def _inline(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


# -------------------------------------------------------------------- W105, W106


def _prefix_options(body: Body, node: ast.Call) -> None:
    match body.facts.calls.get(node):
        case SelectCall(choices=choices, options=options) | ScoreCall(choices=choices, options=options):
            if choices is not None:
                texts = [c for c in choices if isinstance(c, str)]
            elif isinstance(options, ast.ListExpr):
                texts = [e.plain for e in options.elements if isinstance(e, ast.Text) and e.plain]
            else:
                return
        case GenCall(type=LiteralT(values)):
            texts = [v for v in values if isinstance(v, str)]
        case _:
            return
    for short in texts:
        long = next((t for t in texts if t != short and t.startswith(short)), None)
        if long is not None:
            body.facts.warn("W105", f'the option "{short}" is the beginning of "{long}"', node, "one option begins another",
                            "choose options that differ in their first word: the model may end early or late")
            return


def _unbounded(body: Body, loop: ast.While) -> None:
    nodes = [n for statement in loop.body for n in ast.walk(statement)]
    calls = [n for n in nodes if isinstance(n, ast.Call)]
    asks = any(isinstance(body.facts.calls.get(c), (GenCall, SelectCall, ScoreCall)) for c in calls)
    reads = any(isinstance(c.function, ast.Name) and c.function.text == "input" for c in (*calls, *_calls(loop.condition)))
    if not asks or reads:
        return
    updates = [n for n in nodes if isinstance(n, ast.Assign) and n.op in ("+", "-")]
    counted = {n.target.text for n in updates if isinstance(n.target, ast.Name)}
    tests = [loop.condition, *(n.condition for n in nodes if isinstance(n, (ast.If, ast.Elif)))]
    if any(isinstance(n, ast.Name) and n.text in counted for test in tests for n in ast.walk(test)):
        return
    body.facts.warn("W106", "only the model ends this loop, and it may never do so", loop.condition, "nothing counts the rounds",
                    "write `for step in range(n):` and leave it with `break`")


def _calls(expr: ast.Expr) -> Iterator[ast.Call]:
    return (n for n in ast.walk(expr) if isinstance(n, ast.Call))


# -------------------------------------------------------------------------- W108


def _never_read(body: Body, nodes: list[ast.Node], meant: set[str]) -> None:
    """Variables and parameters that nothing reads; loop variables and names bound by the model need not be.

    `meant` are names that a text shows but for a dollar, which has its own warning.
    """
    free = meant | {n.name.text for n in nodes if isinstance(n, ast.Hole) and n.name is not None}
    assigns = [n for n in nodes if isinstance(n, ast.Assign) and isinstance(n.target, ast.Name)]
    free |= {n.target.text for n in assigns if _asks(body, n.value)}
    for symbol in _bound(body, nodes):
        if symbol in body.facts.reads or symbol.name in free or symbol.name.startswith("_"):
            continue
        if symbol.kind in (LocalKind.VARIABLE, LocalKind.JOINED, LocalKind.PARAMETER):
            body.facts.warn("W108", f"the {symbol.kind.value} `{symbol.name}` is never read", symbol.span, "never read",
                            f"use it, remove it, or name it `_{symbol.name}`")


def _asks(body: Body, value: ast.Expr) -> bool:
    return isinstance(value, ast.Call) and isinstance(body.facts.calls.get(value), (GenCall, SelectCall))


def _bound(body: Body, nodes: list[ast.Node]) -> list[LocalSymbol]:
    found = dict.fromkeys(body.scopes[0].names.values())
    for node in nodes:
        symbol = body.facts.symbols.get(node)
        if isinstance(symbol, LocalSymbol):
            found.setdefault(symbol)
    return list(found)
