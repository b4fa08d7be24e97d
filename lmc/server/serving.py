"""From an application to a listening server, and its end.

    SIGINT or SIGTERM     nothing new is taken, what runs may go on for `drain_seconds`, then it is told that the server ends
    a second one          what runs is told so at once
    a third one           connections are cut

The socket is bound before the model is loaded, so that a port in use is told at once.
"""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from lmc.diagnostics import Diagnostic, UsageError
from lmc.server.app import make_app
from lmc.server.program_routes import program_paths
from lmc.server.settings import ServerSettings
from lmc.server.state import ServerState

#: Connections at a time, idle ones included.
_CONNECTIONS = 1024
#: Seconds beyond the drain in which answers that say that the server ends must be out.
_LAST_WORDS = 5


def bound_socket(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 is any free one.  Raises `UsageError`."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        # A name may be both; clients try 127.0.0.1 for `localhost` in the end.
        family, kind, number, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
        made = socket.socket(family, kind, number)
    except OSError as error:
        raise UsageError(Diagnostic("E0881", f"`{host}` is no address of this machine: {error.strerror or error}", None,
                                    help="127.0.0.1 is for this machine alone, 0.0.0.0 for all that can reach it")) from None
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(2048)
    except OSError as error:
        made.close()
        raise UsageError(_cannot_listen(host, port, error)) from None
    return made


def address_of(bound: socket.socket) -> str:
    """For people and clients: `http://127.0.0.1:8000`."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if bound.family == socket.AF_INET6 else f"http://{host}:{port}"


class Server(uvicorn.Server):
    """One whose signals are ours, and that may be ended from its loop."""

    def __init__(self, state: ServerState):
        settings = state.settings
        super().__init__(uvicorn.Config(
            make_app(state), http="h11", ws="none", loop="none", lifespan="off", log_level="warning", access_log=False,
            server_header=False,
            # Nobody is believed who says that a request came from elsewhere.
            proxy_headers=False, limit_concurrency=_CONNECTIONS, timeout_graceful_shutdown=_whole(settings)))
        self.state = state
        self._told = 0

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn's own would end requests without a word."""
        yield

    def end(self) -> None:
        """What a signal does; called in the event loop."""
        self._told += 1
        self.should_exit = True
        if self._told == 1:
            asyncio.get_running_loop().call_later(self.state.settings.drain_seconds, self.state.ending.set)
        self.force_exit = self._told > 2
        if self._told > 1:
            self.state.ending.set()


async def serve_until_told(state: ServerState, bound: socket.socket, *, say: Callable[[str], None]) -> None:
    """Serve until a signal ends it.  `say`: told what happens, in lines."""
    server, loop = Server(state), asyncio.get_running_loop()

    def told() -> None:
        server.end()
        say("ending: requests that run may finish" if state.gate.open and not state.ending.is_set() else "ending")

    signals = (signal.SIGINT, signal.SIGTERM)
    for one in signals:
        loop.add_signal_handler(one, told)
    await state.compiler.start()
    say(f"{state.settings.model_name} at {address_of(bound)}/v1")
    for path in program_paths(state):
        say(f"POST {address_of(bound)}{path}")
    try:
        await server.serve([bound])
    finally:
        for one in signals:
            loop.remove_signal_handler(one)
        await state.close()


def _cannot_listen(host: str, port: int, error: OSError) -> Diagnostic:
    if error.errno == errno.EADDRINUSE:
        return Diagnostic("E0881", f"the port {port} of {host} is in use", None,
                          help=f"take another: `--port {port + 1}`, or `--port 0` for any that is free")
    if error.errno == errno.EACCES:
        return Diagnostic("E0881", f"the port {port} is not for everybody", None, help="take one above 1023: `--port 8000`")
    return Diagnostic("E0881", f"the server cannot listen at {host}, port {port}: {error.strerror}", None)


def _whole(settings: ServerSettings) -> int:
    return int(settings.drain_seconds) + _LAST_WORDS
