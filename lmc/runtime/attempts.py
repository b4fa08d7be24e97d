"""What was asked over the network: every attempt, with what it cost, for the report of a run.

    Attempt("judge.lmp:9:5", "", number=1, outcome="429", waited=1.0, billed="no", …)
    Attempt("judge.lmp:9:5", "", number=2, outcome="answered", prompt=120, generated=14, cost=0.0002, …)

What a server does not count is None here, and `unknown` for people: nothing is estimated.
"""

from __future__ import annotations

from collections.abc import Sequence
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


def attempts_line(attempts: Sequence[Attempt]) -> str:
    """All attempts in a few words: `requests 3 (1 failed) · prompt 240 tokens · cost 0.0004`."""
    failed = sum(a.outcome != "answered" for a in attempts)
    maybe_billed = [a for a in attempts if a.billed != "no"]
    parts = [f"requests {len(attempts):,}" + f" ({failed:,} failed)" * bool(failed)]
    unknown = sum(a.prompt is None for a in maybe_billed)
    prompt = sum(a.prompt or 0 for a in attempts)
    parts.append(f"prompt {prompt:,} tokens" + f", those of {unknown:,} requests unknown" * bool(unknown))
    wasted = sum(a.wasted or 0 for a in attempts)
    parts += [f"about {wasted:,} tokens wasted"] * bool(wasted)
    if any(a.cost is not None for a in attempts):
        more = any(a.cost is None for a in maybe_billed)
        parts.append(f"cost {sum(a.cost or 0.0 for a in attempts):.6f}" + " and what is unknown" * more)
    return " · ".join(parts)
