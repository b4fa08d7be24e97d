"""Which contexts live and which prefixes are pinned, marked in the tree; and the work of a prefill.

It carries out the hints of `hints.py` that need no scheduling.  It knows neither programs nor requests.
"""

from __future__ import annotations

from collections import OrderedDict

from lmc.runtime.radix import FAR, Node, RadixTree
from lmc.runtime.request import ScoreRequest
from lmc.runtime.scoring import Scoring

#: The part of the pool that pins may hold.
PINNED_SHARE = 0.25
#: So many pins may wait for their prefix to be computed; each is compared with every context that is kept.
MOST_AWAITED = 32


class Prefilling(Scoring):
    """The work of a `Prefill`: a scoring of one token, which is not computed, and whose result nobody reads."""

    __slots__ = ()

    def __init__(self, ids: tuple[int, ...]):
        super().__init__(ScoreRequest((*ids, ids[-1]), len(ids)))


class LiveContexts:
    """Which contexts live and which prefixes are pinned, marked in the tree."""

    __slots__ = ("_tree", "_budget", "_kept", "_pinned", "_awaited")

    def __init__(self, tree: RadixTree, slots: int):
        self._tree = tree
        self._budget = int(slots * PINNED_SHARE)
        self._kept: dict[int, Node] = {}
        self._pinned: OrderedDict[tuple[int, ...], Node] = OrderedDict()  # least recently pinned first
        self._awaited: OrderedDict[tuple[int, ...], None] = OrderedDict()  # pins of what is not all computed

    def keep(self, handle: int, ids: tuple[int, ...], next_use: int | None) -> None:
        """Mark what the tree has of `ids`.  Of a handle that lives already only what was marked before is given up."""
        node = self._tree.match(list(ids), len(ids))
        self._tree.keep(node, FAR if next_use is None else next_use)
        self.release(handle)
        self._kept[handle] = node
        for prefix in [p for p in self._awaited if p == ids[: len(p)]]:
            self.pin(prefix)

    def release(self, handle: int) -> None:
        """Let a context go."""
        node = self._kept.pop(handle, None)
        if node is not None:
            self._tree.release(node)

    def pin(self, ids: tuple[int, ...]) -> None:
        """Pin `ids` as far as the budget goes; older pins give way.  What is not computed yet is pinned when a context that begins so is
        kept."""
        ids = ids[: self._budget]
        self._awaited.pop(ids, None)
        old = self._pinned.pop(ids, None)
        if old is not None:
            self._tree.unpin(old)
        node = self._tree.match(list(ids), len(ids))
        if node.depth < len(ids):
            self._awaited[ids] = None
            while len(self._awaited) > MOST_AWAITED:
                self._awaited.popitem(last=False)
        if node.parent is None:
            return
        self._tree.pin(node)
        self._pinned[ids] = node
        while self._tree.pinned_count > self._budget:
            _, oldest = self._pinned.popitem(last=False)
            self._tree.unpin(oldest)
