"""Who runs the small workloads by token ids: our engine, and each peer.

    OwnEngine(settings).run(workload, data, parallel=True)      ->      Run(seconds=1.2, output=512, …)

Ours opens the model anew for each run, so it begins with an empty cache and its peak of memory is its own; a peer stays open, because
its start takes minutes, and gets its cache emptied before each run.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lmc.cli.peers.exchange import PeerAnswer, PeerAsk
from lmc.cli.peers.process import Peer
from lmc.cli.peers.small_run import Run
from lmc.cli.peers.small_workloads import Ask, SmallWorkload, before_run
from lmc.cli.workloads.peak_memory import peak_bytes, reset_peak

if TYPE_CHECKING:
    from lmc.runtime.session import Session


@dataclass(slots=True)
class Ledger:
    """Passes requests on to `engine` and keeps them with their answers."""

    engine: Ask
    entries: list[tuple[PeerAsk, PeerAnswer]] = field(default_factory=list)

    async def ask(self, one: PeerAsk) -> PeerAnswer:
        answer = await self.engine(one)
        self.entries.append((one, answer))
        return answer

    def run(self, seconds: float, passes: int | None, peak: int | None) -> Run:
        computed = [answer.computed for _, answer in self.entries]
        return Run(
            seconds, len(self.entries), sum(len(one.ids) for one, _ in self.entries), sum(len(answer.ids) for _, answer in self.entries),
            None if None in computed else sum(computed), passes, peak, tuple(sorted(answer.text for _, answer in self.entries)),
            tuple(len(answer.ids) for _, answer in self.entries),
        )

    def fewest(self) -> int:
        """Prompt tokens that the best cache would leave to be computed."""
        from lmc.cli.workloads.optimum import fewest_computed
        from lmc.cli.workloads.watched import Asked, Written

        events: list[Asked | Written] = []
        for one, answer in self.entries:
            events += [Asked(array("I", one.ids), 1), Written(array("I", (*one.ids, *answer.ids[:-1])))]
        return fewest_computed(events)


async def timed(workload: SmallWorkload, data: Mapping[str, Any], engine: Ask, parallel: bool) -> tuple[Ledger, float]:
    ledger = Ledger(engine)
    started = time.perf_counter()
    await workload.run(data, ledger.ask, parallel)
    return ledger, time.perf_counter() - started


@dataclass(slots=True)
class PeerContestant:
    """`peer`: opened; whoever made it closes it."""

    peer: Peer
    sequential: bool = True

    @property
    def name(self) -> str:
        return self.peer.name

    @property
    def precision(self) -> str:
        return self.peer.ready.precision

    def cannot(self, workload: SmallWorkload) -> str | None:
        missing = workload.needs - self.peer.ready.can
        if missing:
            return f"it has no {', '.join(sorted(missing))}"
        free = "regex" not in workload.needs
        return self.peer.ready.cannot_write(free=free, ignore_eos=free)

    def run(self, workload: SmallWorkload, data: Mapping[str, Any], *, parallel: bool) -> Run:
        return asyncio.run(self._run(workload, data, parallel))

    def pause(self) -> None:
        self.peer.pause()

    def resume(self) -> None:
        self.peer.resume()

    async def _run(self, workload: SmallWorkload, data: Mapping[str, Any], parallel: bool) -> Run:
        # Another kind of client had the same prompts just now.
        await self.peer.reset()
        await before_run(workload, data, self.peer.generate)
        self.peer.reset_peak()
        before = await self.peer.stats()
        ledger, seconds = await timed(workload, data, self.peer.generate, parallel)
        after = await self.peer.stats()
        passes = None if before.passes is None or after.passes is None else after.passes - before.passes
        return ledger.run(seconds, passes, self.peer.peak_bytes() or None)


@dataclass(slots=True)
class OwnEngine:
    """`settings`: arguments of `open_session`.  `fewest` and `lengths` of the last run are kept for the floor."""

    settings: Mapping[str, Any]
    name: str = "lmc"
    sequential: bool = False
    fewest: int = 0

    @property
    def precision(self) -> str:
        return self.settings["dtype"]

    def cannot(self, workload: SmallWorkload) -> str | None:
        return None

    def run(self, workload: SmallWorkload, data: Mapping[str, Any], *, parallel: bool) -> Run:
        from lmc.runtime.open_session import open_session

        session = open_session(**self.settings)
        try:
            return asyncio.run(self._run(session, workload, data, parallel))
        finally:
            session.close()

    def pause(self) -> None:
        """Its engine ends with each run."""

    def resume(self) -> None:
        """See `pause`."""

    async def _run(self, session: Session, workload: SmallWorkload, data: Mapping[str, Any], parallel: bool) -> Run:
        from lmc.cli.warm_up import warm_up

        await warm_up(session)
        engine = session_engine(session, data.get("regex"))
        await before_run(workload, data, engine)
        reset_peak()
        before = session.stats
        ledger, seconds = await timed(workload, data, engine, parallel)
        after = session.stats
        self.fewest = ledger.fewest()
        return ledger.run(seconds, after.steps - before.steps, peak_bytes())


def session_engine(session: Session, regex: str | None) -> Ask:
    """Our engine as peers are asked.  The automaton is built here, as it is at binding, before any clock runs."""
    from lmc.regex.build import compile_regex
    from lmc.runtime.request import GenerateRequest, Sampling

    constraint = None if regex is None else session.constraint(compile_regex(regex))

    async def ask(one: PeerAsk) -> PeerAnswer:
        assert one.regex in (None, regex) and one.schema is None, "one constraint a workload"
        generated = await session.generate(GenerateRequest(
            one.ids, one.max_tokens, constraint=constraint if one.regex is not None else None, stops=one.stop, ignore_eos=one.ignore_eos,
            sampling=Sampling(one.temperature, one.top_p, seed=one.seed or 0)))
        usage = generated.usage
        return PeerAnswer(generated.ids, generated.text, generated.finish.value, usage.computed, usage.cached)

    return ask
