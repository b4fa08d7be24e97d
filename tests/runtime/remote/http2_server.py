"""A real HTTP/2 server on loopback, with TLS: hypercorn, and an application that answers by a script.

    with http2_serving(reply, tmp_path) as server:
        server.url, server.ca_file, server.asked

`reply` gives the parts of an answer as they are to be sent; it may wait between them.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trustme
from hypercorn.asyncio import serve
from hypercorn.config import Config

from tests.runtime.remote.server_thread import in_thread


@dataclass
class Asked:
    """A request, the client's address, and whether the client has given it up."""

    body: dict[str, Any]
    client: tuple[str, int]
    version: str
    gone: asyncio.Event = field(default_factory=asyncio.Event)


Reply = Callable[[Asked], AsyncIterator[str]]


@dataclass
class Http2Server:
    url: str
    ca_file: str
    reply: Reply
    asked: list[Asked] = field(default_factory=list)

    async def __call__(self, scope: dict[str, Any], receive: Callable[[], Any], send: Callable[[dict[str, Any]], Any]) -> None:
        """The application, in the form of ASGI."""
        if scope["type"] != "http":
            return
        asked = Asked(json.loads(await _body(receive)), tuple(scope["client"]), scope["http_version"])
        self.asked.append(asked)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        watching = asyncio.create_task(_watch(receive, asked.gone))
        try:
            async for part in self.reply(asked):
                if asked.gone.is_set():
                    return
                await _event(send, {"choices": [{"delta": {"content": part}}]})
        finally:
            watching.cancel()
        await _event(send, {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3, "completion_tokens": 2}})
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})


async def _body(receive: Callable[[], Any]) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body


async def _watch(receive: Callable[[], Any], gone: asyncio.Event) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    gone.set()


async def _event(send: Callable[[dict[str, Any]], Any], data: dict[str, Any]) -> None:
    await send({"type": "http.response.body", "body": f"data: {json.dumps(data)}\n\n".encode(), "more_body": True})


@contextmanager
def http2_serving(reply: Reply, folder: Path, *, spoken: tuple[str, ...] = ("h2", "http/1.1")) -> Iterator[Http2Server]:
    """A server in a thread of its own, under a certificate that `ca_file` vouches for.  spoken: versions of HTTP."""
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    certificate.private_key_pem.write_to_path(folder / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    listening = socket.create_server(("127.0.0.1", 0))
    server = Http2Server(f"https://127.0.0.1:{listening.getsockname()[1]}", str(folder / "ca.pem"), reply)
    config = Config()
    config.bind = [f"fd://{listening.detach()}"]
    config.certfile, config.keyfile = str(folder / "cert.pem"), str(folder / "key.pem")
    config.errorlog = None
    config.alpn_protocols = list(spoken)
    config.graceful_timeout = 0.2
    # How long a connection stays on which an answer has broken off.
    config.keep_alive_timeout = 0.5
    with in_thread(_served(server, config)):
        yield server


@asynccontextmanager
async def _served(server: Http2Server, config: Config) -> AsyncIterator[None]:
    ended = asyncio.Event()
    serving = asyncio.create_task(serve(server, config, shutdown_trigger=ended.wait, mode="asgi"))
    try:
        yield
    finally:
        ended.set()
        await serving
