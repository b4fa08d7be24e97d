"""Where an engine's time goes.

    watch = Stopwatch()
    before = watch.turn_to(Work.TREE)        from now on time counts for the tree …
    watch.turn_to(before)                    … and for what it counted for before

Each moment counts for one kind of work, the innermost: time in the tree is no time of the scheduler that asked it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum


class Work(IntEnum):
    """IDLE: outside the engine; REST: what it does itself, such as taking over what was drawn and telling what happened."""

    IDLE = 0
    MODEL = 1
    SAMPLING = 2
    MASKS = 3
    SCHEDULER = 4
    TREE = 5
    REST = 6


class Stopwatch:
    """Seconds by kind of work.  `now`: a clock in seconds; that of the wall, or that of the thread's own processor time."""

    __slots__ = ("_seconds", "_now", "_since", "_work")

    def __init__(self, now: Callable[[], float] = time.perf_counter):
        self._seconds = [0.0] * len(Work)
        self._now = now
        self._since = now()
        self._work = Work.IDLE

    def turn_to(self, work: Work) -> Work:
        """Count for `work` from now on; what was counted for until now."""
        now, before = self._now(), self._work
        self._seconds[before] += now - self._since
        self._since, self._work = now, work
        return before

    @property
    def shares(self) -> TimeShares:
        return TimeShares(*self._seconds[1:])


@dataclass(frozen=True, slots=True)
class TimeShares:
    """Seconds since the start of an engine by kind of work, see `Work`."""

    model: float
    sampling: float
    masks: float
    scheduler: float
    tree: float
    rest: float

    def __sub__(self, earlier: TimeShares) -> TimeShares:
        """What came since then."""
        return TimeShares(*(getattr(self, name) - getattr(earlier, name) for name in self.__slots__))

    @property
    def total(self) -> float:
        return self.model + self.sampling + self.masks + self.scheduler + self.tree + self.rest

    @property
    def overhead(self) -> float:
        """All but the model."""
        return self.total - self.model


def shares_line(time: TimeShares) -> str:
    """For people: `engine 1.20 s: model 91.0 %, sampling 4.1 %, …`."""
    whole = time.total or 1.0
    parts = (f"{name} {100 * getattr(time, name) / whole:.1f} %" for name in ("model", "sampling", "masks", "scheduler", "tree", "rest"))
    return f"engine {time.total:.2f} s: {', '.join(parts)}"
