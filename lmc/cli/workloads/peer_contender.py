"""A peer as a contender: the workload's program on our machine, with the peer in the place of our engine.

    empty the peer's cache -> bind the program -> read the counters -> run the rows -> read the counters

There are two kinds of client.  `parallel` asks for everything that can be asked at once, as the language does; `sequential` makes one
call at a time inside a program, as the paper's scripts do for engines without a frontend of their own.  Programs run side by side in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmc.cli.workloads.contender import Outcome
from lmc.cli.workloads.data import Data
from lmc.cli.workloads.measuring import Counted, outcome_of, run_program
from lmc.cli.workloads.table import Row, Workload

if TYPE_CHECKING:
    from lmc.cli.peers.exchange import PeerStats
    from lmc.cli.peers.process import Peer


class Client(Enum):
    """How a program's calls reach a peer."""

    PARALLEL = "parallel"
    SEQUENTIAL = "sequential"


@dataclass(frozen=True, slots=True)
class Spelling:
    """How prompts are made for the model that all engines run: tokenizer, chat template (or None), and its context in tokens."""

    tokenizer: Any
    template: Any
    limit: int


@dataclass(frozen=True, slots=True)
class PeerContender:
    """peer: opened and warmed up; whoever made it closes it.  programs: the folder of the `.lmp` files."""

    peer: Peer
    client: Client
    programs: Path
    spelling: Spelling

    @property
    def name(self) -> str:
        return self.peer.name if self.client is Client.PARALLEL else f"{self.peer.name} seq"

    @property
    def precision(self) -> str:
        return self.peer.ready.precision

    @property
    def engine(self) -> str:
        return "; ".join((self.peer.ready.engine, *self.peer.ready.notes))

    def cannot(self, workload: Workload) -> str | None:
        """Also where this client would do the same as the other one."""
        from lmc.embed import load_program
        from lmc.runtime.instructions import program_instructions

        if self.peer.ended:
            return "its process has ended"
        if not self.peer.ready.takes_requests:
            return "it runs programs of its own language only"
        if self.client is Client.SEQUENTIAL and not workload.side_by_side:
            return "no two calls of a row stand side by side"
        program, can = load_program(self.programs / f"{workload.program}.lmp"), self.peer.ready.can
        if program.constraints and not can & {"regex", "schema"}:
            return "it cannot be kept to a regex"
        steps = tuple(program_instructions(program))
        if any(step.opcode in ("lm.select", "lm.score") for step in steps) and not can & {"score", "regex"}:
            return "it gives no log-probabilities of a prompt and keeps no regex"
        generations = [step for step in steps if step.opcode == "lm.gen"]
        return self.peer.ready.cannot_write(free=any("constraint" not in step.attributes for step in generations),
                                            ignore_eos=any("ignore_eos" in step.inputs for step in generations))

    def run(self, workload: Workload, rows: Sequence[Row], data: Data) -> Outcome:
        """Raises `PeerError` where the peer has ended."""
        import asyncio

        return asyncio.run(self._run(workload, rows, data))

    def pause(self) -> None:
        self.peer.pause()

    def resume(self) -> None:
        self.peer.resume()

    def close(self) -> None:
        """The peer belongs to both kinds of client."""

    async def _run(self, workload: Workload, rows: Sequence[Row], data: Data) -> Outcome:
        from lmc.cli.workloads.peer_session import PeerSession
        from lmc.cli.workloads.watched import WatchedSession
        from lmc.embed import load_program
        from lmc.runtime.host import bind_externs
        from lmc.runtime.machine import Machine

        program, spelling = load_program(self.programs / f"{workload.program}.lmp"), self.spelling
        watched = WatchedSession(PeerSession(self.peer, spelling.tokenizer, spelling.template, limit=spelling.limit),
                                 workload.most_tokens)
        machine = Machine(program, watched, bind_externs(program, workload.externs(data), strict=True))
        await self.peer.reset()
        self.peer.reset_peak()
        before = await self.peer.stats()
        ran = await run_program(machine, workload, rows, parallel=self.client is Client.PARALLEL)
        # A peer that has ended says so here, and not as the fault of every row.
        counted = _counted(before, await self.peer.stats(), self.peer.peak_bytes())
        code = program.functions[workload.function]
        return outcome_of(ran, workload, code, watched, counted, contender=self.name, precision=self.precision)


def _counted(before: PeerStats, after: PeerStats, peak: int) -> Counted:
    def since(one: int | None, other: int | None) -> int | None:
        return None if one is None or other is None else other - one

    return Counted(since(before.computed, after.computed), since(before.passes, after.passes), peak or None)
