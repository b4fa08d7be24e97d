"""Where a model over the network is and how it is asked: what the command line and `lmc.load` gather.

    RemoteSettings("vllm", "http://localhost:8000", key=None, patience=Patience(deadline=60))

The key is a secret: it is in no text that this data is shown as.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from lmc.diagnostics import Diagnostic, UsageError

BACKENDS = ("openai", "sglang", "vllm")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long and how often a request is tried; all times in seconds.

    deadline: for one attempt, its whole answer included
    attempts: of one request at most; longest_wait: a server that asks for a longer one is not waited for; waits: all waits of one
    request together; first_wait: where the server asks for none, doubled each time
    repeat_billed: whether a request is sent again that may have been answered, and so billed, where the answer was lost
    invalid: how often a typed value is asked for until it is one
    """

    deadline: float = 600.0
    attempts: int = 4
    longest_wait: float = 60.0
    waits: float = 120.0
    first_wait: float = 0.5
    repeat_billed: bool = False
    invalid: int = 3


@dataclass(frozen=True, slots=True)
class Prices:
    """In one currency, for a million tokens: read, and written."""

    prompt: float
    generated: float

    def cost(self, prompt: int, generated: int) -> float:
        return (prompt * self.prompt + generated * self.generated) / 1e6


@dataclass(frozen=True, slots=True)
class RemoteSettings:
    """at_once: requests under way at a time; ahead: tokens that may be asked for past a stop, and so be thrown away, in one call."""

    backend: str
    base_url: str
    key: str | None = field(default=None, repr=False)
    at_once: int = 32
    ahead: int = 0
    patience: Patience = Patience()
    prices: Prices | None = None


def checked(settings: RemoteSettings) -> RemoteSettings:
    """Raises `UsageError` for what cannot be asked."""
    if settings.backend not in BACKENDS:
        message = f"the backend is {settings.backend!r}, expected local, {', '.join(BACKENDS)}"
        raise UsageError(Diagnostic("E0851", message, None))
    parts = urlsplit(settings.base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        message = f"`{settings.base_url}` is no address of a server"
        raise UsageError(Diagnostic("E0851", message, None, help="as in `--base-url http://localhost:8000/v1`"))
    if parts.username or parts.password:
        message = "the address of the server holds a name or password, which would be shown with it"
        raise UsageError(Diagnostic("E0851", message, None, help="put the key into the environment: OPENAI_API_KEY, or `--key-env NAME`"))
    if settings.ahead < 0 or settings.at_once < 1 or settings.patience.attempts < 1 or settings.patience.deadline <= 0:
        message = "`ahead` counts from 0, `at_once` and attempts from 1, and a deadline is more than 0 seconds"
        raise UsageError(Diagnostic("E0851", message, None))
    return settings
