"""`lmc bench ablation`: what each part of the runtime brings, by leaving it out.

    program    left out      found  computed   passes  seconds
    judge      nothing        71.2     3,104      212      1.4
    judge      cache           0.0    10,780      240      2.9

`found`: prompt tokens that the cache had, in percent, below zero where more was computed ahead than was found; `computed`: tokens
computed in all; `passes`: forward passes.  The texts of the runs are compared: no part may change them.  The pool is small, so that
the order of requests decides what is still there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmc.cli.ablation_programs import PROGRAMS, Ablated

if TYPE_CHECKING:
    from lmc.backend.program import Program
    from lmc.runtime.session import Session

#: What is left out or exchanged: settings of the session, by the name in the table.
ABLATIONS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "cache": {"without": ("cache",)},
    "tree": {"without": ("tree",)},
    "order: dfs": {"policy": "dfs"},
    "order: fcfs": {"policy": "fcfs"},
    "order: random": {"policy": "random"},
    "parallelism": {"without": ("parallelism",)},
    "fork hints": {"without": ("fork-hints",)},
}
_HEAD = f"{'program':10}{'left out':16}{'found':>7}{'computed':>11}{'passes':>9}{'seconds':>10}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run of all rows: the values in order, prompt tokens found and not found, tokens computed, forward passes, seconds."""

    values: tuple[Any, ...]
    cached: int
    missed: int
    computed: int
    passes: int
    seconds: float

    @property
    def found(self) -> float:
        return 100 * self.cached / max(self.cached + self.missed, 1)


def ablation_table(names: tuple[str, ...], settings: dict[str, Any], rows: int) -> Iterator[str]:
    """The lines of the table.  settings: which model, as for `open_session`."""
    yield _HEAD
    for name in names:
        program = _compiled(name, PROGRAMS[name])
        whole: Outcome | None = None
        for left_out, change in ABLATIONS.items():
            outcome = run_once(program, PROGRAMS[name], {**settings, **change}, rows)
            whole = whole or outcome
            differs = sum(a != b for a, b in zip(outcome.values, whole.values, strict=True))
            yield (f"{name:10}{left_out:16}{outcome.found:7.1f}{outcome.computed:11,}{outcome.passes:9,}{outcome.seconds:10.2f}"
                   + (f"   {differs} of {rows} texts differ" if differs else ""))


def run_once(program: Program, workload: Ablated, settings: dict[str, Any], rows: int) -> Outcome:
    """All rows on a fresh engine."""
    # It takes long to import, and every command reads this file.
    import asyncio

    from lmc.runtime.open_session import open_session

    session = open_session(**settings)
    try:
        start = time.perf_counter()
        values, cached, missed = asyncio.run(_run(program, workload, session, rows, "parallelism" not in settings.get("without", ())))
        seconds = time.perf_counter() - start
        return Outcome(values, cached, missed, session.stats.computed, session.stats.steps, seconds)
    finally:
        session.close()


def _compiled(name: str, workload: Ablated) -> Program:
    from lmc.compiler import compile_file

    return compile_file(f"{name}.lmp", level=2, read=lambda _: workload.text).program


async def _run(program: Program, workload: Ablated, session: Session, rows: int, parallel: bool) -> tuple[tuple[Any, ...], int, int]:
    from lmc.runtime.host import bind_externs
    from lmc.runtime.instance import RunOptions, Sinks
    from lmc.runtime.machine import Machine
    from lmc.runtime.rows import run_rows

    machine = Machine(program, session, bind_externs(program, {}))
    options, sinks = RunOptions(seed=1, parallel=parallel), Sinks(print, lambda path, text: None)
    values, cached, missed = [], 0, 0
    async for row in run_rows(machine, program.functions[workload.function], map(workload.row, range(rows)), options, sinks):
        if row.error is not None:
            raise row.error
        values.append(row.value)
        cached, missed = cached + row.report.cached, missed + row.report.computed
    return tuple(values), cached, missed
