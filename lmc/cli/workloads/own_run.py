"""`lmc` as a contender: a workload's program on its rows, with the numbers of the engine before and after.

    open the model -> warm up on a prompt that no workload has -> read the counters -> run the rows -> read the counters

Each run opens the model anew, so that nothing of another workload is in its cache.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmc.cli.workloads.contender import Outcome
from lmc.cli.workloads.data import Data
from lmc.cli.workloads.peak_memory import peak_bytes, reset_peak
from lmc.cli.workloads.table import Row, Workload

if TYPE_CHECKING:
    from lmc.backend.program import FunctionCode
    from lmc.runtime.engine import EngineStats
    from lmc.runtime.machine import Machine
    from lmc.runtime.rows import RowResult
    from lmc.runtime.session import Session

#: Nothing that is generated may differ from run to run, in the sampled workloads either.
_SEED = 1
_WARM_UP = "Warming up: one, two, three,"


@dataclass(frozen=True, slots=True)
class Lmc:
    """programs: the folder of the `.lmp` files; settings: arguments of `open_session`, with `dtype` among them."""

    programs: Path
    settings: dict[str, Any]
    name: str = "lmc"

    @property
    def precision(self) -> str:
        return self.settings["dtype"]

    def run(self, workload: Workload, rows: Sequence[Row], data: Data) -> Outcome:
        """Raises `CompileError` where the program has faults, and `UsageError` where the model cannot be opened."""
        # Every command reads this file.
        import asyncio

        return asyncio.run(self._run(workload, rows, data))

    def close(self) -> None:
        """It holds nothing between runs."""

    async def _run(self, workload: Workload, rows: Sequence[Row], data: Data) -> Outcome:
        from lmc.embed import load_program
        from lmc.runtime.host import bind_externs
        from lmc.runtime.machine import Machine
        from lmc.runtime.open_session import open_session

        program = load_program(self.programs / f"{workload.program}.lmp")
        externs = bind_externs(program, workload.externs(data), strict=True)
        session = open_session(**self.settings)
        try:
            machine = Machine(program, session, externs)
            await _warm_up(session)
            return await self._measure(workload, machine, program.functions[workload.function], rows)
        finally:
            session.close()

    async def _measure(self, workload: Workload, machine: Machine, code: FunctionCode, rows: Sequence[Row]) -> Outcome:
        session = machine.bound.session
        reset_peak()
        before, started = session.stats, time.perf_counter()
        results = [result async for result in _results(workload, machine, code, rows)]
        seconds, after = time.perf_counter() - started, session.stats
        return self._outcome(workload, code, results, seconds, before, after)

    def _outcome(self, workload: Workload, code: FunctionCode, results: list[RowResult], seconds: float, before: EngineStats,
                 after: EngineStats) -> Outcome:
        from lmc.values import to_json

        failed = [result.error for result in results if result.error is not None]
        return Outcome(
            workload.name, self.name, self.precision, len(results), len(failed), seconds,
            calls=sum(result.report.calls for result in results),
            output=sum(result.report.generated for result in results),
            # The engine's counts and not the reports': what is computed for a fork, before any branch asks, belongs to no call.
            computed=after.prompt - before.prompt,
            cached=after.cached - before.cached,
            passes=after.steps - before.steps,
            peak_bytes=peak_bytes(),
            values=tuple(to_json(result.value, code.result) if result.error is None else None for result in results),
            errors=tuple(dict.fromkeys(error.diagnostics[0].message for error in failed)),
        )


async def _results(workload: Workload, machine: Machine, code: FunctionCode, rows: Sequence[Row]) -> AsyncIterator[RowResult]:
    from lmc.runtime.instance import RunOptions, Sinks
    from lmc.runtime.rows import run_rows

    # Peers end a prompt where its text ends, so that a token that is written again would be work that they do not have.
    options = RunOptions(seed=_SEED, overrides={"heal": False})
    sinks = Sinks(lambda text: None, lambda path, text: None)
    for together in ([row] for row in rows) if workload.in_order else [rows]:
        async for result in run_rows(machine, code, together, options, sinks):
            yield result


async def _warm_up(session: Session) -> None:
    """Reads the weights and touches the kernels."""
    from lmc.runtime.request import GenerateRequest

    prompter = session.prompter
    prompt = prompter.prompt(prompter.append(prompter.new(), "raw", _WARM_UP), "raw", heal=False)
    await session.generate(GenerateRequest(prompt.ids, 4, ignore_eos=True))
