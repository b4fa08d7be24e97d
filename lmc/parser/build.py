"""From Lark's trees to the syntax tree.

The tree is walked bottom-up without recursion; each rule of `lmp.lark` has a function in `build_expressions`, `build_statements`
or `build_items` that gets the builder, the span of the rule and what its children became.  A rule with no function stays a `Tree`
with built children (`annotation`, `default`, …), for the function above it to take apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lark import Token, Tree

from lmc.diagnostics import Diagnostic, Span
from lmc.parser import words
from lmc.parser.ast import Hole, Identifier, Name, Node, Text, children
from lmc.parser.build_expressions import EXPRESSIONS
from lmc.parser.build_items import ITEMS
from lmc.parser.build_statements import STATEMENTS
from lmc.parser.sources import Code, HoleSource, StringSource
from lmc.parser.places import Places
from lmc.parser.text import build_text

RULES: dict[str, Callable[[Builder, Span, list], Any]] = {**EXPRESSIONS, **STATEMENTS, **ITEMS}

MAX_DEPTH = 150
"""Levels of the syntax tree.  What reads it is recursive, with a few frames a level; Python stops at 1,000 frames."""


class Builder:
    """Builds the nodes of one parsed piece of code.

    `offset` is where the parsed text begins in the file; `parse_hole` parses and builds a hole, reporting what is wrong with it.
    """

    __slots__ = ("source", "places", "code", "offset", "parse_hole", "report", "_keywords")

    def __init__(self, source: str, places: Places, code: Code, offset: int, parse_hole: Callable[[HoleSource], Hole | None],
                 report: list[Diagnostic]):
        self.source = source
        self.places = places
        self.code = code
        self.offset = offset
        self.parse_hole = parse_hole
        self.report = report
        self._keywords: dict[Name, None] = {}

    def build(self, root: Tree) -> Any:
        """What `root` stands for."""
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
            built[id(tree)] = rule(self, self.span(start, end), kids) if rule else Tree(tree.data, kids)
        for name in self._keywords:
            self.error("E0110", f"`{name.text}` is {words.reserved(name.text)}, a value is expected here", name.span, "not a value",
                       "write an expression, or choose another name")
        return built[id(root)]

    def span(self, start: int, end: int) -> Span:
        return self.places.span(self.offset + start, self.offset + end)

    def at(self, token: Token) -> Span:
        return self.span(token.start_pos, token.end_pos)

    def error(self, code: str, message: str, span: Span, label: str, help: str) -> None:
        self.report.append(Diagnostic(code, message, span, label, help))

    # ------------------------------------------------------------- tokens

    def label(self, token: Token) -> Identifier:
        """A field, attribute or argument name: any word."""
        return Identifier(self.at(token), str(token))

    def binding(self, token: Token, what: str) -> Identifier:
        """The name of a new `what` (a variable, a parameter, …), which must not be a reserved word."""
        kind = words.reserved(token)
        if kind and token != "_":
            self.error("E0110", f"`{token}` is {kind} and cannot name {what}", self.at(token), "reserved",
                       f"choose another name, for instance `{token}_` or `my_{token.lower()}`")
        return self.label(token)

    def name(self, token: Token) -> Name:
        """A use of a name."""
        name = Name(self.at(token), str(token))
        if token in words.KEYWORDS or token in words.ROLES or token in words.PYTHON_KEYWORDS:
            self._keywords[name] = None
        return name

    def allow_keyword(self, name: Name) -> None:
        """`name` turned out to be a field's name, where any word is allowed."""
        self._keywords.pop(name, None)

    def text(self, token: Token) -> Text:
        return self.string(self.code.strings[self.offset + token.start_pos])

    def string(self, string: StringSource) -> Text:
        return build_text(string, self.source, self.places, self.parse_hole, self.report)


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
