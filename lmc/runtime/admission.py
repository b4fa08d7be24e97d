"""In which order waiting requests are admitted.

    lpm      longest prefix in the cache first      what is there is used before it is evicted; the default
    dfs      in the order of their ids              requests that begin alike follow one another, whatever the cache holds
    fcfs     first come, first served
    random   a lot for each request                 what an order is worth is seen beside this one

Whatever the policy, a request that `MAX_OVERTAKEN` later ones went before goes first.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from lmc.runtime.radix import Node
from lmc.runtime.underway import Request

#: So many requests that arrived later may be admitted before a request.
MAX_OVERTAKEN = 50


class Policy(Enum):
    """The order of admission, see above."""

    LPM = "lpm"
    DFS = "dfs"
    FCFS = "fcfs"
    RANDOM = "random"


def in_order(policy: Policy, waiting: list[Request], matched: Mapping[int, int]) -> list[Request]:
    """`waiting`, in the order of their ids, as they are to be admitted.

    matched: by ticket the tokens that the cache has of it; read by `Policy.LPM` only
    """
    match policy:
        case Policy.FCFS:
            return sorted(waiting, key=lambda r: (r.arrival, r.ticket))
        case Policy.DFS:
            return sorted(waiting, key=_first)
        case Policy.RANDOM:
            return sorted(waiting, key=lambda r: (*_first(r), _lot(r.ticket)))
    urgency = _urgency(waiting, matched)
    return sorted(waiting, key=lambda r: (*_first(r), -matched[r.ticket], r.arrival, -urgency[r.ticket]))


def _first(request: Request) -> tuple[bool, bool]:
    """What goes before all others.  A hold comes early because nobody else can use what it holds."""
    return request.overtaken < MAX_OVERTAKEN, request.node is None


def _lot(ticket: int) -> int:
    """A number that looks random and is the same at each look (the last step of splitmix64)."""
    mixed = ticket * 0x9E3779B97F4A7C15 % 2**64
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % 2**64
    return mixed ^ mixed >> 31


def _urgency(waiting: list[Request], matched: Mapping[int, int]) -> dict[int, int]:
    """By ticket the highest priority among the requests that go on from the tree by the same token.

    These stay together, in the order of their ids: the order is depth first whatever the priorities are.
    """
    ways = {r.ticket: (r.hang, matched[r.ticket], r.ids[matched[r.ticket]]) for r in waiting}
    highest: dict[tuple[Node | None, int, int], int] = {}
    for request in waiting:
        way = ways[request.ticket]
        highest[way] = max(highest.get(way, 0), request.priority)
    return {ticket: highest[way] for ticket, way in ways.items()}
