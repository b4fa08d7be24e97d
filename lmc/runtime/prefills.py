"""Prefixes that programs want computed before their readers come, and when the engine does it: while nobody waits.

    ask(7, ids)      the readers come and wait: the first of them computes `ids` on its way, once, and the others find it
    ask(8, ids)      nobody waits: it becomes a request of its own, and the readers find it when they come

Where requests wait the engine is at work in any case, and computing ahead gains no time.  In a small pool it would cost some: what is
computed before its readers may start is the first to go for those that run.  For the same reason what is computed ahead holds at most
half of the pool.  This file knows neither pool nor scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator

from lmc.runtime.live_contexts import LiveContexts
from lmc.runtime.radix import RadixTree

#: The part of the pool that may hold what is computed ahead, until its contexts are over.
AHEAD_SHARE = 0.5


class Prefills:
    """What is asked for and not begun.  Its context lives as soon as it is known that the prefix is there."""

    __slots__ = ("_tree", "_live", "_asked", "_begun", "_left")

    def __init__(self, tree: RadixTree, live: LiveContexts, slots: int):
        self._tree = tree
        self._live = live
        self._asked: dict[int, tuple[int, ...]] = {}
        self._begun: dict[int, int] = {}  # tokens of what was begun and is not over
        self._left = int(slots * AHEAD_SHARE)

    def ask(self, handle: int, ids: tuple[int, ...]) -> None:
        """`handle` is a ticket, and the name of the context that lives then.  Two forks of one context ask once."""
        self._asked.setdefault(handle, ids)
        if self._tree.match_length(list(ids))[0] == len(ids):
            self._is_there(handle)

    def computed(self, ids: tuple[int, ...]) -> None:
        """A context of these `ids` is in the tree, and so are the prefixes that it goes on from.

        Told before the context lives: what only it kept would go first once it is released."""
        length = len(ids)
        # Many may be asked for: nearly all differ in the one token that is compared first.
        for handle, prefix in list(self._asked.items()):
            if len(prefix) <= length and prefix[-1] == ids[len(prefix) - 1] and prefix == ids[: len(prefix)]:
                self._is_there(handle)

    def drop(self, handle: int) -> None:
        """Nobody reads it any more.  What its readers computed of it is its context's until that is released."""
        self._left += self._begun.pop(handle, 0)
        if handle in self._asked:
            self._is_there(handle)

    @property
    def ready(self) -> bool:
        """Whether one could begin."""
        return bool(self._asked) and len(next(iter(self._asked.values()))) <= self._left

    def due(self, tokens: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Those to begin now, when nobody waits, of about so many tokens together; in the order in which they are asked for, because
        the first ones' readers come first."""
        while tokens > 0 and self.ready:
            handle, ids = next(iter(self._asked.items()))
            found, _ = self._tree.match_length(list(ids))
            if found == len(ids):
                self._is_there(handle)
                continue
            tokens -= len(ids) - found
            self._left -= len(ids)
            self._begun[handle] = len(ids)
            del self._asked[handle]
            yield handle, ids

    def _is_there(self, handle: int) -> None:
        self._live.keep(handle, self._asked.pop(handle), None)
