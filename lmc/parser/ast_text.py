"""The syntax tree as text, for `lmc compile --emit=ast` and for tests.

    FunctionDef kind='def' name=classify
      params:
        Param name=review
          annotation: Name text='str'

Fields that are empty or None are left out.  With `places=True` each node has its `line:column-line:column`.
"""

from __future__ import annotations

from dataclasses import fields

from lmc.parser.ast import Identifier, Node


def format_tree(node: Node, *, places: bool = False) -> str:
    """`node` and what is below it, one node a line."""
    lines: list[str] = []
    _write(node, "", "", places, lines)
    return "\n".join(lines) + "\n"


def _write(node: Node, indent: str, label: str, places: bool, lines: list[str]) -> None:
    shown, below = [], []
    for field in fields(node):
        value = getattr(node, field.name)
        if field.name == "span" or value is None or value == () or value is False and field.name != "value":
            continue
        if isinstance(value, Identifier):
            shown.append(f"{field.name}={value.text}")
        elif isinstance(value, Node) or _holds_nodes(value):
            below.append((field.name, value))
        else:
            shown.append(f"{field.name}={value!r}")
    if type(node).__name__ == "Constant" and node.value is None:
        shown.append("value=None")
    place = f" @{_place(node)}" if places else ""
    lines.append(f"{indent}{label}{' '.join([type(node).__name__, *shown])}{place}")
    for name, value in below:
        if isinstance(value, Node):
            _write(value, indent + "  ", f"{name}: ", places, lines)
        else:
            lines.append(f"{indent}  {name}:")
            _write_all(value, indent + "    ", places, lines)


def _holds_nodes(value: object) -> bool:
    return isinstance(value, tuple) and any(isinstance(item, Node) or _holds_nodes(item) for item in value)


def _write_all(values: tuple, indent: str, places: bool, lines: list[str]) -> None:
    for value in values:
        if isinstance(value, Node):
            _write(value, indent, "", places, lines)
        elif isinstance(value, tuple):
            lines.append(f"{indent}-")
            _write_all(value, indent + "  ", places, lines)


def _place(node: Node) -> str:
    span = node.span
    return f"{span.line}:{span.column}-{span.end_line}:{span.end_column}"
