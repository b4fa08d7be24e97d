"""Engines take turns at a workload, one at work and the others paused, and of their rounds the median counts.

    round 1: lmc, vllm, llama      round 2: lmc, vllm, llama      round 3: …
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from lmc.cli.peers.exchange import PeerError
from lmc.cli.workloads.contender import Contender, Outcome
from lmc.cli.workloads.data import Data
from lmc.cli.workloads.table import Row, Workload


def take_turns(contenders: Sequence[Contender], workload: Workload, rows: Sequence[Row], data: Data, rounds: int,
               tell: Callable[[str], None]) -> dict[str, list[Outcome]]:
    """The outcomes of each contender by its name, one for each round; fewer of one whose engine ends, and none where it ends at once.

    contenders: that can run it; all are paused before and after.  tell: gets a line for each whose engine ends
    """
    playing = list(contenders)
    outcomes: dict[str, list[Outcome]] = {contender.name: [] for contender in playing}
    for _ in range(rounds):
        for contender in tuple(playing):
            contender.resume()
            try:
                outcomes[contender.name].append(contender.run(workload, rows, data))
            except PeerError as error:
                tell(f"    {error.diagnostics[0].message}")
                playing.remove(contender)
            finally:
                contender.pause()
    return {name: found for name, found in outcomes.items() if found}


class Timed(Protocol):
    """A dataclass with the wall-clock time of a run, and the most memory held in it."""

    @property
    def seconds(self) -> float: ...

    @property
    def peak_bytes(self) -> int | None: ...


_Run = TypeVar("_Run", bound=Timed)


def median(runs: Sequence[_Run]) -> _Run:
    """The run whose time is in the middle, the lower one of two, with the median time and the highest peak of all."""
    middle = sorted(runs, key=lambda run: run.seconds)[(len(runs) - 1) // 2]
    peaks = [run.peak_bytes for run in runs if run.peak_bytes is not None]
    return replace(middle, seconds=statistics.median(run.seconds for run in runs), peak_bytes=max(peaks, default=None))
