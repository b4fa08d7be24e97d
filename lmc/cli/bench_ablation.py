"""`lmc bench ablation`: what each part of compiler and runtime brings, by leaving it out.

    program    left out      found  computed   passes  seconds  throughput
    judge      nothing        71.2     3,104      212      1.4        1.00
    judge      cache           0.0    10,780      240      2.9        0.48

`found`: prompt tokens that the cache had, in percent; `computed`: tokens computed in all; `passes`: forward passes; `throughput`: of
that with everything.  The texts of the runs are compared: no part may change them.  The pool is small, so that the order of requests
decides what is still there.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lmc.cli.ablation_programs import PROGRAMS, Ablated

if TYPE_CHECKING:
    from lmc.backend.program import Program
    from lmc.runtime.session import Session


@dataclass(frozen=True, slots=True)
class Part:
    """What is left out or exchanged: settings of the session, and passes of the compiler that do not run."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    passes: tuple[str, ...] = ()


#: By the name in the table: SGLang's seven conditions, with one more order, and what is ours.
ABLATIONS: dict[str, Part] = {
    "nothing": Part(),
    "cache": Part({"without": ("cache",)}),
    "tree": Part({"without": ("tree",)}),
    "order: dfs": Part({"policy": "dfs"}),
    "order: fcfs": Part({"policy": "fcfs"}),
    "order: random": Part({"policy": "random"}),
    "parallelism": Part({"without": ("parallelism",)}),
    "fork hints": Part({"without": ("fork-hints",)}),
    "jump-forward": Part({"jump": "off"}),
    "narrow head": Part({"without": ("narrow-head",)}),
    "lifetimes": Part(passes=("lifetimes",)),
    # What `split_prefix` takes apart is for it alone.
    "hoisting": Part(passes=("split_prefix", "hoist_prefix")),
}
HEAD = f"{'program':10}{'left out':16}{'found':>7}{'computed':>11}{'passes':>9}{'seconds':>10}{'throughput':>12}"


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


@dataclass(frozen=True, slots=True)
class Compared:
    """A program without a part, beside the whole: of `rows` texts `differ` are others, of the whole's throughput it has `throughput`."""

    program: str
    left_out: str
    outcome: Outcome
    rows: int
    differ: int
    throughput: float

    def line(self) -> str:
        """Its line of the table."""
        found = self.outcome
        return (f"{self.program:10}{self.left_out:16}{found.found:7.1f}{found.computed:11,}{found.passes:9,}{found.seconds:10.2f}"
                f"{self.throughput:12.2f}" + (f"   {self.differ} of {self.rows} texts differ" if self.differ else ""))

    def data(self) -> dict[str, Any]:
        """All numbers, as JSON data."""
        numbers = {name: value for name, value in asdict(self.outcome).items() if name != "values"}
        return {"program": self.program, "left_out": self.left_out, **numbers, "found": self.outcome.found, "rows": self.rows,
                "differ": self.differ, "throughput": self.throughput}


def compare(name: str, settings: dict[str, Any], rows: int, rounds: int = 1) -> Iterator[Compared]:
    """A program with each part left out, the whole first.  All take turns; of several rounds the one counts whose time is the median.

    settings: which model, as for `open_session`
    """
    workload = PROGRAMS[name]
    programs = {left_out: _compiled(name, workload, part.passes) for left_out, part in ABLATIONS.items()}
    runs: dict[str, list[Outcome]] = {left_out: [] for left_out in ABLATIONS}
    for _ in range(rounds):
        for left_out, part in ABLATIONS.items():
            runs[left_out].append(run_once(programs[left_out], workload, {**settings, **part.settings}, rows))
    whole = _median(runs["nothing"])
    for left_out, found in runs.items():
        outcome = _median(found)
        differ = sum(a != b for a, b in zip(outcome.values, whole.values, strict=True))
        yield Compared(name, left_out, outcome, rows, differ, whole.seconds / max(outcome.seconds, 1e-9))


def run_once(program: Program, workload: Ablated, settings: dict[str, Any], rows: int) -> Outcome:
    """All rows on a fresh engine."""
    # It takes long to import, and every command reads this file.
    import asyncio

    from lmc.runtime.open_session import open_session

    session = open_session(**settings)
    try:
        return asyncio.run(_run(program, workload, session, rows, "parallelism" not in settings.get("without", ())))
    finally:
        session.close()


def _median(outcomes: list[Outcome]) -> Outcome:
    middle = sorted(outcomes, key=lambda outcome: outcome.seconds)[(len(outcomes) - 1) // 2]
    return replace(middle, seconds=statistics.median(outcome.seconds for outcome in outcomes))


def _compiled(name: str, workload: Ablated, without: tuple[str, ...]) -> Program:
    from lmc.compiler import compile_file
    from lmc.passes import passes_of

    passes = tuple(step for step in passes_of(2) if step not in without)
    return compile_file(f"{name}.lmp", passes=passes, read=lambda _: workload.text).program


async def _run(program: Program, workload: Ablated, session: Session, rows: int, parallel: bool) -> Outcome:
    from lmc.cli.warm_up import warm_up
    from lmc.runtime.host import bind_externs
    from lmc.runtime.instance import RunOptions, Sinks
    from lmc.runtime.machine import Machine
    from lmc.runtime.rows import run_rows

    machine = Machine(program, session, bind_externs(program, {}))
    await warm_up(session)
    options, sinks = RunOptions(seed=1, parallel=parallel), Sinks(print, lambda path, text: None)
    values, cached, missed = [], 0, 0
    before, start = session.stats, time.perf_counter()
    async for row in run_rows(machine, program.functions[workload.function], map(workload.row, range(rows)), options, sinks):
        if row.error is not None:
            raise row.error
        values.append(row.value)
        cached, missed = cached + row.report.cached, missed + row.report.computed
    seconds, after = time.perf_counter() - start, session.stats
    return Outcome(tuple(values), cached, missed, after.computed - before.computed, after.steps - before.steps, seconds)
