"""In which order the items of a file are resolved: what others need first.

    A = B + 1
    B = C + 1        ->  C, B, A
    C = 1

Resolving an item resolves what it needs, by recursion; in this order that is done already, so that chains of definitions may be
as long as one likes.  Items in a circle, and what needs them, are left out: they are resolved as they stand, and whoever meets the
circle reports it.  This file does not know what items mean.
"""

from __future__ import annotations

from collections.abc import Mapping

from lmc.parser import ast


def dependencies_first(items: Mapping[str, ast.Node]) -> list[str]:
    """The names of items none of which needs one that comes later."""
    needs = {name: _needs(item) & items.keys() for name, item in items.items()}
    users: dict[str, list[str]] = {name: [] for name in items}
    for name, needed in needs.items():
        for other in needed:
            users[other].append(name)
    missing = {name: len(needed) for name, needed in needs.items()}
    order = [name for name, count in missing.items() if count == 0]
    for name in order:  # it grows meanwhile
        for user in users[name]:
            missing[user] -= 1
            if missing[user] == 0:
                order.append(user)
    return order


def _needs(item: ast.Node) -> set[str]:
    """The names in it; of a function only those of its signature, since its body is looked at later."""
    roots: tuple[ast.Node, ...] = (item,)
    if isinstance(item, ast.FunctionDef) and item.kind != "part":
        roots = (*item.params, *((item.result,) if item.result is not None else ()))
    return {node.text for root in roots for node in ast.walk(root) if isinstance(node, ast.Name)}
