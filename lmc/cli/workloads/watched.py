"""A session that keeps what was asked and passes it on, so that runs of two engines can be held against one another.

    watched = WatchedSession(session)         Machine(program, watched, externs) runs as always
    watched.events                            [Asked(…), Asked(…), Written(…), …] in the order in which it happened

Texts that nothing constrains may be cut shorter than the program says, for all engines alike.  What is kept is token ids.  It costs some microseconds a call, and is the same for all engines.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lmc.runtime.request import Finish

if TYPE_CHECKING:
    from lmc.runtime.answers import Answers
    from lmc.runtime.hints import Hint
    from lmc.runtime.request import Generated, GenerateRequest, Scored, ScoreRequest, Usage


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt.  least: how many of its tokens are computed whatever is cached, because what comes after them is wanted."""

    ids: array[int]
    least: int


@dataclass(frozen=True, slots=True)
class Written:
    """A generation is over: its prompt, and of what was generated the tokens that went through the model."""

    ids: array[int]


class WatchedSession:
    """Around `session`, whatever answers.  most_tokens: of a text that nothing constrains; None: as each request says."""

    def __init__(self, session: Answers, most_tokens: int | None = None):
        self._session, self._most = session, most_tokens
        self.name, self.tokenizer, self.prompter = session.name, session.tokenizer, session.prompter
        self.has_template, self.limit, self.remote = session.has_template, session.limit, session.remote
        #: Pieces of one request are noted in the engine's thread, all else in the event loop's: appending is safe from both.
        self.events: list[Asked | Written] = []

    @property
    def begin_id(self) -> int:
        return self._session.begin_id

    def constraint(self, dfa: Any) -> Any:
        return self._session.constraint(dfa)

    async def generate(self, request: GenerateRequest, on_text: Callable[[str], None] | None = None,
                       on_piece: Callable[[Generated], None] | None = None) -> Generated:
        self._asked(request.prompt, 1)
        last = [request]
        generated = await self._session.generate(self._noting(request, last), on_text, on_piece)
        self._written(last[0], generated)
        return generated

    async def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        for request in requests:
            # Nothing is asked of what comes after the last token.
            self._asked(request.ids[:-1], len(request.ids) - request.start)
        return await self._session.score(requests)

    def reserve(self) -> int:
        return self._session.reserve()

    def hint(self, hint: Hint, on_usage: Callable[[Usage], None] | None = None) -> None:
        self._session.hint(hint, on_usage)

    def _noting(self, request: GenerateRequest, last: list[GenerateRequest]) -> GenerateRequest:
        """The request as it is passed on, whose further pieces are noted as they are made; `last` holds the newest of them."""
        if self._most is not None and request.constraint is None and request.max_tokens > self._most:
            request = replace(request, max_tokens=self._most)
        following = request.then
        if following is None:
            return request

        def then(generated: Generated) -> GenerateRequest | None:
            made = following(generated)
            if made is None:
                return None
            self._written(request, generated)
            self._asked(made.prompt, 1)
            last[0] = made
            return self._noting(made, last)

        return replace(request, then=then)

    def _asked(self, ids: Iterable[int], least: int) -> None:
        self.events.append(Asked(array("I", ids), least))

    def _written(self, request: GenerateRequest, generated: Generated) -> None:
        # The last token of a text that was cut at its limit was drawn, and never read.
        ids = generated.ids
        read = generated.finish is Finish.EOS or generated.usage.generated > len(ids)
        self.events.append(Written(array("I", request.prompt + (ids if read else ids[:-1]))))
