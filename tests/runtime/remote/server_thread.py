"""A server in a thread of its own, as a real one is elsewhere.

    with in_thread(server):             entered in an event loop that runs until the block ends
        …
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any


@contextmanager
def in_thread(server: AbstractAsyncContextManager[Any]) -> Iterator[None]:
    """Raises what entering raises."""
    entered: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def main() -> None:
        left = asyncio.Event()
        async with server:
            entered.set_result((asyncio.get_running_loop(), left))
            await left.wait()

    def work() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:
            if entered.done():
                raise
            entered.set_exception(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        loop, left = entered.result()
        try:
            yield
        finally:
            loop.call_soon_threadsafe(left.set)
    finally:
        thread.join()
