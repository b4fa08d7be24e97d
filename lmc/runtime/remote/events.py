"""The JSON that an answer consists of: server-sent events as they come, or one body.

    data: {"choices": […]}        {"choices": […]}
    : keep-alive
    data: [DONE]                  the end

An error that comes where an event is expected is an error, whatever the status of the answer was.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from lmc.runtime.remote.faults import Again, Fault

#: Bytes of one event or body: a server that sends more is broken.
_MOST = 64 << 20
#: Fields that hold something: `error` is the name that older servers of llama.cpp give to theirs.
_DATA = (b"data", b"error")
#: Seconds for the end of a body behind its last event.
_AFTER_THE_END = 1.0


async def events(content_type: str, chunks: AsyncIterator[bytes]) -> AsyncIterator[dict[str, Any]]:
    """The events of an answer.  Raises `Fault` for what is none, and for an error among them."""
    if content_type.split(";")[0].strip() != "text/event-stream":
        body = bytearray()
        async for chunk in chunks:
            body += chunk
            _check_size(len(body))
        yield _event(bytes(body))
        return
    async for data, says_error in _data_lines(chunks):
        if data == b"[DONE]":
            await _read_out(chunks)
            return
        yield _event(data, says_error)


async def _read_out(chunks: AsyncIterator[bytes]) -> None:
    """The end of the body, so that the connection can be used again; the answer is whole without it."""
    try:
        async with asyncio.timeout(_AFTER_THE_END):
            async for _ in chunks:
                continue
    except (Fault, TimeoutError):
        return


async def _data_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[tuple[bytes, bool]]:
    """What each line of data holds, and whether it is told to be an error."""
    rest, kind = b"", b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        _check_size(len(rest))
        for line in lines:
            name, _, value = line.partition(b":")
            kind = value.strip() if name == b"event" else kind if line.strip() else b""
            # Other fields number events and say when to come back, which no server of these interfaces needs.
            if name in _DATA:
                yield value.strip(), name == b"error" or kind == b"error"
    name, _, value = rest.partition(b":")
    if name in _DATA:
        yield value.strip(), name == b"error" or kind == b"error"


def _event(data: bytes, says_error: bool = False) -> dict[str, Any]:
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        event = None
    if says_error or isinstance(event, dict) and event.get("error"):
        told = data[:300].decode("utf-8", "replace") if event is None else error_text(event)
        message = f"the server breaks off with an error: {told}"
        raise Fault(message, outcome="error in the stream", again=Again.BILLED, broken=True)
    if not isinstance(event, dict):
        raise Fault(f"the server sends what is no answer: {data[:100]!r}", outcome="broken answer", again=Again.BILLED,
                    broken=True)
    return event


def error_text(data: Any) -> str:
    """What a server says of an error, in whatever form it does."""
    for name in ("error", "message", "detail"):
        if isinstance(data, dict) and data.get(name):
            data = data[name]
    return (data if isinstance(data, str) else json.dumps(data, ensure_ascii=False))[:300]


def _check_size(size: int) -> None:
    if size > _MOST:
        message = f"the server sends more than {_MOST:,} bytes in one event"
        raise Fault(message, outcome="too long", again=Again.NEVER, broken=True)
