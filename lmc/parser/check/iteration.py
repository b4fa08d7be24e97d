"""What a `for`, `fork` or comprehension runs over, and the names that take the elements.

    for i, x in enumerate(xs):      element (int, str), taken apart

Lists, texts (characters) and dicts (keys) can be run over.
"""

from __future__ import annotations

from lmc.parser import ast
from lmc.parser.check.body import Body
from lmc.parser.check.model import UNKNOWN, LocalKind, LocalSymbol
from lmc.parser.check.relations import is_int, is_str, known, type_text
from lmc.types import STR, DictT, ListT, NeverT, OptionalT, TupleT, Type


def element_of(body: Body, iterable: ast.Expr) -> Type:
    """The type of one element of `iterable`."""
    found = body.infer(iterable)
    match found:
        case ListT(element) | DictT(key=element):
            return element if not isinstance(element, NeverT) else no_element(body, iterable)
        case _ if is_str(found):
            return STR
    if known(found):
        body.facts.error("E0319", f"`{type_text(found)}` cannot be run over", iterable, f"this is `{type_text(found)}`",
                         _help(found))
    return UNKNOWN


def no_element(body: Body, expr: ast.Expr) -> Type:
    """An element is taken of `[]`, written in place."""
    body.facts.error("E0312", "this is empty, so it has no element to take", expr, "always empty")
    return UNKNOWN


def _help(found: Type) -> str | None:
    if is_int(found):
        return "for a number of rounds write `range(n)`"
    if isinstance(found, OptionalT):
        return "it may be None: test it first, `if xs is not None:`"
    return None


def bind_targets(body: Body, targets: tuple[ast.Identifier, ...], element: Type, kind: LocalKind, at: ast.Node, *,
                 fresh: bool = False) -> list[LocalSymbol]:
    """Bind the names to an element, taking a tuple apart; `fresh` names are new ones of the innermost scope."""
    types: tuple[Type, ...] = (element,)
    if len(targets) > 1:
        types = _parts(body, targets, element, at)
    symbols = []
    for target, type in zip(targets, types):
        if fresh:
            symbol = body.declare(target, target.text, type, kind)
            body.flow.assign(symbol)
        else:
            symbol = body.bind(target, target.text, type, kind)
        symbols.append(symbol)
    return symbols


def _parts(body: Body, targets: tuple[ast.Identifier, ...], element: Type, at: ast.Node) -> tuple[Type, ...]:
    if isinstance(element, TupleT) and len(element.items) == len(targets):
        return element.items
    if known(element):
        count = len(element.items) if isinstance(element, TupleT) else 1
        body.facts.error("E0319", f"{len(targets)} names for elements of {count} part{'s' if count != 1 else ''}",
                         targets[0].span.to(targets[-1].span),
                         f"each element is `{type_text(element)}`", "`enumerate(xs)`, `zip(xs, ys)` and `d.items()` give pairs")
    return (UNKNOWN,) * len(targets)
