"""Constraints that requests bring, compiled beside the server: some processes, a queue of bounded length, and a memory of what came.

    compiler = ConstraintCompiler(session)
    await compiler.start()
    constraint = await compiler.constraint("schema", '{"type": "integer"}', tenant)      # for a GenerateRequest
    await compiler.close()

Neither the event loop nor the engine's thread compiles anything.  Equal requests of one tenant that come at the same time share one
compilation, which ends when the last of them has gone.  What was refused is refused again at once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from lmc.diagnostics import Diagnostic, LmcError, UsageError
from lmc.regex.dfa import START, ByteDfa
from lmc.regex.grammar import MAX_GRAMMAR, Grammar
from lmc.regex.schema import MAX_SCHEMA
from lmc.runtime.daemon_call import call_in_daemon
from lmc.server.constraint_process import ConstraintProcess, NotNow
from lmc.server.settings import ANYBODY, CompileLimits

if TYPE_CHECKING:
    from lmc.runtime.grammar import Constraint
    from lmc.runtime.session import Session

#: Characters of each kind; a longer one is not even read.
LONGEST = {"regex": 200_000, "schema": MAX_SCHEMA, "grammar": MAX_GRAMMAR}
# Constraints and refusals that are remembered, whatever their size.
_KEPT = 1024


#: What is not remembered: so many wait already, or the process was killed from outside.
CompilerBusy = NotNow


@dataclass(slots=True)
class _Running:
    """A compilation under way, and how many requests wait for it."""

    task: asyncio.Task[Constraint]
    waiters: int = 0


class ConstraintCompiler:
    """Belongs to the session's event loop.  `compilations`: how many were begun, for people and tests."""

    def __init__(self, session: Session, limits: CompileLimits = CompileLimits()):
        self.compilations = 0
        self._session = session
        self._limits = limits
        self._slots = asyncio.Semaphore(limits.workers)
        # One client alone never holds all processes, if there are several; those without a key are many.
        self._own_slots: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(max(1, limits.workers - 1)))
        self._own_slots[ANYBODY] = asyncio.Semaphore(limits.workers)
        self._waiting: Counter[str] = Counter()
        self._idle: list[ConstraintProcess] = []
        self._processes: set[ConstraintProcess] = set()
        self._running: dict[bytes, _Running] = {}
        # Of what was refused, why: an error would hold the frames that it came by.
        self._kept: OrderedDict[bytes, Constraint | tuple[Diagnostic, ...]] = OrderedDict()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    async def start(self) -> None:
        """Start a process, so that the first request need not wait for one."""
        self._idle.append(await self._new_process())

    async def close(self) -> None:
        """Kill the processes, and give up what they did."""
        self._closed = True
        while self._tasks:  # one that ends may begin another
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        self._idle.clear()
        for process in self._processes:
            process.kill()
        while self._processes:
            await self._processes.pop().wait()

    @property
    def pids(self) -> list[int]:
        """The processes that are there."""
        return [process.pid for process in self._processes if not process.ended]

    async def constraint(self, kind: str, source: str, tenant: str = ANYBODY) -> Constraint:
        """The constraint that a request asks for.  kind: `regex`, `schema` (JSON text) or `grammar` (Lark)

        Raises `LmcError` with the reason, and `CompilerBusy` where this client has too many that wait.  Where nobody waits for it any more, the compilation is killed.
        """
        key = _key(kind, source, tenant)
        if (kept := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            if isinstance(kept, tuple):
                raise UsageError(kept)
            return kept
        if len(source) > LONGEST[kind]:
            message = f"this {kind} has {len(source):,} characters, at most {LONGEST[kind]:,} are taken"
            raise UsageError(Diagnostic("E0610", message, None, help="shorten it"))
        if key not in self._running:
            self._running[key] = _Running(self._task(self._make(key, kind, source, tenant)))
        running = self._running[key]
        running.waiters += 1
        try:
            return await asyncio.shield(running.task)
        finally:
            running.waiters -= 1
            if not running.waiters:
                running.task.cancel()
                if self._running.get(key) is running:
                    del self._running[key]

    async def _make(self, key: bytes, kind: str, source: str, tenant: str) -> Constraint:
        try:
            built = await self._compile(kind, source, tenant)
            # Masks of the first state and lengths take a while in a large automaton: the engine finds them made.
            made = await call_in_daemon(self._prepared, built)
        except CompilerBusy:
            raise
        except LmcError as error:
            self._keep(key, error.diagnostics)
            raise
        self._keep(key, made)
        return made

    async def _compile(self, kind: str, source: str, tenant: str) -> ByteDfa | Grammar:
        if self._waiting[tenant] >= self._limits.waiting:
            message = f"{self._waiting[tenant]} constraints wait to be compiled, no more are taken now"
            raise CompilerBusy(Diagnostic("E0610", message, None, help="ask again in a few seconds"))
        async with AsyncExitStack() as held:
            self._waiting[tenant] += 1
            try:
                await held.enter_async_context(self._own_slots[tenant])
                await held.enter_async_context(self._slots)
            finally:
                self._waiting[tenant] -= 1
            return await self._ask(kind, source)

    async def _ask(self, kind: str, source: str) -> ByteDfa | Grammar:
        self._idle = [process for process in self._idle if not process.ended]
        process = self._idle.pop() if self._idle else await self._new_process()
        self.compilations += 1
        try:
            return await process.ask(kind, source)
        finally:
            if process.ended:
                self._task(self._replace(process))
            else:
                self._idle.append(process)

    async def _replace(self, process: ConstraintProcess) -> None:
        """After one that is gone: have one ready for the next request, and reap it."""
        if not self._idle and not self._closed:
            self._idle.append(await self._new_process())
        await process.wait()
        self._processes.discard(process)

    async def _new_process(self) -> ConstraintProcess:
        process = await ConstraintProcess.start(self._limits)
        self._processes.add(process)
        return process

    def _prepared(self, built: ByteDfa | Grammar) -> Constraint:
        made = self._session.new_constraint(built)
        made.allowed(START)
        made.min_tokens(START)
        return made

    def _keep(self, key: bytes, made: Constraint | tuple[Diagnostic, ...]) -> None:
        self._kept[key] = made
        while len(self._kept) > 1 and (len(self._kept) > _KEPT or self._kept_bytes() > self._limits.kept):
            self._kept.popitem(last=False)

    def _kept_bytes(self) -> int:
        return sum(made.held_bytes for made in self._kept.values() if not isinstance(made, tuple))

    def _task(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        with contextlib.suppress(asyncio.CancelledError):
            task.exception()  # those who waited have it, or are gone


def _key(kind: str, source: str, tenant: str) -> bytes:
    """Tenants do not see by the time it takes what others have asked for."""
    head = f"{len(tenant)} {tenant} {kind} ".encode()
    return blake2b(head + source.encode("utf-8", "surrogatepass"), digest_size=16).digest()
