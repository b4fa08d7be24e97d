"""How an engine's steps go: when the one under way began, and how long those took that are over.

    pulse.begin(); …a step…; pulse.end()         the engine's thread
    pulse.running_for()                          any thread: seconds since the step under way began, 0 between two steps
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections.abc import Callable

#: Seconds: upper bounds of the classes that steps are counted in.  A small model's step takes 10 ms, a long one's chunk 200 ms.
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, math.inf)


class Pulse:
    """Written by one thread, read by any.  `now`: a clock in seconds."""

    __slots__ = ("_now", "_began", "_counts", "_seconds")

    def __init__(self, now: Callable[[], float] = time.monotonic):
        self._now = now
        self._began: float | None = None
        self._counts = [0] * len(BOUNDS)
        self._seconds = 0.0

    def begin(self) -> None:
        self._began = self._now()

    def end(self) -> None:
        """Of a step that did not end in order nothing is counted."""
        began, self._began = self._began, None
        assert began is not None, "a step that ends and never began"
        took = self._now() - began
        self._counts[bisect_left(BOUNDS, took)] += 1
        self._seconds += took

    def running_for(self) -> float:
        began = self._began
        return 0.0 if began is None else self._now() - began

    def cumulative(self) -> tuple[list[tuple[float, int]], float]:
        """For each bound how many steps took no longer, ascending; and the seconds of all."""
        total, found = 0, []
        for bound, count in zip(BOUNDS, self._counts):
            total += count
            found.append((bound, total))
        return found, self._seconds
