"""Servers for tests: the application on the stand-in model, behind uvicorn, on a free port of the loopback, in a thread.

    with running() as served:
        served.client().chat.completions.create(…)
        served.post("/v1/completions", {…}).json()
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import openai

from lmc.runtime.dry import DryModel, dry_tokenizer
from lmc.runtime.session import Session
from lmc.runtime.template import dry_template
from lmc.server.keys import key_of
from lmc.server.serving import Server, address_of, bound_socket
from lmc.server.settings import ServerSettings
from lmc.server.state import ServedProgram, ServerState

#: A hang is a failure, and not a long wait.
LIMIT = 20.0
#: One for all tests: making one reads all certificates of the machine.
HTTP = httpx.Client(verify=False, timeout=LIMIT)
KEYS = {"alice": "alice-has-this-long-key", "bob": "bob-has-another-long-key"}


def keyed(*names: str) -> dict[str, Any]:
    """Settings with the keys of these."""
    return {"keys": tuple(key_of(name, KEYS[name], "") for name in names)}


class GatedModel(DryModel):
    """Computes a step only when the test lets it; `passes` counts them."""

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.gate, self.passes = threading.Semaphore(0), 0
        self.is_open = False

    def forward(self, rows):
        if not self.is_open:
            assert self.gate.acquire(timeout=LIMIT), "nobody let the step go on"
        self.passes += 1
        return super().forward(rows)

    def let(self, steps: int) -> None:
        self.gate.release(steps)

    def open(self) -> None:
        self.is_open = True
        self.gate.release(1000)


@dataclass
class Served:
    url: str
    state: ServerState
    server: Server
    loop: asyncio.AbstractEventLoop

    @property
    def session(self) -> Session:
        return self.state.session

    def client(self, key: str = "none") -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=KEYS.get(key, key), max_retries=0, http_client=HTTP)

    def async_client(self) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(base_url=f"{self.url}/v1", api_key="none", max_retries=0, http_client=httpx.AsyncClient(verify=False, timeout=LIMIT))

    def get(self, path: str, **options: Any) -> httpx.Response:
        return HTTP.get(self.url + path, **options)

    def post(self, path: str, body: Any, **options: Any) -> httpx.Response:
        return HTTP.post(self.url + path, json=body, **options)

    def chat(self, text: str, **options: Any) -> Any:
        """The answer to one message of a user, greedy unless it is said otherwise."""
        return self.client().chat.completions.create(**{"model": "dry", "messages": [{"role": "user", "content": text}], "temperature": 0,
                                                        "max_tokens": 24} | options)

    def complete(self, prompt: Any, **options: Any) -> Any:
        return self.client().completions.create(**{"model": "dry", "prompt": prompt, "temperature": 0} | options)

    def end(self) -> None:
        """What a signal does."""
        self.loop.call_soon_threadsafe(self.server.end)


@contextmanager
def running(model: DryModel | None = None, *, slots: int = 1 << 14, programs: Mapping[str, ServedProgram] | None = None,
            **settings: Any) -> Iterator[Served]:
    """A server; its end is that of a signal."""
    started: list[Served] = []
    ready = threading.Event()
    failed: list[BaseException] = []
    bound = bound_socket("127.0.0.1", 0)

    async def main() -> None:
        tokenizer = dry_tokenizer()
        session = Session(model or DryModel(tokenizer), tokenizer, dry_template(tokenizer), slots=slots)
        state = ServerState(ServerSettings(**{"model_name": "dry", "drain_seconds": 5.0} | settings), session, programs=programs)
        server = Server(state)
        started.append(Served(address_of(bound), state, server, asyncio.get_running_loop()))
        ready.set()
        try:
            await server.serve([bound])
        finally:
            await state.close()
            session.close()

    def run() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:
            failed.append(error)
            ready.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(LIMIT)
    try:
        if not failed:
            yield started[0]
    finally:
        if started and thread.is_alive():
            if isinstance(model, GatedModel):
                model.open()
            started[0].end()
        thread.join(LIMIT)
        assert not thread.is_alive(), "the server does not end"
        bound.close()
    if failed:
        raise failed[0]


def wait_for(condition: Callable[[], Any], what: str) -> None:
    """Until another thread has brought it about."""
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.002)
