"""Work for a client, as long as the client is there and the server goes on.

    result = await while_connected(request.receive, ending, work)      raises ClientGone, or ApiError 503 where the server ends
    return EventStream(events, ending)                                 server-sent events, under the same condition
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from typing import Any, TypeVar

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from lmc.diagnostics import LmcError
from lmc.server.errors import LOG, ApiError, api_error, json_text
from lmc.server.generating import ended

_T = TypeVar("_T")
#: How long a client may take nothing of what is sent to it.
SEND_SECONDS = 60.0


class ClientGone(Exception):
    """Nobody waits for the answer any more."""


async def while_connected(receive: Receive, ending: asyncio.Event, work: Awaitable[_T]) -> _T:
    """What `work` gives; it is cancelled where nobody waits for it or the server ends."""
    task = asyncio.ensure_future(work)
    gone, over = asyncio.ensure_future(_left(receive)), asyncio.ensure_future(ending.wait())
    try:
        await asyncio.wait((task, gone, over), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        if gone.done():
            raise ClientGone
        raise ApiError(503, "the server ends", code="E0839", headers={"retry-after": "5"})
    finally:
        await ended((task, gone, over))


class EventStream(StreamingResponse):
    """Sends texts as they come; each is a whole event (`event`).  What fails on the way is an event too, the last one."""

    def __init__(self, events: AsyncGenerator[str, None], ending: asyncio.Event):
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(events, media_type="text/event-stream", headers=headers)
        self.events, self.ending = events, ending

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            if (error := await self._told(receive, send)) is not None:
                await _send(send, error_event(error))
            await _send(send, "", more=False)
        except ClientGone:
            return
        finally:
            await self.events.aclose()

    async def _told(self, receive: Receive, send: Send) -> ApiError | None:
        """Send all events; what has failed, if anything has.  Raises `ClientGone`."""
        try:
            await while_connected(receive, self.ending, self._pass_on(send))
        except ClientGone:
            raise
        except ApiError as error:
            return error
        except LmcError as error:
            return api_error(error)
        except Exception as error:
            LOG.exception("a stream broke: %s", error)
            return ApiError(500, "E0843: something inside `lmc` is broken; the server's log says more", code="E0843")
        return None

    async def _pass_on(self, send: Send) -> None:
        async for text in self.events:
            await _send(send, text)


def event(data: str, kind: str | None = None) -> str:
    """One server-sent event; `data` has no line ends."""
    return f"data: {data}\n\n" if kind is None else f"event: {kind}\ndata: {data}\n\n"


def event_schema(*names: str) -> dict[str, Any]:
    """One event in OpenAPI, the `itemSchema` of its stream.  `names`: what events are called; one without a name is a `message`."""
    return {"type": "object", "required": ["data"], "properties": {"event": {"enum": list(names)}, "data": {"type": "string"}}}


def error_event(error: ApiError) -> str:
    return event(json_text(error.data), "error")


async def _send(send: Send, text: str, *, more: bool = True) -> None:
    """Raises `ClientGone` where the client takes nothing any more: what runs for it holds a place that others want."""
    try:
        async with asyncio.timeout(SEND_SECONDS):
            await send({"type": "http.response.body", "body": text.encode(), "more_body": more})
    except TimeoutError:
        raise ClientGone from None


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
