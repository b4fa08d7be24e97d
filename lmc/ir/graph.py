"""Functions as graphs: what depends on what, how much can run side by side, and a drawing.

    graph = dependence_graph(function)
    critical_path(graph)              # the longest chain of generations
    to_dot(graph)                     # for `lmc compile --emit=dot`

A node is an op, by its number in program order; an edge goes from an op to one that reads its result.  An op with regions is one
node for itself, and its regions' ops are nodes of their own that depend on it; so the graph says what may start when, not what
ends when.
"""

from __future__ import annotations

import networkx

from lmc.ir.core import Block, Effect, Function, Op, Value, blocks, operands
from lmc.ir.printer import value_names


def dependence_graph(function: Function) -> networkx.DiGraph:
    """Nodes 0, 1, … with `op`, `label` and `parent` (the node of the op around, or None); edges with `value`, the name read."""
    return _GraphBuilder(function).graph


class _GraphBuilder:
    __slots__ = ("graph", "names", "made_by")

    def __init__(self, function: Function):
        self.graph = networkx.DiGraph(name=function.name)
        self.names = value_names(function)
        self.made_by: dict[Value, int] = {}
        self._block(function.body, None)

    def _block(self, block: Block, parent: int | None) -> None:
        # Arguments come from the op around; those of the function come from nowhere.
        if parent is not None:
            self.made_by.update((arg, parent) for arg in block.args)
        for op in block.ops:
            node = self._node(op, parent)
            for inner in blocks(op):
                self._block(inner, node)

    def _node(self, op: Op, parent: int | None) -> int:
        node = self.graph.number_of_nodes()
        results = ", ".join(f"%{self.names[r]}" for r in op.results)
        self.graph.add_node(node, op=op, parent=parent, label=f"{results} = {op.mnemonic}" if results else op.mnemonic)
        if parent is not None:
            self.graph.add_edge(parent, node, value="")
        for value in operands(op):
            if isinstance(value, Value) and value in self.made_by:
                self.graph.add_edge(self.made_by[value], node, value=self.names[value])
        self.made_by.update((r, node) for r in op.results)
        return node


def critical_path(graph: networkx.DiGraph) -> list[int]:
    """The nodes of a chain with the most generations, in order: what no parallelism can shorten (each loop counted once)."""
    best: dict[int, tuple[int, int | None]] = {}
    for node in networkx.topological_sort(graph):
        before = max(graph.predecessors(node), key=lambda n: best[n][0], default=None)
        weight = Effect.MODEL in graph.nodes[node]["op"].effect
        best[node] = (weight + (best[before][0] if before is not None else 0), before)
    node = max(best, key=lambda n: best[n][0], default=None)
    path: list[int] = []
    while node is not None:
        path.append(node)
        node = best[node][1]
    return path[::-1]


def independent(graph: networkx.DiGraph, first: int, second: int) -> bool:
    """Whether neither of two ops waits for the other by data."""
    return not (networkx.has_path(graph, first, second) or networkx.has_path(graph, second, first))


def to_dot(graph: networkx.DiGraph) -> str:
    """The graph in the DOT language; generations are filled."""
    lines = [f"digraph {_quoted(graph.graph['name'])} {{", "  node [shape=box, fontname=monospace];"]
    for node, data in graph.nodes(data=True):
        fill = ", style=filled, fillcolor=lightyellow" if Effect.MODEL in data["op"].effect else ""
        lines.append(f"  n{node} [label={_quoted(data['label'])}{fill}];")
    for source, target, data in graph.edges(data=True):
        style = f"label={_quoted('%' + data['value'])}" if data["value"] else "style=dotted"
        lines.append(f"  n{source} -> n{target} [{style}];")
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
