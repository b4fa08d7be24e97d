"""From Lark's trees to the syntax tree.

The tree is walked bottom-up without recursion; each rule of `lmp.lark` has a function in `build_expressions`, `build_statements`
or `build_items` that gets the builder, the span of the rule and what its children became.  A rule with no function stays a `Tree`
with built children (`annotation`, `default`, …), for the function above it to take apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lark import Tree

from lmc.diagnostics import Span
from lmc.parser.ast import Node, children
from lmc.parser.build_expressions import EXPRESSIONS
from lmc.parser.build_items import ITEMS
from lmc.parser.build_statements import STATEMENTS
from lmc.parser.builder import Builder

RULES: dict[str, Callable[[Builder, Span, list], Any]] = {**EXPRESSIONS, **STATEMENTS, **ITEMS}

MAX_DEPTH = 150
"""Levels of the syntax tree.  What reads it is recursive, with a few frames a level; Python stops at 1,000 frames."""


def build(builder: Builder, root: Tree) -> Any:
    """What `root` stands for: an item, an expression, or a hole that binds a name."""
    order, todo = [], [root]
    while todo:
        tree = todo.pop()
        order.append(tree)
        todo.extend(child for child in tree.children if isinstance(child, Tree))
    built: dict[int, Any] = {}
    extents: dict[int, tuple[int, int]] = {}
    for tree in reversed(order):
        extents[id(tree)] = start, end = _extent(tree, extents)
        kids = [built[id(child)] if isinstance(child, Tree) else child for child in tree.children]
        rule = RULES.get(tree.data)
        built[id(tree)] = rule(builder, builder.span(start, end), kids) if rule else Tree(tree.data, kids)
    builder.refuse_keywords()
    return built[id(root)]


def too_deep(root: Node) -> Node | None:
    """The first node below `root` that is nested too deeply."""
    level: list[Node] = [root]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in children(node)]
        if not level:
            return None
    return level[0]


def _extent(tree: Tree, extents: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """Where the tokens kept in `tree` begin and end."""
    if not tree.children:
        return 0, 0
    first, last = tree.children[0], tree.children[-1]
    start = extents[id(first)][0] if isinstance(first, Tree) else first.start_pos
    end = extents[id(last)][1] if isinstance(last, Tree) else last.end_pos
    return start, end
