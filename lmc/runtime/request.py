"""What the machine asks of the engine, and what it gets back.

A request is a list of token ids and what to do after them; the engine knows no programs, contexts or templates.  Events come back
in the order they happened, collected per step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from lmc.diagnostics import RunError, Span
from lmc.types import Type

if TYPE_CHECKING:
    from lmc.runtime.attempts import Attempt
    from lmc.runtime.grammar import Constraint


@dataclass(frozen=True, slots=True)
class Origin:
    """Who asks: for people and for cassettes; the engine does not read it.

    kind: `gen`, `select` or `score`; function: the name of the function that asks; path: the calls, rounds and branches that led there,
    with the site of a `gen` at its end; type: of the value that is wanted
    """

    kind: str
    function: str
    path: str
    span: Span | None
    type: Type


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a token is drawn.  `temperature == 0` is argmax (lowest id on a tie); `top_k == 0` and `top_p == 1` switch off.

    `seed` (unsigned 64-bit) and the index of the drawn token key the random number, so that neighbours in the batch do not matter.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int = 0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """Extend `prompt` by generated tokens.

    prompt: token ids, control tokens included, at least one
    heal: bytes that were reopened at the end of the prompt; the first tokens must spell them; they belong neither to the value nor
        to `max_tokens`
    constraint: what the value must match, or None
    follow: first byte of the text that comes next in the turn (or empty): ends a constrained value in an accepting state
    stops: the match that completes first, in characters, ends the value and is not part of it
    max_tokens, min_tokens: bounds on generated tokens, those that only spell `heal` not counted
    logprobs: number of alternatives to record per token; 0 records nothing
    stream: whether `TextEvent`s are wanted
    priority: how many tokens the longest chain of generation has that begins with this one: of requests that come at the same time and
        share no prefix, the higher goes first
    then: where this is a piece of a longer text: the next piece, by what this one gave, or None where there is nothing to go on from.
        Its prompt begins with this one's and the tokens that this one kept.  Called in the engine's thread, so it touches nothing that
        changes; what it raises fails the request.
    told: where the model is asked over the network, gets every attempt
    tenant: whose prefixes may be found in the cache, and who may find these; 0 is everybody's
    """

    prompt: tuple[int, ...]
    max_tokens: int
    heal: bytes = b""
    constraint: Constraint | None = None
    follow: bytes = b""
    stops: tuple[str, ...] = ()
    min_tokens: int = 0
    ignore_eos: bool = False
    sampling: Sampling = Sampling()
    logprobs: int = 0
    stream: bool = False
    origin: Origin | None = field(default=None, compare=False)
    then: Callable[[Generated], GenerateRequest | None] | None = field(default=None, compare=False)
    priority: int = field(default=0, compare=False)
    told: Callable[[Attempt], None] | None = field(default=None, compare=False)
    tenant: int = 0


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """Log-probabilities of `ids[start:]`, each given all ids before it; `1 <= start < len(ids)`.  `priority`, `told` and
    `tenant` as of a generation."""

    ids: tuple[int, ...]
    start: int
    origin: Origin | None = field(default=None, compare=False)
    priority: int = field(default=0, compare=False)
    told: Callable[[Attempt], None] | None = field(default=None, compare=False)
    tenant: int = 0


class Jump(Enum):
    """What is done with forced text: drafted and checked (`EXACT`), written unchecked in canonical tokens (`CANONICAL`), nothing
    (`OFF`)."""

    EXACT = "exact"
    CANONICAL = "canonical"
    OFF = "off"


class Finish(Enum):
    """Why a generation ended: `EOS` (end token, or a constrained value ended by what follows), `STOP` (a stop string), `COMPLETE`
    (the constraint allows nothing more), `LENGTH` (`max_tokens` or the model's context)."""

    EOS = "eos"
    STOP = "stop"
    COMPLETE = "complete"
    LENGTH = "length"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request.  `cached` + `computed` = prompt tokens; `generated` counts accepted tokens; `passes`: forward passes
    in which the request had tokens; `drafted`: tokens that were computed to be checked; `jumped`: generated tokens that needed no
    pass of their own, because a draft was right or nothing else was legal."""

    cached: int = 0
    computed: int = 0
    generated: int = 0
    passes: int = 0
    drafted: int = 0
    jumped: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.cached + other.cached, self.computed + other.computed, self.generated + other.generated,
                     self.passes + other.passes, self.drafted + other.drafted, self.jumped + other.jumped)


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """The chosen token's natural log-probability before masks and penalties, and the best alternatives, best first."""

    id: int
    logprob: float
    top: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Generated:
    """What a generation gave.

    ids: tokens to append to the prompt (those that spell `heal` included)
    text: the value: all characters after `heal`, before the stop
    carry: text that belongs to the context but to no whole token (a cut token's kept bytes): it opens the next segment
    valid: whether the constraint accepts `text` (True where there is none)
    """

    ids: tuple[int, ...]
    text: str
    carry: str
    finish: Finish
    stop: str | None
    valid: bool
    usage: Usage
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class Scored:
    """`logprobs[i]` belongs to `ids[start + i]`; natural logarithms."""

    logprobs: tuple[float, ...]
    usage: Usage


@dataclass(frozen=True, slots=True)
class TextEvent:
    """More text of a streaming generation; only what can no longer change (no part of a stop string or character)."""

    ticket: int
    text: str


@dataclass(frozen=True, slots=True)
class PieceEvent:
    """A piece of a request is there, and the next one has begun; what the last one gave comes with the `DoneEvent`."""

    ticket: int
    result: Generated


@dataclass(frozen=True, slots=True)
class DoneEvent:
    ticket: int
    result: Generated | Scored


@dataclass(frozen=True, slots=True)
class FailedEvent:
    """The request could not run or was cancelled; `error` has no location yet."""

    ticket: int
    error: RunError


Event = TextEvent | PieceEvent | DoneEvent | FailedEvent
