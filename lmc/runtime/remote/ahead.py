"""Pieces of one turn from one answer: speculative execution over the network.

    pieces   name (stop "\\n"), then "\\nhome: " and home (stop "\\n"), …        one request of several pieces (`then`)
    answer   "Ada\\nhome: London\\nborn"                                       asked without a stop
    given    "Ada" and "London" for one request

What compares is `lmc.runtime.speculation`; this file knows when an answer may be asked for that goes on, what is left of it, and what
of it was thrown away.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from lmc.runtime.attempts import Attempt
from lmc.runtime.request import Generated, GenerateRequest, Usage
from lmc.runtime.speculation import Ahead, Completion, Slot

_Told = Callable[[Attempt], None] | None
_Generate = Callable[[GenerateRequest, Callable[[str], None] | None, _Told], Awaitable[Generated]]


class Saved:
    """What a model wrote past a stop, and is not taken yet.  `budget`: tokens that may be asked for so, in one call; 0 for never."""

    __slots__ = ("budget", "generate", "ahead", "_answered", "_told", "_length")

    def __init__(self, budget: int, generate: _Generate):
        self.budget, self.generate = budget, generate
        self.ahead: Ahead | None = None
        self._answered: Attempt | None = None
        self._told: _Told = None
        self._length = 0

    async def piece(self, request: GenerateRequest, on_text: Callable[[str], None] | None) -> Generated:
        """What the piece gives: out of what is there, or asked for."""
        slot = Slot("", request.stops, request.max_tokens)
        value = self.ahead.value(slot) if self.ahead is not None and _plain(request) else None
        if value is not None:
            return self._take(value, Usage())
        self.tell()
        if not self._may_go_on(request):
            return await self.generate(request, on_text, request.told)
        self._told = request.told
        whole = await self.generate(replace(request, stops=()), None, self._hold)
        self.ahead = Ahead(whole.text, whole.finish)
        self._length = len(whole.text)
        return self._take(self.ahead.own_value(slot), whole.usage)

    def go_on(self, text: str) -> None:
        """The template's text follows; what was written otherwise is of no use."""
        if self.ahead is not None:
            self._leave(self.ahead.behind(text))

    def tell(self) -> None:
        """The answer is done with: tell of it, and of what was thrown away."""
        answered, self._answered = self._answered, None
        if answered is not None and self._told is not None:
            left = len(self.ahead.text) if self.ahead is not None else 0
            if answered.generated is not None and self._length:
                answered = replace(answered, wasted=round(answered.generated * left / self._length))
            self._told(answered)
        self.ahead = None

    def _take(self, value: Completion, usage: Usage) -> Generated:
        if self.ahead is not None:
            self._leave(self.ahead.behind(value.text))
        return Generated(tuple(value.text.encode()), value.text, "", value.finish, None, True, usage)

    def _leave(self, rest: Ahead | None) -> None:
        if rest is None:
            self.tell()
        self.ahead = rest

    def _may_go_on(self, request: GenerateRequest) -> bool:
        # Behind the last piece nothing can be won, and without a stop all that comes is the value.
        return request.then is not None and bool(request.stops) and request.max_tokens <= self.budget and _plain(request)

    def _hold(self, attempt: Attempt) -> None:
        """Of the attempt that was answered, what it wasted is not known yet."""
        if attempt.outcome == "answered":
            self._answered = attempt
        elif self._told is not None:
            self._told(attempt)


def _plain(request: GenerateRequest) -> bool:
    """Whether the value is what the model writes there on its own, and nothing but its text is wanted."""
    return (request.constraint is None and request.sampling.temperature == 0 and not request.min_tokens and not request.ignore_eos
            and not request.logprobs and not request.stream)
