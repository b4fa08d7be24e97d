"""Whose prefix it is, written into the first id of it: requests of different clients share nothing in the cache.

    salted((17, 4, 9), 2)     [17 + 2 << 32, 4, 9]      another path from the root of the tree
    plain(…)                  [17, 4, 9]                what the model reads

Tree and scheduler compare ids, and do not care what they mean.
"""

from __future__ import annotations

from collections.abc import Sequence

#: More than any vocabulary has.
_BITS = 32
_TOKEN = (1 << _BITS) - 1


def salted(ids: Sequence[int], tenant: int) -> list[int]:
    """`tenant` 0 is everybody's."""
    return [ids[0] + (tenant << _BITS), *ids[1:]] if tenant and ids else list(ids)


def plain(ids: list[int]) -> list[int]:
    """The tokens of a list that begins a prompt."""
    return [ids[0] & _TOKEN, *ids[1:]]
