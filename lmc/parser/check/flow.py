"""What is known at one point of a body: which names have a value, which types are narrower, how far the conversation is.

    if c:                 # Flow at the `if`
        x = 1             #   a copy, with x assigned
    else:
        return None       #   a copy, not live
    use(x)                # merged: x is assigned, because the other path does not come here

The checker walks a body in program order and carries one `Flow`; this file has the state and how two paths meet.
"""

from __future__ import annotations

from enum import Enum

from lmc.parser import ast
from lmc.parser.check.model import LocalSymbol
from lmc.parser.check.relations import join
from lmc.types import Type

#: A name, or a field of a field of a name: what a test like `c.wand is not None` narrows.
Path = tuple[LocalSymbol | str, ...]


class Turns(Enum):
    """How far the conversation is, where that is certain."""

    EMPTY = "empty"
    SYSTEM = "system"
    CHAT = "chat"
    RAW = "raw"
    UNKNOWN = "unknown"


class Flow:
    """The state; changed while walking, copied where paths part."""

    __slots__ = ("assigned", "narrowed", "turns", "live")

    def __init__(self, assigned: set[LocalSymbol], narrowed: dict[Path, Type], turns: Turns, live: bool = True):
        self.assigned, self.narrowed, self.turns, self.live = assigned, narrowed, turns, live

    def copy(self) -> Flow:
        return Flow(set(self.assigned), dict(self.narrowed), self.turns, self.live)

    def assign(self, symbol: LocalSymbol) -> None:
        """The name has a new value, so nothing narrower is known of it."""
        self.assigned.add(symbol)
        self.forget(symbol)

    def forget(self, symbol: LocalSymbol) -> None:
        for path in [p for p in self.narrowed if p[0] is symbol]:
            del self.narrowed[path]

    def narrow(self, facts: dict[Path, Type]) -> None:
        self.narrowed.update(facts)


def meet(paths: list[Flow]) -> Flow:
    """The state where several paths come together; those that ended (return, break, fail) do not count.  `paths` is not empty."""
    live = [p for p in paths if p.live]
    if not live:
        return paths[0].copy()
    result = live[0].copy()
    for other in live[1:]:
        result.assigned &= other.assigned
        result.narrowed = _meet_types(result.narrowed, other.narrowed)
        result.turns = result.turns if result.turns is other.turns else Turns.UNKNOWN
    return result


def _meet_types(a: dict[Path, Type], b: dict[Path, Type]) -> dict[Path, Type]:
    both = {path: join(a[path], b[path]) for path in a if path in b}
    return {path: type for path, type in both.items() if type is not None}


def assigned_names(nodes: tuple[ast.Node, ...]) -> set[str]:
    """All names that the statements bind anywhere, also in branches; not those of comprehensions."""
    names: set[str] = set()
    for root in nodes:
        for node in ast.walk(root):
            names.update(_bound(node))
    return names


def _bound(node: ast.Node) -> list[str]:
    match node:
        case ast.Assign():
            root = node.target
            while isinstance(root, (ast.Index, ast.Attribute)):
                root = root.value
            return [root.text] if isinstance(root, ast.Name) else []
        case ast.Hole(name=name) | ast.Try(name=name) | ast.BrokenPattern(name=name):
            return [name.text] if name is not None else []
        case ast.For(targets=targets) | ast.Fork(targets=targets):
            return [t.text for t in targets]
        case ast.RecordPattern():
            return [t.text for t in (*node.positional, *(target for _, target in node.named))]
        case ast.Export(value=value, target=target):
            if target is not None:
                return [target.text]
            return [value.text] if isinstance(value, ast.Name) else [value.name.text] if isinstance(value, ast.Attribute) else []
    return []
