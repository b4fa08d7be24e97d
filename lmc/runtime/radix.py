"""The tree of token prefixes whose keys and values are in the pool.

Each node holds a piece of text as token ids, and for each id the slot of its key and value; a path from the root is a prefix.

                 (root)
                    |
             [you are a]             locked by A and B
              /        \\
     [strict judge]   [terse tutor]  locked by A; the other is a leaf without locks: it may be evicted

A node is locked while a request that uses it runs; locks count on the whole path to the root.  Locked slots never leave the tree.
A node is kept while a context that lives goes through it, which only orders eviction: leaves come first that every context has
released, then those of which nothing is known or that live, pinned ones last; in each class the least recently used first, and of
those used in the same step the one whose next use is farthest.  A leaf's tail is cut where that is enough.

The tree owns the slots in its nodes, and gives them up only through what `evict`, `drop` and `extend` return; it knows neither the
pool nor requests.  Comparing is by slices, never element by element.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from functools import wraps
from typing import Any

from lmc.runtime.time_shares import Stopwatch, Work

#: The next use of what is not known to have one, or waits for the world outside first: farther than any.
FAR = 1 << 30


class Node:
    """A piece of a prefix.

    depth: the tokens from the root to the node's end
    locks, keeps, pins: how many requests, living contexts and pinned prefixes go through it
    used: the step of its last use; next_use: how many calls of the model lie before the next one, `FAR` where that is not known
    released: contexts went through it and none of them lives, and no request has used it since
    entry: the number of its place in the queue for eviction, 0 where it has none
    alive: False once it left the tree
    """

    __slots__ = ("key", "slots", "parent", "children", "depth", "locks", "keeps", "pins", "used", "next_use", "released", "entry",
                 "alive")

    def __init__(self, key: list[int], slots: list[int], parent: Node | None):
        self.key = key
        self.slots = slots
        self.parent = parent
        self.children: dict[int, Node] = {}
        self.depth = len(key) + (parent.depth if parent else 0)
        self.locks = self.keeps = self.pins = 0
        self.used = 0
        self.next_use = FAR
        self.released = False
        self.entry = 0
        self.alive = True


def _timed(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method whose time counts for the tree."""

    @wraps(method)
    def timed(self: RadixTree, *args: Any) -> Any:
        before = self.watch.turn_to(Work.TREE)
        try:
            return method(self, *args)
        finally:
            self.watch.turn_to(before)

    return timed


class RadixTree:
    """`cached_count`: slots in nodes without locks; `locked_count`: in nodes with locks; `pinned_count`: in nodes with pins.

    `step` is the time: whoever owns the tree counts it up, and uses of one step are simultaneous.
    `watch`: counts the time that the tree takes."""

    #: Whether any beginning of what was put in may be found, see `flat_table.py`.
    shares_parts = True

    __slots__ = ("root", "cached_count", "locked_count", "pinned_count", "step", "watch", "node_count", "_queue", "_serial")

    def __init__(self):
        self.root = Node([], [], None)
        self.cached_count = self.locked_count = self.pinned_count = 0
        self.step = 0
        self.watch = Stopwatch()
        self._queue: list[tuple[_Rank, int, Node]] = []  # heap of leaves with their serials; `entry` tells stale ones
        self._serial = 0
        self.node_count = 0

    @_timed
    def match_length(self, ids: list[int], start: Node | None = None) -> tuple[int, Node]:
        """How many of `ids` are in the tree, and the deepest node that matches whole; nothing is changed.

        `start`: a node known to match the beginning of `ids`, to go on from."""
        node = start or self.root
        while True:
            child = node.children.get(ids[node.depth]) if node.depth < len(ids) else None
            if child is None:
                return node.depth, node
            shared = common_length(child.key, ids, node.depth)
            if shared < len(child.key):
                return node.depth + shared, node
            node = child

    @_timed
    def match(self, ids: list[int], at_most: int) -> Node:
        """The node that ends the longest prefix of `ids` of at most `at_most` tokens; a node is split where the match ends in it."""
        length, node = self.match_length(ids)
        length = min(length, at_most)
        if node.depth < length:
            return self._split(node.children[ids[node.depth]], length - node.depth)
        return self.at_depth(node, length)

    @_timed
    def at_depth(self, node: Node, depth: int) -> Node:
        """The node on the path to `node` that ends after `depth` tokens; one is split where none does."""
        while node.parent is not None and node.parent.depth >= depth:
            node = node.parent
        return self._split(node, depth - node.parent.depth) if node.depth > depth else node

    @_timed
    def path_slots(self, node: Node) -> list[int]:
        """The slots of all tokens from the root to the end of `node`, in order."""
        pieces = []
        while node.parent is not None:
            pieces.append(node.slots)
            node = node.parent
        return [slot for piece in reversed(pieces) for slot in piece]

    @_timed
    def lock(self, node: Node) -> None:
        """Hold the path to `node` until `unlock`."""
        while node.parent is not None:
            assert node.alive, "a lock on a node that left the tree"
            if node.locks == 0:
                self.cached_count -= len(node.key)
                self.locked_count += len(node.key)
            node.locks += 1
            node.used, node.released = self.step, False
            node = node.parent

    @_timed
    def unlock(self, node: Node) -> None:
        """Undo one `lock`.  The path's nodes count as used now."""
        while node.parent is not None:
            assert node.locks > 0, f"unlock of a node with {node.locks} locks"
            node.locks -= 1
            node.used = self.step
            if node.locks == 0:
                self.locked_count -= len(node.key)
                self.cached_count += len(node.key)
                self._offer(node)
            node = node.parent

    @_timed
    def keep(self, node: Node, next_use: int = FAR) -> None:
        """A context lives that ends with `node`, until `release`."""
        while node.parent is not None:
            node.keeps += 1
            node.released = False
            node.next_use = next_use
            node = node.parent

    @_timed
    def release(self, node: Node) -> None:
        """Undo one `keep`.  What no context goes through any more is evicted first; nodes that left the tree meanwhile are passed over."""
        while node.parent is not None:
            assert node.keeps > 0, f"release of a node with {node.keeps} keeps"
            node.keeps -= 1
            if node.keeps == 0:
                # What a request is using has another reader, whose own context will say when it is over.
                node.released, node.next_use = node.locks == 0, FAR
                self._offer(node)
            node = node.parent

    @_timed
    def pin(self, node: Node) -> None:
        """Evict the path to `node` last, until `unpin`."""
        while node.parent is not None:
            self.pinned_count += len(node.key) if node.pins == 0 and node.alive else 0
            node.pins += 1
            node = node.parent

    @_timed
    def unpin(self, node: Node) -> None:
        """Undo one `pin`."""
        while node.parent is not None:
            assert node.pins > 0, f"unpin of a node with {node.pins} pins"
            node.pins -= 1
            if node.pins == 0 and node.alive:
                self.pinned_count -= len(node.key)
                self._offer(node)
            node = node.parent

    @_timed
    def extend(self, node: Node, ids: list[int], slots: list[int]) -> tuple[Node, list[int]]:
        """Put `ids`, which follow the path to `node`, under it, with their `slots`.

        Returns the node that ends them, and those of `slots` that the tree did not take, because it holds the tokens already; whoever
        reads them must go over to the tree's (`path_slots`)."""
        taken = 0
        while taken < len(ids):
            child = node.children.get(ids[taken])
            if child is None:
                node = self._add(node, ids[taken:], slots[taken:])
                return node, slots[:taken]
            shared = common_length(child.key, ids, taken)
            node = self._split(child, shared) if shared < len(child.key) else child
            taken += shared
        return node, list(slots)

    @_timed
    def evict(self, count: int) -> list[int]:
        """Slots of at least `count` tokens without locks, in the order above; all there are where they are fewer."""
        slots: list[int] = []
        while len(slots) < count and self._queue:
            rank, serial, node = heapq.heappop(self._queue)
            if node.entry != serial:
                continue  # it was offered again since
            node.entry = 0
            if rank != _rank(node):
                self._offer(node)
            elif self._evictable(node):
                surplus = len(node.key) - (count - len(slots))
                rest = self._split(node, surplus) if surplus > 0 else None
                slots += self._remove(node)
                if rest is not None:
                    self._offer(rest, serial)  # what is left of a leaf stays next
        return slots

    @_timed
    def drop(self, node: Node, depth: int) -> list[int]:
        """Take `node` and the nodes above it out of the tree as far as they lie below `depth` and nothing else needs them; their slots."""
        slots: list[int] = []
        while node.depth > depth and node.locks == 0 and not node.children:
            if node.alive:  # one that an earlier call took is passed over, its parents may be left
                slots += self._remove(node)
            node = node.parent
        return slots

    def nodes(self) -> list[Node]:
        """All nodes but the root, for checks and reports."""
        found, front = [], [self.root]
        while front:
            node = front.pop()
            found += node.children.values()
            front += node.children.values()
        return found

    def _add(self, parent: Node, key: list[int], slots: list[int]) -> Node:
        node = Node(key, slots, parent)
        assert len(key) == len(slots), (len(key), len(slots))
        parent.children[key[0]] = node
        self.cached_count += len(key)
        self.node_count += 1
        node.used = self.step
        self._offer(node)
        return node

    def _split(self, node: Node, length: int) -> Node:
        """Cut `node` after `length` tokens.  The new upper part is returned; `node` stays the lower one, so that what holds it stays
        right."""
        assert 0 < length < len(node.key), (length, len(node.key))
        upper = Node(node.key[:length], node.slots[:length], node.parent)
        upper.locks, upper.keeps, upper.pins = node.locks, node.keeps, node.pins
        upper.used, upper.next_use, upper.released = node.used, node.next_use, node.released
        self.node_count += 1
        node.parent.children[node.key[0]] = upper
        node.key, node.slots, node.parent = node.key[length:], node.slots[length:], upper
        upper.children[node.key[0]] = node
        return upper

    def _remove(self, node: Node) -> list[int]:
        assert node.alive and self._evictable(node), "only a leaf without locks leaves the tree"
        del node.parent.children[node.key[0]]
        node.alive = False
        self.cached_count -= len(node.key)
        self.pinned_count -= len(node.key) if node.pins else 0
        self.node_count -= 1
        self._offer(node.parent)
        return node.slots

    def _evictable(self, node: Node) -> bool:
        return node.alive and node.locks == 0 and not node.children and node.parent is not None

    def _offer(self, node: Node, serial: int | None = None) -> None:
        """Queue a node that may be evicted; one that may not yet is offered again when its last lock or child goes."""
        if not self._evictable(node):
            return
        if serial is None:
            self._serial = serial = self._serial + 1
        node.entry = serial
        heapq.heappush(self._queue, (_rank(node), serial, node))
        # Each use of a leaf leaves a stale entry, which nothing takes out while there is room.
        if len(self._queue) > 4 * self.node_count + 64:
            self._queue = [entry for entry in self._queue if entry[2].entry == entry[1] and entry[2].alive]
            heapq.heapify(self._queue)


#: Class, step of the last use, and how near the next use is: what is smallest is evicted first.
_Rank = tuple[int, int, int]


def _rank(node: Node) -> _Rank:
    return 2 if node.pins else 0 if node.released else 1, node.used, -node.next_use


def common_length(key: list[int], ids: list[int], start: int) -> int:
    """How many tokens of `key` agree with `ids[start:]`."""
    limit = min(len(key), len(ids) - start)
    if key[:limit] == ids[start : start + limit]:
        return limit
    low, high = 0, limit  # the first `low` agree, the first `high` do not
    while high - low > 1:
        middle = (low + high) // 2
        if key[low:middle] == ids[start + low : start + middle]:
            low = middle
        else:
            high = middle
    return low
