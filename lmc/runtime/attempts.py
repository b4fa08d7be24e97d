"""What was asked over the network: every attempt, with what it cost, for the report of a run.

    Attempt("judge.lmp:9:5", "", number=1, outcome="429", waited=1.0, billed="no", …)
    Attempt("judge.lmp:9:5", "", number=2, outcome="answered", prompt=120, generated=14, cost=0.0002, …)

What a server does not count is None here, and `unknown` for people: nothing is estimated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request that was sent, or could not be.

    where, path: the generation or choice that it was made for, as in `Origin`
    number: which attempt of its request this was, from 1; outcome: `answered`, or what went wrong in a few words
    billed: `yes`, `no` or `maybe`, as far as can be told from here
    seconds: how long it took; waited: how long was waited after it, before the next one
    prompt, cached, generated: tokens as the server counts them; cost: by the prices that were given
    wasted: of an answer to several generations, about how many of its tokens were thrown away
    """

    where: str
    path: str
    number: int
    outcome: str
    billed: str
    seconds: float
    waited: float = 0.0
    prompt: int | None = None
    cached: int | None = None
    generated: int | None = None
    cost: float | None = None
    wasted: int | None = None


@dataclass(frozen=True, slots=True)
class NetworkTotals:
    """Sums over attempts.

    requests, failed: all, and those without a whole answer; unknown: those that may have been billed, and were not counted
    prompt, wasted: tokens; cost: None where there are no prices
    """

    requests: int = 0
    failed: int = 0
    unknown: int = 0
    prompt: int = 0
    wasted: int = 0
    cost: float | None = None

    def __add__(self, other: NetworkTotals) -> NetworkTotals:
        cost = None if self.cost is None and other.cost is None else (self.cost or 0.0) + (other.cost or 0.0)
        return NetworkTotals(self.requests + other.requests, self.failed + other.failed, self.unknown + other.unknown,
                             self.prompt + other.prompt, self.wasted + other.wasted, cost)

    def text(self) -> str:
        """In a few words: `requests 3 (1 failed) · prompt 240 tokens · cost 0.000400`."""
        failed = f" ({self.failed:,} failed)" if self.failed else ""
        unknown = f", those of {self.unknown:,} requests unknown" if self.unknown else ""
        parts = [f"requests {self.requests:,}{failed}", f"prompt {self.prompt:,} tokens{unknown}"]
        if self.wasted:
            parts.append(f"about {self.wasted:,} tokens wasted")
        if self.cost is not None:
            parts.append(f"cost {self.cost:.6f}" + " and what is unknown" * bool(self.unknown))
        return " · ".join(parts)


def network_totals(attempts: Iterable[Attempt]) -> NetworkTotals:
    """The sums."""
    return sum(map(_alone, attempts), NetworkTotals())


def _alone(attempt: Attempt) -> NetworkTotals:
    unknown = attempt.billed != "no" and attempt.prompt is None
    return NetworkTotals(1, int(attempt.outcome != "answered"), int(unknown), attempt.prompt or 0, attempt.wasted or 0, attempt.cost)
