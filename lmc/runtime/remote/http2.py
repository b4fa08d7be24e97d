"""The end of answers over HTTP/2 that were not read to theirs.

    one connection    stream 1: read      stream 3: its caller is cancelled      stream 5: cut at a stop text

httpx forgets such a stream and says nothing to the server (httpcore's issue 943, open in 1.0.9 and in httpx2 2.16): that writes on, and
bills, and after a hundred of them the connection takes no request any more.  Here they are reset.  What is reached into is private, so
what is not found is passed over, and a test says whether it is still there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

#: Seconds for the frame to be written; where that takes longer it goes out with whatever is written next.
_PATIENCE = 1.0


async def reset_left_streams(client: Any) -> None:
    """Tell the server of every stream that nobody reads any more.  client: `httpx.AsyncClient`, of this event loop."""
    import httpcore

    for connection in _connections(client):
        if not _reset(connection):
            continue
        try:
            async with asyncio.timeout(_PATIENCE):
                await connection._write_outgoing_data(SimpleNamespace(extensions={"timeout": {"write": _PATIENCE}}))
        except (TimeoutError, httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError):
            continue  # the connection is lost or stuck, and whoever uses it next hears of it


def _connections(client: Any) -> Iterator[Any]:
    """Those that speak HTTP/2."""
    pool = getattr(getattr(client, "_transport", None), "_pool", None)
    for connection in getattr(pool, "connections", ()):
        inner = getattr(connection, "_connection", None)
        if hasattr(inner, "_h2_state") and hasattr(inner, "_events") and hasattr(inner, "_write_outgoing_data"):
            yield inner


def _reset(connection: Any) -> bool:
    """Whether there was a stream that is open and not read: httpcore keeps what comes for those that are read in `_events`."""
    from h2.errors import ErrorCodes
    from h2.exceptions import ProtocolError

    state = connection._h2_state
    left = [number for number, stream in state.streams.items() if number not in connection._events and not stream.closed]
    for number in left:
        try:
            state.reset_stream(number, ErrorCodes.CANCEL)
        except ProtocolError:
            continue  # the connection has ended, and its streams with it
    return bool(left)
