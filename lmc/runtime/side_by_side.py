"""Running coroutines beside one another as if they had run one after the other: branches of a fork, rounds of a comprehension.

    0  ───────────────────► "no key"       the failure reported: the lowest index that fails, whatever fails first in time
    1  ─────────► value
    2  ───► "empty list"                   cancels 3; 0 and 1 run to their end, for they may fail too
    3  ──x

So a program that fails, or catches the failure, does the same however long its generations take.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

from lmc.diagnostics import RunError
from lmc.runtime.block_run import settle

Coroutines = Iterable[Coroutine[Any, Any, Any]]


async def in_program_order(coroutines: Coroutines) -> list[Any]:
    """The results in order.  Raises the failure of the lowest index, after later ones have been cancelled."""
    tasks = [asyncio.create_task(c) for c in coroutines]
    waiting = set(tasks)
    try:
        while waiting:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_EXCEPTION)
            outside = next((t for t in tasks if t in done and _failed(t) and not isinstance(t.exception(), RunError)), None)
            if outside is not None:
                # No failure of the program, such as a reader of its text that is gone: nobody asks for the rest.
                await _cancel(tasks)
                raise outside.exception()
            first = next((i for i, t in enumerate(tasks) if t in done and _failed(t)), None)
            if first is not None:
                await _cancel(tasks[first + 1:])
                tasks = tasks[:first + 1]
                waiting = {t for t in tasks if not t.done()}
    except asyncio.CancelledError:
        await _cancel(tasks)
        raise
    return _results(tasks)


def _failed(task: asyncio.Task) -> bool:
    return not task.cancelled() and task.exception() is not None


async def _cancel(tasks: list[asyncio.Task]) -> None:
    for task in tasks:
        task.cancel()
    await settle(tasks)


def _results(tasks: list[asyncio.Task]) -> list[Any]:
    # All failures are looked at: asyncio complains of those that nobody has seen.
    failures = [t.exception() for t in tasks if _failed(t)]
    if failures:
        raise failures[0]
    return [t.result() for t in tasks]
