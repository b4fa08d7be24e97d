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
from collections import OrderedDict
from collections.abc import Coroutine
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from lmc.diagnostics import Diagnostic, UsageError
from lmc.regex.dfa import START, ByteDfa
from lmc.regex.grammar import MAX_GRAMMAR, Grammar
from lmc.regex.schema import MAX_SCHEMA
from lmc.runtime.daemon_call import call_in_daemon
from lmc.server.constraint_process import ConstraintProcess
from lmc.server.settings import CompileLimits

if TYPE_CHECKING:
    from lmc.runtime.grammar import Constraint
    from lmc.runtime.session import Session

#: Characters of each kind; a longer one is not even read.
LONGEST = {"regex": 200_000, "schema": MAX_SCHEMA, "grammar": MAX_GRAMMAR}
# Constraints and refusals that are remembered, whatever their size.
_KEPT = 1024


class CompilerBusy(UsageError):
    """So many constraints wait to be compiled that this one is not taken: the client may come again."""


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
        self._slots = asyncio.Semaphore(self._limits.workers)
        self._idle: list[ConstraintProcess] = []
        self._processes: set[ConstraintProcess] = set()
        self._waiting = 0
        self._running: dict[bytes, _Running] = {}
        self._kept: OrderedDict[bytes, Constraint | UsageError] = OrderedDict()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        """Start a process, so that the first request need not wait for one."""
        self._idle.append(await self._new_process())

    async def close(self) -> None:
        """Kill the processes, and give up what they did."""
        tasks = [*self._tasks, *(running.task for running in self._running.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._idle.clear()
        for process in self._processes:
            process.kill()
        while self._processes:
            await self._processes.pop().wait()

    @property
    def pids(self) -> list[int]:
        """The processes that are there."""
        return [process.pid for process in self._processes if not process.ended]

    async def constraint(self, kind: str, source: str, tenant: str = "") -> Constraint:
        """The constraint that a request asks for.  kind: `regex`, `schema` (JSON text) or `grammar` (Lark)

        Raises `UsageError` with the reason, `CompilerBusy` where too many wait, and `LmcError` where the model's tokens cannot spell
        what it accepts.  Where nobody waits for it any more, the compilation is killed.
        """
        key = _key(kind, source, tenant)
        if (kept := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            if isinstance(kept, UsageError):
                raise UsageError(kept.diagnostics)
            return kept
        if len(source) > LONGEST[kind]:
            message = f"this {kind} has {len(source):,} characters, at most {LONGEST[kind]:,} are taken"
            raise UsageError(Diagnostic("E0610", message, None, help="shorten it"))
        if key not in self._running:
            self._running[key] = _Running(self._task(self._make(key, kind, source)))
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

    async def _make(self, key: bytes, kind: str, source: str) -> Constraint:
        try:
            built = await self._compile(kind, source)
            # Masks of the first state and lengths take a while in a large automaton: the engine finds them made.
            made = await call_in_daemon(self._prepared, built)
        except CompilerBusy:
            raise
        except UsageError as error:
            self._keep(key, error)
            raise
        self._keep(key, made)
        return made

    async def _compile(self, kind: str, source: str) -> ByteDfa | Grammar:
        if self._waiting >= self._limits.waiting:
            message = f"{self._waiting} constraints wait to be compiled, no more are taken now"
            raise CompilerBusy(Diagnostic("E0610", message, None, help="ask again in a few seconds"))
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        try:
            return await self._ask(kind, source)
        finally:
            self._slots.release()

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
        if not self._idle:
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

    def _keep(self, key: bytes, made: Constraint | UsageError) -> None:
        self._kept[key] = made
        while len(self._kept) > 1 and (len(self._kept) > _KEPT or self._kept_bytes() > self._limits.kept):
            self._kept.popitem(last=False)

    def _kept_bytes(self) -> int:
        return sum(made.held_bytes for made in self._kept.values() if not isinstance(made, UsageError))

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
