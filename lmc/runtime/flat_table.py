"""A cache that finds whole entries only, as a table from prompts to their keys and values would.

    put in     you are a judge: A          find   you are a judge: A, and why?      18 tokens: all of the entry
                                           find   you are a judge: B                0 tokens: no entry begins so

It is there to be measured beside the tree (`lmc bench ablation`).  An entry is a request's prompt, or that and its answer.  Entries
that begin alike do not take memory twice, which a plain table would need, so hit rates are better than those of one.
"""

from __future__ import annotations

from lmc.runtime.radix import Node, RadixTree, common_length


class FlatTable(RadixTree):
    """A tree of which only the nodes that end an entry may be found."""

    shares_parts = False

    __slots__ = ("_ends",)

    def __init__(self) -> None:
        super().__init__()
        self._ends: set[Node] = set()

    def match_length(self, ids: list[int], start: Node | None = None) -> tuple[int, Node]:
        node = end = start or self.root
        while node.depth < len(ids):
            child = node.children.get(ids[node.depth])
            if child is None or common_length(child.key, ids, node.depth) < len(child.key):
                break
            node = child
            if node in self._ends:
                end = node
        return end.depth, end

    def extend(self, node: Node, ids: list[int], slots: list[int]) -> tuple[Node, list[int]]:
        end, unused = super().extend(node, ids, slots)
        self._ends.add(end)
        return end, unused

    def _remove(self, node: Node) -> list[int]:
        self._ends.discard(node)
        return super()._remove(node)
