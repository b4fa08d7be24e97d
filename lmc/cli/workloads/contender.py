"""What runs a workload, and what it measured: `lmc` itself, and each engine that is set beside it.

A contender is opened by making it; `run` may be called many times and begins with an empty cache each time; `close` frees what it
holds.  Between its runs it is paused, so that two cores belong to whoever is at work.  Peers do the same work: the prompts that the
`.lmp` program makes of the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from lmc.cli.workloads.data import Data
from lmc.cli.workloads.table import Row, Workload


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run of a workload; None where an engine does not say.

    workload, contender, precision: what ran, who ran it, and the class of its numbers, such as "bfloat16"
    programs, failed: rows, and those of them that ended with an error
    seconds: wall-clock time, without opening the model and warming up
    calls, output: generations and choices, and the tokens that they gave
    prompt: tokens of all prompts, those of each option of a choice included
    computed: prompt tokens that went through the model; fewest: the same with the best cache that there can be, see `optimum.py`
    passes: forward passes; peak_bytes: most memory that the process held during the run, the model included
    asked: digests of all prompts, in ascending order
    values: what each row gave, as JSON; None where it failed
    errors: what the failed rows say, each message once
    """

    workload: str
    contender: str
    precision: str
    programs: int
    failed: int
    seconds: float
    calls: int
    output: int
    prompt: int
    computed: int | None
    fewest: int
    passes: int | None
    peak_bytes: int | None
    asked: tuple[str, ...]
    values: tuple[str | None, ...]
    errors: tuple[str, ...]

    @property
    def hit_rate(self) -> float | None:
        """Of the prompt tokens, those that were found in the cache; below zero where more was computed than asked for, because what was
        evicted is computed again."""
        return None if self.computed is None else 1 - self.computed / max(self.prompt, 1)

    @property
    def best_hit_rate(self) -> float:
        """The same with the best cache that there can be."""
        return 1 - self.fewest / max(self.prompt, 1)

    @property
    def programs_per_second(self) -> float:
        """Of those that did not fail: an engine that refuses everything is not fast."""
        return (self.programs - self.failed) / max(self.seconds, 1e-9)


class Contender(Protocol):
    """Runs workloads on one engine."""

    @property
    def name(self) -> str: ...

    @property
    def precision(self) -> str: ...

    @property
    def engine(self) -> str:
        """Its name with its version."""

    def cannot(self, workload: Workload) -> str | None:
        """Why this engine cannot run the workload; None where it can."""

    def run(self, workload: Workload, rows: Sequence[Row], data: Data) -> Outcome:
        """Runs the program once for each row, from an empty cache.  A row that fails is counted and disturbs no other."""

    def pause(self) -> None:
        """Use no processor until `resume`."""

    def resume(self) -> None: ...

    def close(self) -> None: ...
