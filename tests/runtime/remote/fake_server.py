"""A server for tests: answers each request with the next thing of its script, over a real connection on loopback.

    async with FakeServer([Chat("Hel", "lo"), Status(429, {"retry-after": "0"}), Dropped()]) as server:
        server.url, server.requests

It knows HTTP/1.1 as far as the client speaks it, and nothing of models: what a reply is, the reply itself says.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

USAGE = {"prompt_tokens": 10, "completion_tokens": 4}


@dataclass
class Asked:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Events:
    """Server-sent events, one after the other; `done`: whether the end is marked; `pause`: seconds before each; `closes`: whether the
    connection ends without the end of the body."""

    events: Sequence[Any]
    done: bool = True
    pause: float = 0.0
    closes: bool = False

    async def send(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for event in self.events:
            await asyncio.sleep(self.pause)
            _chunk(writer, f"data: {json.dumps(event)}\n\n".encode())
            await writer.drain()
        if self.done:
            _chunk(writer, b"data: [DONE]\n\n")
        if self.closes:
            writer.close()
        else:
            writer.write(b"0\r\n\r\n")


def chat(*parts: str, finish: str | None = "stop", usage: Any = USAGE, **options: Any) -> Events:
    """An answer of a chat interface."""
    events: list[Any] = [{"choices": [{"delta": {"content": part}, "finish_reason": None}]} for part in parts]
    return Events(_ended(events, {"delta": {}}, finish, usage), **options)


def text(*parts: str, finish: str | None = "stop", usage: Any = USAGE, **options: Any) -> Events:
    """An answer of a completions interface."""
    return Events(_ended([{"choices": [{"text": part}]} for part in parts], {"text": ""}, finish, usage), **options)


def _ended(events: list[Any], last: dict[str, Any], finish: str | None, usage: Any) -> list[Any]:
    events = events + ([{"choices": [{**last, "finish_reason": finish}]}] if finish is not None else [])
    return events + ([{"choices": [], "usage": usage}] if usage is not None else [])


@dataclass
class Status:
    """An answer that is no success, or a whole body."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None

    async def send(self, writer: asyncio.StreamWriter) -> None:
        data = json.dumps(self.body if self.body is not None else {"error": {"message": "not now"}}).encode()
        headers = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        writer.write(f"HTTP/1.1 {self.status} X\r\ncontent-type: application/json\r\n{headers}content-length: {len(data)}\r\n\r\n".encode())
        writer.write(data)


class Dropped:
    """The request is read, and the connection ends."""

    async def send(self, writer: asyncio.StreamWriter) -> None:
        writer.close()


class Silent:
    """Nothing ever comes; `gone` is set once the client has left."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()

    async def send(self, writer: asyncio.StreamWriter) -> None:
        try:
            while not writer.transport.is_closing():
                await asyncio.sleep(0.01)
        finally:
            self.gone.set()


Reply = Any
Script = Sequence[Reply] | Callable[[Asked], Reply]


class FakeServer:
    """`script`: the replies in order, or what makes the reply to a request."""

    def __init__(self, script: Script, *, port: int = 0):
        self._script, self._port = script, port
        self.requests: list[Asked] = []
        self.connections = 0
        self.open = 0
        self.most_at_once = self._at_once = 0

    async def __aenter__(self) -> FakeServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *error: Any) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        try:
            while (asked := await _request(reader)) is not None:
                self.requests.append(asked)
                self._at_once += 1
                self.most_at_once = max(self.most_at_once, self._at_once)
                try:
                    reply = self._script(asked) if callable(self._script) else self._script[len(self.requests) - 1]
                    await reply.send(writer)
                    await writer.drain()
                finally:
                    self._at_once -= 1
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has left
        finally:
            self.open -= 1
            writer.close()


async def _request(reader: asyncio.StreamReader) -> Asked | None:
    head = await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""
    if not head:
        return None
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Asked(first.split()[1], headers, json.loads(body or b"{}"))


def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
