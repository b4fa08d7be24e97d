"""Where a model over the network is and how it is asked: what the command line and `lmc.load` gather.

    RemoteSettings("vllm", "http://localhost:8000", key=None, patience=Patience(deadline=60))

The key is a secret: it is in no text that this data is shown as.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, urlsplit

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
    """at_once: requests under way at a time; ahead: tokens that may be asked for past a stop, and so be thrown away, in one
    call; ca_file: of certificates, in PEM, one of which must vouch for the server; None for those that httpx has."""

    backend: str
    base_url: str
    key: str | None = field(default=None, repr=False)
    at_once: int = 32
    ahead: int = 0
    patience: Patience = Patience()
    prices: Prices | None = None
    ca_file: str | None = None


_OF_PATIENCE = ("deadline", "attempts", "longest_wait", "repeat_billed")
_NAMES = (*_OF_PATIENCE, "at_once", "speculate", "prices", "ca_file")


def remote_settings(backend: str, base_url: str | None, key: str | None, network: Mapping[str, Any]) -> RemoteSettings | None:
    """The settings by the names that users give; None where the model is in this process.

    network: `deadline`, `attempts`, `longest_wait`, `repeat_billed`, `at_once`, `speculate`, `prices` (read, written),
    `ca_file`
    Raises `UsageError`.
    """
    unknown = [name for name in network if name not in _NAMES]
    if unknown:
        message = f"there is no setting `{unknown[0]}` for a network"
        raise UsageError(Diagnostic("E0851", message, None, help=f"there are: {', '.join(_NAMES)}"))
    if backend == "local":
        if base_url is not None or network:
            message = "an address or a setting of a server is given, and no server is asked"
            raise UsageError(Diagnostic("E0851", message, None, help="say which interface it has: `--backend openai`"))
        return None
    if base_url is None:
        message = f"the backend {backend} needs the address of a server"
        raise UsageError(Diagnostic("E0851", message, None, help="as in `--base-url http://localhost:8000/v1`"))
    patience = Patience(**{name: network[name] for name in _OF_PATIENCE if name in network})
    prices = Prices(*network["prices"]) if network.get("prices") else None
    at_once, ahead = network.get("at_once", 32), network.get("speculate", 0)
    return checked(RemoteSettings(backend, base_url, key, at_once, ahead, patience, prices, network.get("ca_file")))


def checked(settings: RemoteSettings) -> RemoteSettings:
    """Raises `UsageError` for what cannot be asked."""
    if settings.backend not in BACKENDS:
        message = f"the backend is {settings.backend!r}, expected local, {', '.join(BACKENDS)}"
        raise UsageError(Diagnostic("E0851", message, None))
    parts = urlsplit(settings.base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname or not _is_port(parts):
        message = f"`{settings.base_url}` is no address of a server"
        raise UsageError(Diagnostic("E0851", message, None, help="as in `--base-url http://localhost:8000/v1`"))
    if parts.username or parts.password:
        message = "the address of the server holds a name or password, which would be shown with it"
        help = "put the key into the environment: OPENAI_API_KEY, or `--key-env NAME`"
        raise UsageError(Diagnostic("E0851", message, None, help=help))
    if settings.ahead < 0 or settings.at_once < 1 or settings.patience.attempts < 1 or settings.patience.deadline <= 0:
        message = "`ahead` counts from 0, `at_once` and attempts from 1, and a deadline is more than 0 seconds"
        raise UsageError(Diagnostic("E0851", message, None))
    if settings.ca_file is not None:
        _check_certificates(settings.ca_file)
    return settings


def _check_certificates(file: str) -> None:
    import ssl  # only where it is needed: it takes a while

    try:
        ssl.create_default_context(cafile=file)
    except OSError as error:
        why = "there is none in it" if isinstance(error, ssl.SSLError) else error.strerror
        message = f"`{file}` cannot be read as certificates: {why}"
        raise UsageError(Diagnostic("E0851", message, None, help="give a file in PEM, as `--ca-file company.pem`")) from None


def _is_port(parts: SplitResult) -> bool:
    try:
        return parts.port != 0
    except ValueError:
        return False
