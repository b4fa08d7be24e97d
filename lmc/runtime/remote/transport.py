"""Requests over the network: one client with its connections, so many at once, deadlines, and what is tried again.

    transport = Transport(settings)
    answer, tried = await transport.ask("/completions", body, reading, told)

A `Reading` takes the events of an answer and may stop before their end: then the connection is closed, as it is where the caller is
cancelled, and the server need not go on.  HTTP/2 is spoken where the package `h2` is there.  Nothing is taken from the environment,
and redirects are not followed: the key goes to the address that was given, and no message shows it.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import random
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from lmc.diagnostics import Diagnostic, UsageError
from lmc.runtime.remote.events import error_text, events
from lmc.runtime.remote.faults import DROPPED, Again, Fault, asked_wait, given_up, next_wait, status_fault
from lmc.runtime.remote.http2 import reset_left_streams
from lmc.runtime.remote.protocol import Answer
from lmc.runtime.remote.reading import Reading
from lmc.runtime.remote.settings import RemoteSettings

#: Seconds until a connection must stand; the answer has the whole deadline.
_CONNECT = 10.0
#: Seconds that a connection is kept for the next request.  Servers close what is idle, many after five seconds (uvicorn, and so vLLM):
#: a request that crosses the close is lost, and nobody can tell whether it was billed.
_KEPT = 2.0
#: Bytes of an error that are read: more is no message.
_MOST_TOLD = 1 << 16


@dataclass(frozen=True, slots=True)
class Tried:
    """An attempt: as in `Attempt`."""

    number: int
    outcome: str
    billed: str
    seconds: float
    waited: float = 0.0


class Transport:
    """Belongs to one event loop; `close` it there."""

    def __init__(self, settings: RemoteSettings):
        self._settings = settings
        self._http = _httpx()
        self._client: Any = None
        self._slots = asyncio.Semaphore(settings.at_once)

    async def ask(self, path: str, body: Mapping[str, Any], reading: Reading,
                  told: Callable[[Tried], None]) -> tuple[Answer, Tried]:
        """The answer, and the attempt that gave it; `told` gets those that failed.

        Raises `RunError` without a place, whose cause is the `Fault` of the last attempt.
        """
        patience, waited, number = self._settings.patience, 0.0, 0
        while True:
            number += 1
            async with self._slots:
                start = time.monotonic()
                try:
                    reading.begin()
                    answer = await self._attempt(path, body, reading)
                    return answer, Tried(number, "answered", "yes", time.monotonic() - start)
                except Fault as caught:
                    fault, seconds = caught, time.monotonic() - start
                except asyncio.CancelledError:
                    told(Tried(number, "cancelled", "maybe", time.monotonic() - start))
                    raise
            fault.raw, fault.shown = reading.answer.text or None, bool(reading.shown)
            wait = next_wait(fault, patience, number, waited, random.random())
            told(Tried(number, fault.outcome, fault.billed, seconds, wait or 0.0))
            if wait is None:
                raise given_up(fault, patience, number) from fault
            waited += wait
            await asyncio.sleep(wait)

    async def close(self) -> None:
        """End the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _attempt(self, path: str, body: Mapping[str, Any], reading: Reading) -> Answer:
        http, deadline = self._http, self._settings.patience.deadline
        try:
            async with asyncio.timeout(deadline):
                return await self._exchange(path, body, reading)
        except (http.ConnectError, http.ConnectTimeout, http.PoolTimeout) as error:
            raise Fault(f"{self._settings.base_url} cannot be reached: {self._clean(str(error))}", outcome="no connection",
                        again=Again.SAFE) from None
        except (http.TimeoutException, TimeoutError):
            raise Fault(f"the server has not answered within {deadline:g} s", outcome="deadline", again=Again.BILLED) from None
        except http.RequestError as error:
            raise self._lost(error) from None

    async def _exchange(self, path: str, body: Mapping[str, Any], reading: Reading) -> Answer:
        if self._client is None:
            self._client = self._opened()
        client, url = self._client, address(self._settings.base_url, path)
        try:
            async with client.stream("POST", url, content=json.dumps(body)) as response:
                if response.status_code != 200:
                    raise status_fault(response.status_code, await self._told(response), asked_wait(dict(response.headers)))
                return await self._read(response, reading)
        finally:
            await reset_left_streams(client)

    async def _read(self, response: Any, reading: Reading) -> Answer:
        async with aclosing(events(response.headers.get("content-type", ""), self._chunks(response))) as stream:
            try:
                return await reading.read(stream)
            except Fault as fault:
                fault.message = self._clean(fault.message)
                raise

    async def _chunks(self, response: Any) -> AsyncIterator[bytes]:
        try:
            async for chunk in response.aiter_bytes():
                yield chunk
        except self._http.TimeoutException:
            raise
        except self._http.RequestError as error:
            raise self._lost(error) from None

    def _lost(self, error: Exception) -> Fault:
        what = self._clean(str(error)) or type(error).__name__
        return Fault(f"the connection was lost before the answer was there: {what}", outcome=DROPPED, again=Again.BILLED)

    async def _told(self, response: Any) -> str:
        data = bytearray()
        try:
            async for chunk in response.aiter_bytes():
                data += chunk
                if len(data) > _MOST_TOLD:
                    break
        except self._http.RequestError as error:
            return f"the rest of its answer was lost: {self._clean(str(error))}"  # the status says enough
        try:
            text = error_text(json.loads(data))
        except (ValueError, RecursionError):
            text = data[:300].decode("utf-8", "replace")
        return self._clean(text)

    def _clean(self, text: str) -> str:
        """Some servers send the key back in their messages."""
        return text.replace(self._settings.key, "…") if self._settings.key else text

    def _opened(self) -> Any:
        http, settings = self._http, self._settings
        headers = {"content-type": "application/json", "accept": "text/event-stream, application/json"}
        if settings.key:
            headers["authorization"] = f"Bearer {settings.key}"
        # llama.cpp promises to keep a connection and closes it behind each stream, so that one request in ten crosses the close.  Without
        # TLS a new one costs nothing beside an answer.
        kept = settings.at_once if settings.base_url.startswith("https:") else 0
        limits = http.Limits(max_connections=settings.at_once, max_keepalive_connections=kept, keepalive_expiry=_KEPT)
        verify = True if settings.ca_file is None else ssl.create_default_context(cafile=settings.ca_file)
        return http.AsyncClient(http2=_has_http2(), headers=headers, trust_env=False, limits=limits, verify=verify,
                                timeout=http.Timeout(settings.patience.deadline, connect=_CONNECT))


def _has_http2() -> bool:
    return importlib.util.find_spec("h2") is not None


def address(base: str, path: str) -> str:
    """The address of an interface.  OpenAI's lie under `/v1`, which people give or leave out; `/generate` does not."""
    base = base.rstrip("/")
    if path == "/generate":
        return base.removesuffix("/v1") + path
    has_path = "/" in base.partition("://")[2]
    return base + ("" if has_path else "/v1") + path


def _httpx() -> Any:
    try:
        import httpx
    except ImportError:
        message = "models over the network need the package `httpx`, which is not installed"
        raise UsageError(Diagnostic("E0851", message, None, help="pip install 'lmc[remote]'")) from None
    return httpx
