"""The tree of token prefixes whose keys and values are in the pool.

Each node holds a piece of text as token ids, and for each id the slot of its key and value; a path from the root is a prefix.

                 (root)
                    |
             [you are a]             locked by A and B
              /        \\
     [strict judge]   [terse tutor]  locked by A; the other is a leaf without locks: it may be evicted

A node is locked while a request that uses it runs; locks count on the whole path to the root.  Locked slots never leave the tree.
Eviction takes the least recently used leaf first, and cuts a leaf's tail where that is enough.

The tree owns the slots in its nodes, and gives them up only through what `evict`, `drop` and `extend` return; it knows neither the
pool nor requests.  Comparing is by slices, never element by element.
"""

from __future__ import annotations

import heapq


class Node:
    """A piece of a prefix.  `depth` counts the tokens from the root to the node's end; `alive` is False once it left the tree."""

    __slots__ = ("key", "slots", "parent", "children", "depth", "locks", "used", "queued", "alive")

    def __init__(self, key: list[int], slots: list[int], parent: Node | None):
        self.key = key
        self.slots = slots
        self.parent = parent
        self.children: dict[int, Node] = {}
        self.depth = len(key) + (parent.depth if parent else 0)
        self.locks = 0
        self.used = 0
        self.queued = False
        self.alive = True


class RadixTree:
    """`cached_count`: slots in nodes without locks; `locked_count`: slots in nodes with locks."""

    __slots__ = ("root", "cached_count", "locked_count", "_clock", "_queue", "_serial")

    def __init__(self):
        self.root = Node([], [], None)
        self.cached_count = 0
        self.locked_count = 0
        self._clock = 0
        self._queue: list[tuple[int, int, Node]] = []  # (last use, serial, leaf); each node is in it at most once
        self._serial = 0

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

    def match(self, ids: list[int], at_most: int) -> Node:
        """The node that ends the longest prefix of `ids` of at most `at_most` tokens; a node is split where the match ends in it."""
        length, node = self.match_length(ids)
        length = min(length, at_most)
        while node.parent is not None and node.parent.depth >= length:
            node = node.parent
        if node.depth < length:
            node = self._split(node.children[ids[node.depth]], length - node.depth)
        elif node.depth > length:
            node = self._split(node, length - node.parent.depth)
        return node

    def path_slots(self, node: Node) -> list[int]:
        """The slots of all tokens from the root to the end of `node`, in order."""
        pieces = []
        while node.parent is not None:
            pieces.append(node.slots)
            node = node.parent
        return [slot for piece in reversed(pieces) for slot in piece]

    def lock(self, node: Node) -> None:
        """Keep the path to `node` until `unlock`."""
        self._clock += 1
        while node.parent is not None:
            assert node.alive, "a lock on a node that left the tree"
            if node.locks == 0:
                self.cached_count -= len(node.key)
                self.locked_count += len(node.key)
            node.locks += 1
            node.used = self._clock
            node = node.parent

    def unlock(self, node: Node) -> None:
        """Undo one `lock`.  The path's nodes count as used now."""
        self._clock += 1
        while node.parent is not None:
            assert node.locks > 0, f"unlock of a node with {node.locks} locks"
            node.locks -= 1
            node.used = self._clock
            if node.locks == 0:
                self.locked_count -= len(node.key)
                self.cached_count += len(node.key)
                self._offer(node)
            node = node.parent

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

    def evict(self, count: int) -> list[int]:
        """Slots of at least `count` tokens without locks, least recently used first; all there are where they are fewer."""
        slots: list[int] = []
        while len(slots) < count and self._queue:
            used, _, node = heapq.heappop(self._queue)
            node.queued = False
            if node.used != used:
                self._offer(node)
            elif node.alive and node.locks == 0 and not node.children:
                surplus = len(node.key) - (count - len(slots))
                if surplus > 0:
                    self._split(node, surplus)
                slots += self._remove(node)
        return slots

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
        self._clock += 1
        node.used = self._clock
        self._offer(node)
        return node

    def _split(self, node: Node, length: int) -> Node:
        """Cut `node` after `length` tokens.  The new upper part is returned; `node` stays the lower one, so that what holds it stays
        right."""
        assert 0 < length < len(node.key), (length, len(node.key))
        upper = Node(node.key[:length], node.slots[:length], node.parent)
        upper.locks, upper.used = node.locks, node.used
        node.parent.children[node.key[0]] = upper
        node.key, node.slots, node.parent = node.key[length:], node.slots[length:], upper
        upper.children[node.key[0]] = node
        return upper

    def _remove(self, node: Node) -> list[int]:
        assert node.alive and node.locks == 0 and not node.children, "only a leaf without locks leaves the tree"
        del node.parent.children[node.key[0]]
        node.alive = False
        self.cached_count -= len(node.key)
        self._offer(node.parent)
        return node.slots

    def _offer(self, node: Node) -> None:
        """Queue a node that may be evicted; one that may not yet is offered again when its last lock or child goes."""
        if not node.queued and node.alive and node.locks == 0 and not node.children and node.parent is not None:
            self._serial += 1
            node.queued = True
            heapq.heappush(self._queue, (node.used, self._serial, node))


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
