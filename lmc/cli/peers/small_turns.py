"""Contestants take turns at a small workload: every round has data that nobody has seen, the idle ones are paused, medians count.

    warm-up on the last set      round 1, set 0: lmc, lmc programs, vllm, llama      round 2, set 1: …
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmc.cli.peers.small_run import Contestant, Run
from lmc.cli.peers.exchange import PeerError
from lmc.cli.peers.small_workloads import SmallWorkload
from lmc.cli.workloads.rounds import median

#: All sets of `peer_workloads.json`, by their names.
Sets = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Score:
    """What a contestant did with a workload: a run for each round, of one kind of client."""

    workload: str
    contestant: str
    precision: str
    parallel: bool
    runs: tuple[Run, ...]

    @property
    def median(self) -> Run:
        return median(self.runs)


def take_turns(contestants: Sequence[Contestant], workload: SmallWorkload, sets: Sets, rounds: int, clients: Sequence[bool],
               tell: Callable[[str], None]) -> list[Score]:
    """contestants: that can run it; clients: whether parallel, one for each kind; tell: gets a line for each whose engine ends"""
    *played, spare = sets.values()
    entries = [(contestant, parallel) for contestant in contestants for parallel in _kinds(contestant, workload, clients)]
    runs: dict[tuple[str, bool], list[Run]] = {}
    for number, salted in enumerate([spare, *played[:rounds]]):
        for contestant, parallel in tuple(entries):
            run = _turn(contestant, workload, salted[workload.key], parallel, tell)
            if run is None:
                entries.remove((contestant, parallel))
            elif number:
                runs.setdefault((contestant.name, parallel), []).append(run)
    return [Score(workload.name, contestant.name, contestant.precision, parallel, tuple(found))
            for contestant, parallel in entries if (found := runs.get((contestant.name, parallel)))]


def _kinds(contestant: Contestant, workload: SmallWorkload, clients: Sequence[bool]) -> Iterator[bool]:
    for parallel in clients:
        # Where programs ask for one thing at a time, both clients do the same.
        if parallel or (contestant.sequential and workload.split):
            yield parallel


def _turn(contestant: Contestant, workload: SmallWorkload, data: Mapping[str, Any], parallel: bool, tell: Callable[[str], None]) -> Run | None:
    contestant.resume()
    try:
        return contestant.run(workload, data, parallel=parallel)
    except PeerError as error:
        tell(f"    {error.diagnostics[0].message}")
        return None
    finally:
        contestant.pause()
