"""Models that are open in this process, shared by all who ask for the same one: weights, cache and event loop are there once.

    one, two = shared_engines().take(settings), shared_engines().take(settings)      # one.session is two.session
    one.close(); two.close()                                                         # the last one frees the model

Those who share do not see one another: `run` and `close` of a `Share` are about its own coroutines alone.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmc.runtime.loop_thread import LoopThread
from lmc.runtime.open_session import open_session

if TYPE_CHECKING:
    from lmc.runtime.open_session import Opened


@dataclass(slots=True, eq=False)
class _Open:
    session: Opened
    loop: LoopThread
    shares: int = 0


class SharedEngines:
    """What is open, by its settings.  Safe from any thread."""

    __slots__ = ("_lock", "_open")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[object, _Open] = {}

    def take(self, settings: Mapping[str, Any]) -> Share:
        """A share of the model with these settings, opened where nobody has it.  settings: arguments of `open_session`; raises as it does."""
        key = _key(settings)
        with self._lock:
            found = self._open.get(key)
            # One that has come to its end by a fault is left to those who have it.
            if found is None or found.session.ended:
                found = self._open[key] = _Open(open_session(**settings), LoopThread())
            found.shares += 1
            return Share(self, key, found)

    def give_back(self, key: object, share: _Open) -> None:
        """One share less; with the last one the model goes.  Its coroutines must have ended."""
        with self._lock:
            share.shares -= 1
            if share.shares:
                return
            if self._open.get(key) is share:
                del self._open[key]
        share.loop.run(share.session.disconnect())
        share.loop.close()
        share.session.close()


@cache
def shared_engines() -> SharedEngines:
    """Those of this process: programs that are loaded apart know nothing of one another."""
    return SharedEngines()


def _key(settings: Mapping[str, Any]) -> object:
    folder = Path(settings["model"]).expanduser()
    # A folder or a GGUF file is itself, wherever the process stands; after `os.fork` nothing runs that was started before.
    model = str(folder.resolve()) if settings["model"] and folder.exists() else settings["model"]
    return (os.getpid(), *sorted({**settings, "model": model}.items()))


class Share:
    """One user's hold of an open model.  Close it."""

    __slots__ = ("session", "_engines", "_key", "_open", "_tasks", "_closed")

    def __init__(self, engines: SharedEngines, key: object, open: _Open):
        self.session = open.session
        self._engines, self._key, self._open = engines, key, open
        self._tasks: set[asyncio.Task[Any]] = set()  # touched in the loop's thread alone
        self._closed = False

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """As `LoopThread.run`."""
        if self._open.loop.is_here():
            # What refuses to wait closes what wraps the coroutine, which has not begun and so does not close it.
            coroutine.close()
        return self._open.loop.run(self._noted(coroutine))

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """As `LoopThread.start`."""
        return self._open.loop.start(self._noted(coroutine))

    def close(self) -> None:
        """Cancel what runs here, and free the model where nobody else has it.  Twice is harmless."""
        if self._open.loop.is_here():
            raise RuntimeError("a module cannot be closed from a coroutine extern of it")
        if not self._closed and self._open.loop.run(self._cancel()):
            self._engines.give_back(self._key, self._open)

    async def _noted(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        task = asyncio.current_task()
        assert task is not None
        if self._closed:
            coroutine.close()
            raise asyncio.CancelledError
        self._tasks.add(task)
        try:
            return await coroutine
        finally:
            self._tasks.discard(task)

    async def _cancel(self) -> bool:
        """Whether this was the first call."""
        if self._closed:
            return False
        self._closed, tasks = True, list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return True
