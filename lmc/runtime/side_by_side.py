"""Running many coroutines beside one another, with two rules for failure.

`all_or_first_failure`: branches of a fork.  The first that fails cancels all others (of several in one turn, the lowest).
`in_program_order`: rounds of a comprehension.  The failure reported is that of the lowest index: later ones are cancelled,
earlier ones run to their end, as if the rounds had run one after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

from lmc.runtime.block_run import settle

Coroutines = Iterable[Coroutine[Any, Any, Any]]


async def all_or_first_failure(coroutines: Coroutines) -> list[Any]:
    """The results in order.  Raises the first failure after the others have been cancelled."""
    tasks = [asyncio.create_task(c) for c in coroutines]
    if not tasks:
        return []
    try:
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    except asyncio.CancelledError:
        await _cancel(tasks)
        raise
    if pending:
        await _cancel(tasks)
    return _results(tasks)


async def in_program_order(coroutines: Coroutines) -> list[Any]:
    """The results in order.  Raises the failure of the lowest index."""
    tasks = [asyncio.create_task(c) for c in coroutines]
    waiting = set(tasks)
    try:
        while waiting:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_EXCEPTION)
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
    for task in tasks:
        if _failed(task):
            raise task.exception()
    return [t.result() for t in tasks]
