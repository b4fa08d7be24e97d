"""Binding the names of a `for`, `fork` or comprehension to an element, which two names take apart.

    for i, x in enumerate(xs):      %i: int = tuple.get(%item)[index = 0]
"""

from __future__ import annotations

from lmc.ir.core import Value
from lmc.ir.ops import TupleGet
from lmc.parser import ast
from lmc.parser.lower.frame import Frame
from lmc.types import TupleT


def element_hint(targets: tuple[ast.Identifier, ...]) -> str:
    """How the element is called in the text form."""
    return targets[0].text if len(targets) == 1 else "item"


def bind(frame: Frame, targets: tuple[ast.Identifier, ...], element: Value) -> None:
    """Make the targets mean the element, or its parts."""
    symbols = [frame.checked.symbols[t] for t in targets]
    if len(targets) == 1:
        frame.names[symbols[0]] = element
        return
    assert isinstance(element.type, TupleT), element.type
    for i, (target, symbol) in enumerate(zip(targets, symbols)):
        frame.names[symbol] = frame.value(TupleGet, target.span, element.type.items[i], target.text, value=element, index=i)
