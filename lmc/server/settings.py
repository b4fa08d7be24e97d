"""How a server is set up: where it listens, who may ask, and how much at a time.

    ServerSettings(model_name="default", keys=(Key("alice", digest),))

Everything here is decided before the server starts and does not change while it runs.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

#: What a client is called where no keys are asked for.
ANYBODY = ""


@dataclass(frozen=True, slots=True)
class Key:
    """An API key: whose it is, and its SHA-256."""

    name: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What one run of a program may use at most: calls of the model, generated tokens, seconds."""

    calls: int = 1_000
    tokens: int = 200_000
    seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class CompileLimits:
    """Of constraints that requests bring.

    seconds: processor time of one; memory: bytes beside what an idle process has; table: bytes of an automaton
    workers: how many compile at a time; waiting: how many more of one client may wait, the next one is refused
    kept: bytes of what is remembered
    """

    seconds: float = 5.0
    memory: int = 512 << 20
    table: int = 32 << 20
    workers: int = 2
    waiting: int = 64
    kept: int = 256 << 20


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """model_name: as clients name the model
    host, port: where it listens
    keys: who may ask; none: anybody
    origins: whose pages may ask from a browser; hosts: further names that the server may be addressed by
    max_body_bytes, max_prompt_bytes: of one request, and of the text in it that the model is to read
    body_seconds: how long the body of a request may take to come
    max_open: generations that may be asked for at a time, all clients together; beyond, a request is told to come again
    max_open_each: the same of one client, so that it leaves room for others; None: all of them
    max_choices: generations of one request
    max_tokens: generated tokens of one choice, None for what the model's context holds
    exact_turns: whether a turn that the assistant has written here is read again in the tokens that it was written in
    share_cache: whether clients with different keys may find one another's prefixes in the cache
    drain_seconds: how long requests that run may go on once the server is to end
    stuck_seconds: a step of the engine that takes longer is told by `/health`
    run: of each run of a program; compile: of each constraint that a request brings
    """

    model_name: str
    host: str = "127.0.0.1"
    port: int = 8000
    keys: tuple[Key, ...] = ()
    origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    max_body_bytes: int = 4 << 20
    max_prompt_bytes: int = 1 << 20
    body_seconds: float = 60.0
    max_open: int = 256
    max_open_each: int | None = None
    max_choices: int = 16
    max_tokens: int | None = None
    exact_turns: bool = False
    share_cache: bool = False
    drain_seconds: float = 10.0
    stuck_seconds: float = 120.0
    run: RunLimits = RunLimits()
    compile: CompileLimits = CompileLimits()

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether an address, or a name, is this machine's own and nobody else's."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
