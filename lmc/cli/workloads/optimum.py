"""The fewest prompt tokens that any cache can leave to be computed, for the requests of a run.

    a b c d        computes 4
    a b c e        1: the edge that is new in the tree of all prompts
    a b c e        1: what comes after a prompt is known of no cache, so its last token is computed again

SGLang's paper (theorem 3.1): visited depth first, with a cache that holds the longest request, each edge of the tree of the requests
is computed once.  What a generation has written is in the tree, too, when a later prompt holds it.
"""

from __future__ import annotations

from collections.abc import Iterable

from lmc.cli.workloads.watched import Asked, Written


def fewest_computed(events: Iterable[Asked | Written]) -> int:
    """events: as a `WatchedSession` kept them"""
    # It imports nothing heavy but every command reads this file.
    from lmc.runtime.radix import RadixTree

    tree, computed = RadixTree(), 0
    for event in events:
        ids = event.ids.tolist()
        if isinstance(event, Asked):
            known, _ = tree.match_length(ids)
            computed += max(len(ids) - known, event.least)
        # The slots are never looked at.
        tree.extend(tree.root, ids, [0] * len(ids))
    return computed
