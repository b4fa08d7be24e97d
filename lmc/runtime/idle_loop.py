"""An event loop that says when nothing in it can go on: every task waits for something that the loop itself cannot bring.

    with idle_runner() as (runner, selector):
        runner.run(main(selector))          # main: selector.on_idle = …

A loop that has work asks its selector not to wait.  When it asks to wait, all that is left are files, timers and threads; whoever
listens knows whether it has any of these.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class IdleSelector(selectors.DefaultSelector):
    """`on_idle` is called before each wait; where it gives True, it has given the loop work, and there is no wait."""

    def __init__(self) -> None:
        super().__init__()
        self.on_idle: Callable[[], bool] = lambda: False

    def select(self, timeout: float | None = None) -> list[Any]:
        waits = timeout is None or timeout > 0
        return super().select(0 if waits and self.on_idle() else timeout)


@contextmanager
def idle_runner() -> Iterator[tuple[asyncio.Runner, IdleSelector]]:
    """A runner with such a loop."""
    selector = IdleSelector()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        yield runner, selector
