"""Ctrl-C: the first cancels, the second ends at once.

    first SIGINT     the coroutine that `run_until_interrupted` runs is cancelled, or KeyboardInterrupt is raised elsewhere
    0.8 s later      the process ends, whatever still holds it (a forward pass, a file being read)
    second SIGINT    the process ends
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, NoReturn

from lmc.cli.exits import INTERRUPTED

if TYPE_CHECKING:
    import asyncio

# "Within a second", with some time left to say so.
_GRACE_SECONDS = 0.8


class _Interrupts:
    """What the handler knows: how often it was called, and what to cancel."""

    __slots__ = ("count", "cancel")

    def __init__(self) -> None:
        self.count = 0
        self.cancel: Callable[[], None] | None = None

    def __call__(self, number: int, frame: Any) -> None:
        self.count += 1
        if self.count > 1:
            os._exit(INTERRUPTED)
        timer = threading.Timer(_GRACE_SECONDS, os._exit, (INTERRUPTED,))
        timer.daemon = True
        timer.start()
        if self.cancel is None:
            raise KeyboardInterrupt
        self.cancel()


def watch_interrupts() -> None:
    """Take over SIGINT for the process."""
    signal.signal(signal.SIGINT, _Interrupts())


def run_until_interrupted(coroutine: Coroutine[Any, Any, Any], runner: asyncio.Runner | None = None) -> Any:
    """Run the coroutine in an event loop, that of `runner` where one is given.

    Raises KeyboardInterrupt after it has been cancelled by SIGINT.
    """
    import asyncio

    async def main() -> Any:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if isinstance(interrupts, _Interrupts):
            interrupts.cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        return await coroutine

    interrupts = signal.getsignal(signal.SIGINT)
    try:
        with runner or asyncio.Runner() as used:
            return used.run(main())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        if isinstance(interrupts, _Interrupts):
            interrupts.cancel = None


def end_at_once(code: int) -> NoReturn:
    """End without waiting for threads: one may be in the middle of a forward pass."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (BrokenPipeError, ValueError):
            continue
    os._exit(code)
