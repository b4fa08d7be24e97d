"""What all nodes of the syntax tree are, and how to walk over them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from lmc.diagnostics import Span


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Identifier(Node):
    """A name where it is declared or bound (a parameter, a target, a keyword's name); a use is a `Name`."""

    text: str


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below, in the order written."""
    for f in fields(node):
        yield from _nodes(getattr(node, f.name))


def _nodes(value: object) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes(item)


def walk(node: Node) -> Iterator[Node]:
    """`node` and all nodes below it, parents first."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(list(children(current))))
