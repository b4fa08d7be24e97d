"""The numbers of an engine, for reports, benchmarks and tests."""

from __future__ import annotations

from dataclasses import dataclass

from lmc.runtime.time_shares import TimeShares


@dataclass(frozen=True, slots=True)
class EngineStats:
    """Since the start: requests, forward passes, tokens computed in them, prompt tokens among these (each time that one is computed),
    prompt tokens found in the tree, tokens generated, retractions.
    Now: slots that are free, that hold only cached tokens, that requests use; requests that run and that wait; nodes of the tree.
    time: of the engine's thread since the start, by kind of work."""

    requests: int
    steps: int
    computed: int
    prompt: int
    cached: int
    generated: int
    retractions: int
    free_slots: int
    cached_slots: int
    used_slots: int
    running: int
    waiting: int
    nodes: int
    time: TimeShares
