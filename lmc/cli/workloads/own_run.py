"""`lmc` as a contender: a workload's program on its rows, with the numbers of the engine before and after.

    open the model -> warm up on a prompt that no workload has -> read the counters -> run the rows -> read the counters

Each run opens the model anew, so that nothing of another workload is in its cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmc.cli.workloads.contender import Outcome
from lmc.cli.workloads.data import Data
from lmc.cli.workloads.measuring import Counted, outcome_of, run_program
from lmc.cli.workloads.peak_memory import peak_bytes, reset_peak
from lmc.cli.workloads.table import Row, Workload

if TYPE_CHECKING:
    from lmc.backend.program import Program
    from lmc.runtime.session import Session


@dataclass(frozen=True, slots=True)
class Lmc:
    """programs: the folder of the `.lmp` files; settings: arguments of `open_session`, with `dtype` among them."""

    programs: Path
    settings: dict[str, Any]
    name: str = "lmc"

    @property
    def precision(self) -> str:
        return self.settings["dtype"]

    @property
    def engine(self) -> str:
        from importlib.metadata import version

        return f"lmc {version('lmc')}"

    def cannot(self, workload: Workload) -> str | None:
        """It can run them all."""
        return None

    def run(self, workload: Workload, rows: Sequence[Row], data: Data) -> Outcome:
        """Raises `CompileError` where the program has faults, and `UsageError` where the model cannot be opened."""
        # Every command reads this file.
        import asyncio

        from lmc.embed import load_program
        from lmc.runtime.open_session import open_session

        program = load_program(self.programs / f"{workload.program}.lmp")
        session = open_session(**self.settings)
        try:
            return asyncio.run(self._run(program, session, workload, rows, data))
        finally:
            session.close()

    def pause(self) -> None:
        """Its engine ends with each run."""

    def resume(self) -> None:
        """See `pause`."""

    def close(self) -> None:
        """It holds nothing between runs."""

    async def _run(self, program: Program, session: Session, workload: Workload, rows: Sequence[Row], data: Data) -> Outcome:
        from lmc.cli.warm_up import warm_up
        from lmc.cli.workloads.watched import WatchedSession
        from lmc.runtime.host import bind_externs
        from lmc.runtime.machine import Machine

        watched = WatchedSession(session, workload.most_tokens)
        machine = Machine(program, watched, bind_externs(program, workload.externs(data), strict=True))
        await warm_up(session)
        reset_peak()
        before = session.stats
        ran = await run_program(machine, workload, rows)
        after = session.stats
        # The engine's counts and not the reports': what is computed for a fork, before any branch asks, belongs to no call.
        counted = Counted(after.prompt - before.prompt, after.steps - before.steps, peak_bytes())
        code = program.functions[workload.function]
        return outcome_of(ran, workload, code, watched, counted, contender=self.name, precision=self.precision)
