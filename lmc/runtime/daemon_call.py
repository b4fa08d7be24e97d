"""Waiting for a function that blocks, in a thread that never keeps the process from ending.

The threads of `asyncio.to_thread` are joined when the interpreter ends: a function that sleeps, or waits at a terminal, would
hold up Ctrl-C.  Here cancelling the waiter drops the result, and a daemon thread dies with the process.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any


async def call_in_daemon(function: Callable[..., Any], *args: Any, on_end: Callable[[], None] = lambda: None) -> Any:
    """`function(*args)`.  `on_end` is called in the event loop once the function has ended, also after a cancel."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        on_end()
        if answer.done():
            return
        if error is None:
            answer.set_result(value)
        else:
            answer.set_exception(_fit_for_a_future(error))

    def run() -> None:
        value = error = None
        try:
            value = function(*args)
        except BaseException as raised:
            error = raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=run, name=f"lmc-{getattr(function, '__name__', 'call')}", daemon=True).start()
    return await answer


class Stopped(Exception):
    """The function tried to end the interpreter, or raised what a future cannot hold."""


def _fit_for_a_future(error: BaseException) -> Exception:
    """An exception that ends neither the loop nor a coroutine."""
    if isinstance(error, Exception) and not isinstance(error, (StopIteration, StopAsyncIteration)):
        return error
    stopped = Stopped(f"{type(error).__name__} {error}".strip())
    stopped.__cause__ = error
    return stopped
