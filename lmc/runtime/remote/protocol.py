"""What is asked of a server and what it answers, whatever its interface looks like.

    Ask(Conversation(…), max_tokens=20)  ->  Protocol.request  ->  path, JSON body
    events of the stream                 ->  Protocol.add      ->  Answer

A protocol is one small file that knows the names in the JSON, and neither network nor programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from lmc.runtime.remote.conversation import Conversation
from lmc.runtime.remote.wanted import Wanted
from lmc.runtime.request import Sampling


@dataclass(frozen=True, slots=True)
class Ask:
    """One generation.

    wanted: None where its text is free, or the server cannot be told; by_grammar: tell it in llama.cpp's language, not as a schema
    """

    model: str
    conversation: Conversation
    max_tokens: int
    stops: tuple[str, ...] = ()
    sampling: Sampling = Sampling()
    min_tokens: int = 0
    ignore_eos: bool = False
    logprobs: int = 0
    wanted: Wanted | None = None
    by_grammar: bool = False


@dataclass(frozen=True, slots=True)
class Token:
    """A token as the server spells it, its natural log-probability, and the best alternatives, best first."""

    text: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Counted:
    """Tokens of a request as the server counts them; `cached` of `prompt` needed no computing."""

    prompt: int
    generated: int
    cached: int = 0


@dataclass(slots=True)
class Answer:
    """What has come so far.

    finish: the server's own word for why it ended, None while it goes on
    stop: the stop text that ended it, where the server says so
    counted: None where the server does not count; scored: of a scoring, the tokens of the prompt
    """

    text: str = ""
    finish: str | None = None
    stop: str | None = None
    counted: Counted | None = None
    tokens: list[Token] = field(default_factory=list)
    scored: list[Token] = field(default_factory=list)


class Interface(Protocol):
    """The JSON of one kind of server."""

    def request(self, ask: Ask) -> tuple[str, dict[str, Any]]:
        """The path, under the base address, and the body of a streaming request."""

    def wraps(self, ask: Ask) -> bool:
        """Whether the answer is an object that holds the value."""

    def add(self, answer: Answer, event: Mapping[str, Any]) -> None:
        """Take an event of the stream.  Raises `KeyError`, `TypeError`, `ValueError` or `IndexError` where it has another form."""

    def score_request(self, ask: Ask) -> tuple[str, dict[str, Any]]:
        """The same for the log-probabilities of the prompt's tokens."""
