"""Running a block as dataflow: a step starts when what it waits for has ended.

    steps     0 ──► 1 (gen) ──────────────► 3 return
              2 (gen, starts beside 1) ───►

Inline steps run on the spot, others as tasks, lowest number first, so that requests reach the engine in program order.

What a program shows is as if it ran in order.  Where a step fails, or leaves the block, those after it are cancelled and those
before it run to their end; so the error reported is the first in program order, whatever came first in time.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Coroutine
from typing import Any

from lmc.diagnostics import RunError
from lmc.runtime.failures import through
from lmc.runtime.frames import Frame, Outcome
from lmc.runtime.plan import Plan, Step


async def run_block(frame: Frame, plan: Plan) -> Outcome:
    """Run a block to its end.  Its arguments are in the registers.  Raises the first error in program order."""
    if plan.inline:
        return run_inline(frame, plan)
    return await _BlockRun(frame, plan).run()


def run_inline(frame: Frame, plan: Plan) -> Outcome:
    """Run a block that never waits."""
    for step in plan.steps:
        try:
            outcome = run_step(frame, step)
        except RunError as error:
            raise through(error, step.calls) from None
        if outcome is not None:
            return outcome
    raise AssertionError("a block without a terminator")


def run_step(frame: Frame, step: Step) -> Outcome | None:
    """Run an inline step."""
    if step.opcode.waits:
        return finish_now(step.opcode.run(frame, step))
    return step.opcode.run(frame, step)


def finish_now(coroutine: Coroutine[Any, Any, Outcome | None]) -> Outcome | None:
    """Run a coroutine that is known not to wait."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    coroutine.close()
    raise AssertionError("an inline step waited")


class _BlockRun:
    """One execution of a block with steps that wait."""

    __slots__ = ("frame", "plan", "waits_for", "ready", "limit", "error", "outcome", "running", "ended", "waker")

    def __init__(self, frame: Frame, plan: Plan):
        self.frame = frame
        self.plan = plan
        self.waits_for = list(plan.waits_for)
        self.ready = [i for i, count in enumerate(plan.waits_for) if count == 0]
        #: Steps from here on do not start: one before them failed or left the block.
        self.limit = len(plan.steps)
        self.error: BaseException | None = None
        self.outcome: Outcome | None = None
        self.running: dict[asyncio.Task, int] = {}
        self.ended: list[asyncio.Task] = []
        self.waker: asyncio.Future | None = None

    async def run(self) -> Outcome:
        try:
            self._start_ready()
            while self.running:
                await self._wait()
                for task in self._take_ended():
                    self._collect(task)
                self._start_ready()
        finally:
            if self.running:
                await self._cancel_all()
        if self.error is not None:
            raise self.error
        assert self.outcome is not None, "a block without a terminator"
        return self.outcome

    def _start_ready(self) -> None:
        while self.ready and self.ready[0] < self.limit:
            index = heapq.heappop(self.ready)
            step = self.plan.steps[index]
            if step.inline:
                self._run_inline(index, step)
            else:
                task = asyncio.create_task(step.opcode.run(self.frame, step))
                self.running[task] = index
                task.add_done_callback(self._note_end)

    def _run_inline(self, index: int, step: Step) -> None:
        try:
            outcome = run_step(self.frame, step)
        except Exception as error:
            self._stop_at(index, error=error)
        else:
            self._finish(index, outcome)

    def _note_end(self, task: asyncio.Task) -> None:
        self.ended.append(task)
        if self.waker is not None and not self.waker.done():
            self.waker.set_result(None)

    async def _wait(self) -> None:
        if not self.ended:
            self.waker = asyncio.get_running_loop().create_future()
            await self.waker

    def _take_ended(self) -> list[asyncio.Task]:
        ended, self.ended = self.ended, []
        return ended

    def _collect(self, task: asyncio.Task) -> None:
        index = self.running.pop(task)
        if task.cancelled():
            # Only this block cancels its tasks, and only those from `limit` on.
            assert index >= self.limit, (index, self.limit)
        elif (error := task.exception()) is not None:
            self._stop_at(index, error=error)
        else:
            self._finish(index, task.result())

    def _finish(self, index: int, outcome: Outcome | None) -> None:
        if outcome is not None:
            self._stop_at(index, outcome=outcome)
            return
        for later in self.plan.wakes[index]:
            self.waits_for[later] -= 1
            if self.waits_for[later] == 0:
                heapq.heappush(self.ready, later)

    def _stop_at(self, index: int, *, error: BaseException | None = None, outcome: Outcome | None = None) -> None:
        if index >= self.limit:
            return
        if isinstance(error, RunError):
            error = through(error, self.plan.steps[index].calls)
        self.limit, self.error, self.outcome = index, error, outcome
        for task, other in self.running.items():
            if other > index:
                task.cancel()

    async def _cancel_all(self) -> None:
        for task in self.running:
            task.cancel()
        await settle(self.running)


async def settle(tasks: Any) -> None:
    """Wait until cancelled tasks have ended, and take what they raised: it is not what is reported."""
    tasks = list(tasks)
    while pending := [t for t in tasks if not t.done()]:
        try:
            await asyncio.wait(pending)
        except asyncio.CancelledError:
            # A second cancel must not leave tasks behind; the first one is on its way up already.
            continue
    for task in tasks:
        if not task.cancelled():
            task.exception()
