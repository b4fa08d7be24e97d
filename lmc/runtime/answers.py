"""What the machine asks of a model: a running engine, or something that stands for one.

    Session             a model at work
    RecordingSession    the same, and what was asked and answered is kept        cassette_sessions.py
    ReplayingSession    answers from what was kept                               cassette_sessions.py
    RemoteSession       a model behind a server                                  remote/session.py
    ShownRequests       takes requests, to show them, and never answers          render.py

Whatever answers, contexts are made by a `Prompter` over its tokenizer, so that the machine does not see the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from lmc.regex.dfa import ByteDfa
    from lmc.regex.grammar import Grammar
    from lmc.runtime.context import Prompter
    from lmc.runtime.hints import Hint
    from lmc.runtime.remote.capabilities import Capabilities
    from lmc.runtime.request import Generated, GenerateRequest, Scored, ScoreRequest, Usage


class Answers(Protocol):
    """name: the model, for messages; limit: the longest prompt with its answer, in tokens; begin_id: what log-probabilities are
    conditioned on where nothing comes before; remote: what the server can do, where the model is behind one: then the tokens of
    prompts are not the model's, and are not counted."""

    name: str
    tokenizer: Any
    has_template: bool
    prompter: Prompter
    limit: int
    remote: Capabilities | None

    @property
    def begin_id(self) -> int: ...

    def constraint(self, dfa: ByteDfa | Grammar) -> Any:
        """What `GenerateRequest.constraint` is for this automaton.  Raises `LmcError` where the model cannot keep it."""

    async def generate(self, request: GenerateRequest, on_text: Callable[[str], None] | None = None,
                       on_piece: Callable[[Generated], None] | None = None) -> Generated:
        """What the last piece gives; `on_piece` gets what those before it gave, each before the next one's text."""

    async def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]: ...

    def reserve(self) -> int:
        """A handle for a hint."""

    def hint(self, hint: Hint, on_usage: Callable[[Usage], None] | None = None) -> None:
        """What the program tells of its contexts; may be passed over.  `on_usage` gets what a prefill has computed."""
