"""A request on its way through the engine: what of it is computed, and which slots it holds.

    ids        you are a strict judge . Judge the clarity
    slots      |--- shared: in the tree ---|-- private --|
               |------- computed ----|-- planned --|  remaining

The scheduler moves it on (`scheduler.py`); the engine reads from it what a step has to compute.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from lmc.runtime.radix import Node


class State(Enum):
    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"


class Request:
    """A request on its way through the engine.

    ids: the prompt and the tokens accepted so far
    wanted: the first position whose logits are wanted; what lies before may come from the cache
    slots: pool slots of the computed and planned positions; the first `shared` belong to the tree and are locked through `node`
    prompt: how many tokens came with the request; most: how many it may come to have
    share_to: positions before it enter the tree as soon as they are planned; later ones when the request ends
    work: what is done with the logits; not the scheduler's business
    arrival: the step before which it was submitted; requests of one arrival count as simultaneous
    priority: of requests that arrive at once and share no more than the tree has, the higher goes first
    hang: the deepest node that is known to match whole while the request waits
    cached: tokens found in the tree when it first ran; None before
    draft: guesses of the tokens behind `ids`; a step plans the first `drafted` of them too, where it has room
    """

    __slots__ = ("ticket", "ids", "wanted", "work", "state", "slots", "shared", "computed", "planned", "prompt", "most", "share_to",
                 "node", "hang", "arrival", "admitted", "overtaken", "retractions", "cached", "passes", "draft", "drafted",
                 "priority")

    def __init__(self, ticket: int, ids: list[int], wanted: int, work: Any, most: int = 0):
        assert 0 <= wanted < len(ids), (wanted, len(ids))
        self.ticket, self.ids, self.wanted, self.work = ticket, ids, wanted, work
        self.prompt, self.most = len(ids), max(most, len(ids))
        self.state = State.WAITING
        self.slots: list[int] = []
        self.shared = self.computed = self.planned = self.share_to = 0
        self.node: Node | None = None
        self.hang: Node | None = None
        self.arrival = self.admitted = self.overtaken = self.retractions = self.passes = 0
        self.cached: int | None = None
        self.draft: list[int] = []
        self.drafted = self.priority = 0

    @property
    def scheduled(self) -> int:
        """Positions that are computed once this step is over."""
        return self.computed + self.planned

    @property
    def remaining(self) -> int:
        """Tokens that neither are computed nor will be in this step."""
        return len(self.ids) - self.computed - self.planned

    @property
    def ungrown(self) -> int:
        """Tokens that it may still come to have."""
        return max(0, self.most - len(self.ids))

    @property
    def prefilling(self) -> bool:
        """Whether tokens that others may share are still to be planned."""
        return self.computed + self.planned < self.share_to
