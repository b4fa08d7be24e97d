"""What runs a workload, and what it measured: `lmc` itself, and each engine that is set beside it.

A contender is opened by making it; `run` may be called many times and begins with an empty cache each time; `close` frees what it
holds.  Peers are to do the same work: the prompts that the `.lmp` program makes of the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from lmc.cli.workloads.data import Data
from lmc.cli.workloads.table import Row, Workload


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run of a workload.

    workload, contender, precision: what ran, who ran it, and the class of its numbers, such as "bfloat16"
    programs, failed: rows, and those of them that ended with an error
    seconds: wall-clock time, without opening the model and warming up
    calls, output: generations and choices, and the tokens that they gave
    computed, cached: prompt tokens that went through the model, and that were found in the cache
    passes: forward passes; peak_bytes: most memory that the process held during the run, the model included
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
    computed: int
    cached: int
    passes: int
    peak_bytes: int
    values: tuple[str | None, ...]
    errors: tuple[str, ...]

    @property
    def hit_rate(self) -> float:
        """Of the prompt tokens, those that were found in the cache; 0 where there were none."""
        return self.cached / max(self.cached + self.computed, 1)

    @property
    def programs_per_second(self) -> float:
        return self.programs / max(self.seconds, 1e-9)


class Contender(Protocol):
    """Runs workloads on one engine."""

    @property
    def name(self) -> str: ...

    @property
    def precision(self) -> str: ...

    def run(self, workload: Workload, rows: Sequence[Row], data: Data) -> Outcome:
        """Runs the program once for each row, from an empty cache.  A row that fails is counted and disturbs no other."""

    def close(self) -> None: ...
