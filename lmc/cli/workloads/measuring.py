"""A workload's program on its rows, whatever engine answers: the clock, and what comes of it.

    ran = await run_program(machine, workload, rows)           results of the rows, and the seconds that they took
    outcome_of(ran, …)                                         the same with what the engine counted, as an `Outcome`
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from lmc.cli.workloads.contender import Outcome
from lmc.cli.workloads.table import Row, Workload

if TYPE_CHECKING:
    from lmc.backend.program import FunctionCode
    from lmc.cli.workloads.watched import WatchedSession
    from lmc.runtime.machine import Machine
    from lmc.runtime.rows import RowResult

#: Nothing that is generated may differ from run to run, in the sampled workloads either.
_SEED = 1


@dataclass(frozen=True, slots=True)
class Ran:
    """The rows' results in order, and the wall-clock time of all of them."""

    results: tuple[RowResult, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Counted:
    """What an engine counts, as in `Outcome`; None where it does not."""

    computed: int | None
    passes: int | None
    peak_bytes: int | None


async def run_program(machine: Machine, workload: Workload, rows: Sequence[Row], *, parallel: bool = True) -> Ran:
    """parallel: whether calls inside a row that do not wait for one another are made side by side; rows always are, where the workload
    allows it"""
    from lmc.runtime.instance import RunOptions, Sinks
    from lmc.runtime.rows import run_rows

    code = machine.bound.program.functions[workload.function]
    # Peers end a prompt where its text ends, so that a token that is written again would be work that they do not have.
    options = RunOptions(seed=_SEED, overrides={"heal": False}, parallel=parallel)
    sinks = Sinks(lambda text: None, lambda path, text: None)
    started, results = time.perf_counter(), []
    for together in ([row] for row in rows) if workload.in_order else [rows]:
        async for result in run_rows(machine, code, together, options, sinks):
            results.append(result)
    return Ran(tuple(results), time.perf_counter() - started)


def outcome_of(ran: Ran, workload: Workload, code: FunctionCode, watched: WatchedSession, counted: Counted, *, contender: str,
               precision: str) -> Outcome:
    from lmc.cli.workloads.optimum import fewest_computed
    from lmc.cli.workloads.watched import Asked
    from lmc.values import to_json

    prompts = [event.ids for event in watched.events if isinstance(event, Asked)]
    failed = [result.error for result in ran.results if result.error is not None]
    return Outcome(
        workload.name, contender, precision, len(ran.results), len(failed), ran.seconds,
        calls=sum(result.report.calls for result in ran.results),
        output=sum(result.report.generated for result in ran.results),
        prompt=sum(map(len, prompts)),
        computed=counted.computed,
        fewest=fewest_computed(watched.events),
        passes=counted.passes,
        peak_bytes=counted.peak_bytes,
        asked=tuple(sorted(blake2b(ids.tobytes(), digest_size=8).hexdigest() for ids in prompts)),
        values=tuple(to_json(result.value, code.result) if result.error is None else None for result in ran.results),
        errors=tuple(dict.fromkeys(error.diagnostics[0].message for error in failed)),
    )
