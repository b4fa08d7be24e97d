"""Who calls whom: callees before callers, what is recursive, and how deep a chain of calls gets.

    main ──► judge ──► panel ──► greet          order    greet, panel, judge, main
                         ▲__________│           cycles   panel and greet, if greet called panel

Only what is seen in the module: any `def` may also be called from outside, as the first of a chain.
"""

from __future__ import annotations

import math

from lmc.ir.core import Module, walk_ops
from lmc.ir.ops import Call


class CallGraph:
    """`callees` by caller; `order`: every function after those that it calls, but for recursion; `recursive`: functions on a cycle."""

    __slots__ = ("callees", "order", "recursive")

    def __init__(self, module: Module):
        # Half of the programs compiled call nothing; networkx takes a tenth of a second to load.
        self.callees = {
            f.name: dict.fromkeys(op.callee for op in walk_ops(f.body) if isinstance(op, Call)) for f in module.functions
        }
        if not any(self.callees.values()):
            self.order, self.recursive = list(self.callees), frozenset[str]()
            return
        import networkx

        graph = networkx.DiGraph(self.callees)
        groups = list(networkx.strongly_connected_components(graph))
        self.order = [name for group in groups for name in sorted(group)]
        self.recursive = frozenset(n for g in groups for n in g if len(g) > 1 or n in self.callees[n])

    def called(self) -> frozenset[str]:
        """The functions that some function calls."""
        return frozenset(callee for callees in self.callees.values() for callee in callees)

    def heights(self) -> dict[str, float]:
        """How many calls the longest chain from each function has; infinite where it may reach recursion."""
        heights: dict[str, float] = {}
        for name in self.order:
            below = [heights.get(callee, math.inf) for callee in self.callees[name]]
            heights[name] = math.inf if name in self.recursive else max(below, default=-1) + 1
        return heights

    def depths(self) -> dict[str, float]:
        """How many calls the longest chain that leads to each function has; infinite where recursion may lead to it."""
        depths: dict[str, float] = {name: math.inf if name in self.recursive else 0 for name in self.order}
        for name in reversed(self.order):
            for callee in self.callees[name]:
                depths[callee] = max(depths[callee], depths[name] + 1)
        return depths
