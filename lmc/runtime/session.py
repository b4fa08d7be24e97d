"""A model at work, shared by all programs and calls that use it: engine thread, tokenizer, template, and who waits for what.

    session = Session(model, tokenizer, template, slots=4096)
    generated = await session.generate(request, on_text=print)
    session.close()

Requests may be made from one event loop only; the engine's events come back to it once per step.  A waiter that is cancelled
gives its request up in the engine.  This file does not know programs; `open_session.py` knows where models come from.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmc.regex.dfa import ByteDfa
from lmc.regex.grammar import Grammar
from lmc.runtime.ablation import Part
from lmc.runtime.constraint_cache import ConstraintCache, new_constraint
from lmc.runtime.context import Prompter
from lmc.runtime.engine import Engine
from lmc.runtime.engine_thread import EngineThread
from lmc.runtime.flat_table import FlatTable
from lmc.runtime.grammar import Constraint
from lmc.runtime.mask_store import MaskStore
from lmc.runtime.hints import Hint, Prefill, Release
from lmc.runtime.pulse import Pulse
from lmc.runtime.request import (
    DoneEvent, Event, FailedEvent, Generated, GenerateRequest, PieceEvent, Scored, ScoreRequest, TextEvent, Usage,
)

if TYPE_CHECKING:
    from lmc.runtime.batch import Model
    from lmc.runtime.engine_stats import EngineStats
    from lmc.runtime.template import ChatTemplate
    from lmc.runtime.tokenizer import Tokenizer


@dataclass(slots=True)
class _Waiter:
    future: asyncio.Future
    on_text: Callable[[str], None] | None = None
    on_piece: Callable[[Generated], None] | None = None


class Session:
    """`slots`: size of the key-value pool in tokens.  `name`: the model, for messages.  `jump`: as the engine's.  `masks`: the folder
    where masks of constraints are kept from run to run.  `policy`: the order of admission; `without`: what to leave out, see
    `lmc.runtime.ablation`; `clock`: as the engine's."""

    def __init__(self, model: Model, tokenizer: Tokenizer, template: ChatTemplate | None, *, slots: int, name: str = "the model",
                 cache: bool = True, jump: str = "exact", masks: Path | None = None, policy: str = "lpm", without: Collection[str] = (),
                 clock: Callable[[], float] = time.perf_counter):
        self.name = name
        self.tokenizer = tokenizer
        self.template = template
        self.has_template = template is not None
        self.remote = None
        self.prompter = Prompter(tokenizer, template)
        engine = Engine(model, tokenizer, slots=slots, cache=cache and Part.CACHE.value not in without, jump=jump, policy=policy,
                        tree=FlatTable() if Part.TREE.value in without else None, fork_hints=Part.FORK_HINTS.value not in without,
                        narrow_head=Part.NARROW_HEAD.value not in without, clock=clock)
        self.limit = engine.limit
        self._index = engine.index
        self._store = MaskStore(masks, engine.index) if masks is not None else None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiters: dict[int, _Waiter] = {}
        self._new_constraint = partial(new_constraint, tokenizer, self._index, self._store)
        self._constraints = ConstraintCache(self._new_constraint)
        self._engine = EngineThread(engine, self._deliver)

    @property
    def begin_id(self) -> int:
        """What log-probabilities are conditioned on where nothing comes before: the begin token, else an end token."""
        begin = self.tokenizer.begin_id
        return begin if begin is not None else min(self.tokenizer.end_ids)

    @property
    def stats(self) -> EngineStats:
        return self._engine.stats

    @property
    def pulse(self) -> Pulse:
        """How the steps of its engine go."""
        return self._engine.pulse

    @property
    def ended(self) -> bool:
        """Whether it answers nothing any more: it was closed, or a fault has ended its engine."""
        return self._engine.ended

    def constraint(self, dfa: ByteDfa | Grammar) -> Constraint:
        """The automaton over this model's tokens; equal automata of several programs have one.

        Raises `LmcError` where the tokens cannot spell what it accepts.
        """
        return self._constraints.get(dfa)

    def new_constraint(self, dfa: ByteDfa | Grammar) -> Constraint:
        """The same, made anew and kept by nobody but the caller.  Safe from any thread."""
        return self._new_constraint(dfa)

    async def generate(self, request: GenerateRequest, on_text: Callable[[str], None] | None = None,
                       on_piece: Callable[[Generated], None] | None = None) -> Generated:
        """Run a generation; of one with several pieces the result is that of the last one.

        on_text: gets its text as it comes, where the request streams; on_piece: what each piece but the last one gave
        Raises `RunError` without a place, and what `on_text` or `on_piece` raises.
        """
        return await self._result(self._submit(request, on_text, on_piece))

    async def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        """Run scorings side by side.  Raises as `generate` does."""
        tickets = []
        try:
            for request in requests:
                tickets.append(self._submit(request))
            return [await self._result(ticket) for ticket in tickets]
        finally:
            # On a failure or a cancel the rest is given up; of those that are over nothing is left here.
            for ticket in tickets:
                if ticket in self._waiters:
                    future = self._waiters.pop(ticket).future
                    if future.done():
                        future.exception()  # asyncio complains of failures that nobody has looked at
                    self._engine.cancel(ticket)

    def reserve(self) -> int:
        """A handle for a hint."""
        return self._engine.reserve()

    def hint(self, hint: Hint, on_usage: Callable[[Usage], None] | None = None) -> None:
        """Tell the engine about contexts.  A release may come from any thread."""
        if isinstance(hint, Prefill) and on_usage is not None:
            waiter = self._waiters[hint.handle] = _Waiter(self._own_loop().create_future(), None, None)
            waiter.future.add_done_callback(lambda done: on_usage(done.result().usage) if done.exception() is None else None)
        elif isinstance(hint, Release):
            self._waiters.pop(hint.handle, None)
        self._engine.hint(hint)

    async def disconnect(self) -> None:
        """Nothing of it belongs to the event loop."""

    def close(self) -> None:
        """End the engine thread; what still waits fails with kind `cancelled`."""
        self._engine.close()
        self._constraints.save()

    def _submit(self, request: GenerateRequest | ScoreRequest, on_text: Callable[[str], None] | None = None,
                on_piece: Callable[[Generated], None] | None = None) -> int:
        loop = self._own_loop()
        ticket = self._engine.submit(request)
        self._waiters[ticket] = _Waiter(loop.create_future(), on_text, on_piece)
        return ticket

    def _own_loop(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        assert self._loop in (None, loop), "a session belongs to one event loop"
        self._loop = loop
        return loop

    async def _result(self, ticket: int) -> Generated | Scored:
        try:
            return await self._waiters[ticket].future
        except asyncio.CancelledError:
            self._engine.cancel(ticket)
            raise
        finally:
            del self._waiters[ticket]

    def _deliver(self, events: list[Event]) -> None:
        """Called in the engine's thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._take, events)

    def _take(self, events: list[Event]) -> None:
        for event in events:
            waiter = self._waiters.get(event.ticket)
            if waiter is None or waiter.future.done():
                continue
            match event:
                case TextEvent(text=text):
                    self._tell(event.ticket, waiter, waiter.on_text, text)
                case PieceEvent(result=result):
                    self._tell(event.ticket, waiter, waiter.on_piece, result)
                case DoneEvent(result=result):
                    waiter.future.set_result(result)
                case FailedEvent(error=error):
                    waiter.future.set_exception(error)

    def _tell(self, ticket: int, waiter: _Waiter, listener: Callable[[Any], None] | None, news: Any) -> None:
        if listener is None:
            return
        try:
            listener(news)
        except Exception as error:
            # Nobody needs the rest: whoever reads the text is gone (a closed pipe), or a piece has made an end of it.
            waiter.future.set_exception(error)
            self._engine.cancel(ticket)
