"""W104: a constrained generation whose labels or fields the prompt never mentions.

    user: "Classify: ${text}"
    assistant: label = gen(Label)        # the model never saw the labels

Field names in the text, `schema(T)` and `fields(T)` count as mentioning.  Only a body that has its whole conversation is judged:
one that resumes a context or calls a part has text elsewhere.
"""

from __future__ import annotations

import re

from lmc.parser import ast
from lmc.parser.check.body import Body
from lmc.parser.check.model import BuiltinCall, ConstSymbol, FunctionCall, GenCall
from lmc.parser.check.relations import strip_optional, type_text
from lmc.types import ListT, LiteralT, RecordT, Type, UnionT


def warn_about_mentions(body: Body, nodes: list[ast.Node]) -> None:
    if body.function is not None and body.function.part is not None or any(isinstance(n, ast.Resume) for n in nodes):
        return
    calls = [body.facts.calls.get(n) for n in nodes if isinstance(n, ast.Call)]
    if any(isinstance(c, FunctionCall) and c.target.part is not None for c in calls):
        return
    shown = [c.type for c in calls if isinstance(c, BuiltinCall) and c.name in ("schema", "fields") and c.type is not None]
    text = _text(body, nodes)
    if re.search(r"\w\w", text) is None:
        return  # the prompt is all holes, and what they hold is not known here
    for node in nodes:
        call = body.facts.calls.get(node) if isinstance(node, ast.Call) else None
        if isinstance(call, GenCall):
            _check(body, nodes, node, call.type, shown, text)


def _text(body: Body, nodes: list[ast.Node]) -> str:
    """All text of the body, and of the constants that it shows."""
    pieces = [n.text for n in nodes if isinstance(n, ast.TextPiece)]
    for node in nodes:
        symbol = body.facts.symbols.get(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
        if isinstance(symbol, ConstSymbol):
            pieces.append(repr(body.facts.constants.get(symbol)))
    return "\n".join(pieces)


def _check(body: Body, nodes: list[ast.Node], node: ast.Node, type: Type, shown: list[Type], text: str) -> None:
    type = strip_optional(type)
    element = type.element if isinstance(type, ListT) else type
    names = _names(element)
    if names and element not in shown and type not in shown and not any(name in text for name in names) \
            and not _is_shown_by_value(body, nodes, node, element):
        what = "its labels" if isinstance(element, LiteralT) else "its fields"
        help = f"name them in the prompt: `${{schema({type_text(element)})}}`" if not isinstance(element, LiteralT) else \
            "name the labels in the prompt: " + ", ".join(names[:5])
        body.facts.warn("W104", f"the model must write a `{type_text(element)}`, and the prompt mentions none of {what}", node,
                        "not mentioned before it", help)


def _is_shown_by_value(body: Body, nodes: list[ast.Node], node: ast.Node, element: Type) -> bool:
    """A value of the type that is used before the generation is an example of it."""
    return any(
        isinstance(expr, (ast.Name, ast.Attribute)) and body.facts.expr_types.get(expr) in (element, ListT(element))
        for expr in nodes if expr.span < node.span
    )


def _names(type: Type) -> list[str]:
    match type:
        case LiteralT(values):
            return [v for v in values if isinstance(v, str)]
        case RecordT(fields=fields):
            return [f.name for f in fields]
        case UnionT(members=members):
            return [f.name for m in members for f in m.fields]
    return []
