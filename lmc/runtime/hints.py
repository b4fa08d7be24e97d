"""What a program tells the engine about contexts: which live, which are over, which will be read soon or again.

    Prefill(7, ids)       several readers come: compute the prefix once, before them; it lives as 7
    Keep(8, ids, 2)       a context of these ids lives as 8; its next reader comes after two calls of the model
    Release(7)            nobody reads 7 any more
    Pin(ids)              later calls begin so

Hints change when work is done and what is evicted, never what comes out; the engine may pass over any of them.  A release means
"evict this first", it never frees; a pin means "evict this last", it never keeps a request out.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from lmc.runtime.radix import FAR, Node, RadixTree
from lmc.runtime.scoring import Scoring
from lmc.runtime.request import ScoreRequest

#: The part of the pool that pins may hold.
PINNED_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Prefill:
    """Compute `ids` into the tree before their readers come; then as `Keep`.  `handle`: a ticket that `Engine.reserve` gave."""

    handle: int
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Keep:
    """A context of these `ids` lives until `Release(handle)`.  `next_use`: so many calls of the model lie before its next reader,
    and nothing that waits for the world outside; None where that is not known."""

    handle: int
    ids: tuple[int, ...]
    next_use: int | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """The context of `handle` is over.  Of an unknown handle nothing happens."""

    handle: int


@dataclass(frozen=True, slots=True)
class Pin:
    """Later calls begin with `ids`: what of them is in the tree is evicted last."""

    ids: tuple[int, ...]


Hint = Prefill | Keep | Release | Pin


class Prefilling(Scoring):
    """The work of a `Prefill`: a scoring of one token, which is not computed, and whose result nobody reads."""

    __slots__ = ()

    def __init__(self, ids: tuple[int, ...]):
        super().__init__(ScoreRequest((*ids, ids[-1]), len(ids)))


class LiveContexts:
    """Which contexts live and which prefixes are pinned, marked in the tree."""

    __slots__ = ("_tree", "_budget", "_kept", "_pinned")

    def __init__(self, tree: RadixTree, slots: int):
        self._tree = tree
        self._budget = int(slots * PINNED_SHARE)
        self._kept: dict[int, Node] = {}
        self._pinned: OrderedDict[tuple[int, ...], Node] = OrderedDict()  # least recently pinned first

    def keep(self, handle: int, ids: tuple[int, ...], next_use: int | None) -> None:
        """Mark what the tree has of `ids`.  Of a handle that lives already only what was marked before is given up."""
        node = self._tree.match(list(ids), len(ids))
        self._tree.keep(node, FAR if next_use is None else next_use)
        self.release(handle)
        self._kept[handle] = node

    def release(self, handle: int) -> None:
        """Let a context go."""
        node = self._kept.pop(handle, None)
        if node is not None:
            self._tree.release(node)

    def pin(self, ids: tuple[int, ...]) -> None:
        """Pin what the tree has of `ids`, as far as the budget goes; older pins give way."""
        ids = ids[: self._budget]
        old = self._pinned.pop(ids, None)
        if old is not None:
            self._tree.unpin(old)
        node = self._tree.match(list(ids), len(ids))
        if node.parent is None:
            return
        self._tree.pin(node)
        self._pinned[ids] = node
        while self._tree.pinned_count > self._budget:
            _, oldest = self._pinned.popitem(last=False)
            self._tree.unpin(oldest)
