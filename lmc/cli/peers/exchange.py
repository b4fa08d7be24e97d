"""What a peer is asked and what it answers: the messages of `benchmarks/peers/peer_protocol.py` as data.

    PeerAsk((1, 42, 7), max_tokens=16, ignore_eos=True)     ->     PeerAnswer(ids=(9, …), text="…", computed=3, cached=0, …)
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from lmc.diagnostics import Diagnostic, LmcError


class PeerError(LmcError):
    """A peer cannot be started, has ended, does not answer, or refused a request."""

    def __init__(self, message: str, *, help: str | None = None):
        super().__init__(Diagnostic("E0874", message, None, help=help))


@dataclass(frozen=True, slots=True)
class PeerSetting:
    """How a peer is opened.

    model: a Hugging Face folder; gguf: the same weights in one file, or None; dtype: the precision class that is asked for;
    threads: processor threads; pool_bytes: memory for keys and values; parallel: most requests under way at a time
    """

    model: str
    dtype: str = "bfloat16"
    threads: int = 2
    pool_bytes: int = 2 << 30
    parallel: int = 128
    gguf: str | None = None


@dataclass(frozen=True, slots=True)
class PeerReady:
    """What really runs.  engine: name and version; precision: of weights and products; can: see the protocol; notes: for people."""

    engine: str
    precision: str
    can: frozenset[str]
    notes: tuple[str, ...] = ()

    @property
    def takes_requests(self) -> bool:
        """Not so a peer that has nothing but programs of its own."""
        return self.can != {"programs"}

    def cannot_write(self, *, free: bool, ignore_eos: bool) -> str | None:
        """Why it is not asked for text without constraint, or for text that goes on where an end token would stand; None where it is."""
        if free and "free" not in self.can:
            return "it writes constrained text only"
        return "it cannot pass over end tokens" if ignore_eos and "ignore_eos" not in self.can else None


@dataclass(frozen=True, slots=True)
class PeerAsk:
    """A generation.  ids: the prompt, control tokens included; the rest as in the protocol."""

    ids: tuple[int, ...]
    max_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    regex: str | None = None
    schema: str | None = None
    ignore_eos: bool = False

    def message(self) -> dict[str, Any]:
        """Without what is the default."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name)) != field.default}


@dataclass(frozen=True, slots=True)
class PeerAnswer:
    """ids: tokens generated, no end token among them; text: without the stop; finish: `stop`, `length` or `eos`;
    computed, cached: tokens of the prompt, None where the peer does not say."""

    ids: tuple[int, ...]
    text: str
    finish: str
    computed: int | None
    cached: int | None


@dataclass(frozen=True, slots=True)
class PeerScore:
    """Natural logarithms, one for each token from `start` on."""

    logprobs: tuple[float, ...]
    computed: int | None
    cached: int | None


@dataclass(frozen=True, slots=True)
class PeerProgramRun:
    """A program in the peer's own language, run for some rows.  texts: everything that was generated; lengths: tokens of each generation;
    prompt: tokens of all their prompts; computed, cached: of those, None where the peer does not say."""

    texts: tuple[str, ...]
    lengths: tuple[int, ...]
    prompt: int
    computed: int | None
    cached: int | None


@dataclass(frozen=True, slots=True)
class PeerStats:
    """Sums since it was opened; None where the peer does not say."""

    computed: int | None
    cached: int | None
    generated: int
    passes: int | None


def setting_message(setting: PeerSetting) -> dict[str, Any]:
    return {name: value for name, value in asdict(setting).items() if value is not None}
