"""An event loop in a thread of its own, so that scripts, and notebooks that already run a loop, can use the machine.

    loop = LoopThread()
    loop.run(coroutine)            waits; Ctrl-C cancels the coroutine
    loop.start(coroutine)          a concurrent future
    loop.close()
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine
from typing import Any


class LoopThread:
    __slots__ = ("_loop", "_thread")

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        # A daemon: a program that forgets to close must still be able to end.
        self._thread = threading.Thread(target=self._loop.run_forever, name="lmc-loop", daemon=True)
        self._thread.start()

    def is_here(self) -> bool:
        """Whether the caller runs in the loop's own thread, where waiting for it would never end."""
        return threading.current_thread() is self._thread

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> concurrent.futures.Future:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """The coroutine's result.  Raises RuntimeError in the loop's own thread, where waiting would never end."""
        if self.is_here():
            coroutine.close()
            raise RuntimeError("a function of a program was called from a coroutine extern of it; await its `.aio` form instead")
        future = self.start(coroutine)
        try:
            return future.result()
        except BaseException:
            # Ctrl-C in the waiting thread; of a coroutine that has ended nothing is left to cancel.
            future.cancel()
            raise

    def close(self) -> None:
        """Cancel what still runs and end the thread.  Twice is harmless."""
        if self._loop.is_closed():
            return
        if self.is_here():
            raise RuntimeError("the loop cannot be closed from within")
        self.start(_cancel_others()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
