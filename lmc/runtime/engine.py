"""The engine: requests in, tokens and scores out, one `step` at a time.

    engine = Engine(model, tokenizer, slots=4096)
    ticket = engine.submit(GenerateRequest(prompt=(…), max_tokens=20))
    while engine.busy:
        for event in engine.step(): …

A step extends some requests by some tokens in one forward pass; see `Scheduler` for which, and `Drafts` for the guesses among them:
each is checked by drawing at its place as if it was not there, and cut off where the draw is another token.  What fails, fails alone: a model's
exception fails the requests of its step, non-finite logits those that got them.  The engine belongs to one thread
(`lmc.runtime.engine_thread`) and knows no programs, contexts or templates.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate, count, pairwise

import numpy as np

from lmc.diagnostics import Diagnostic, RunError
from lmc.runtime.batch import Interrupted, Interruptible, Model, Row
from lmc.runtime.canonical import CanonicalTokens
from lmc.runtime.constraint import TokenIndex
from lmc.runtime.drafts import Drafts
from lmc.runtime.engine_failures import as_run_error, cancelled, check_room, check_tokens, model_failed, not_finite
from lmc.runtime.engine_stats import EngineStats
from lmc.runtime.generation import Generation
from lmc.runtime.hints import Hint, Keep, Pin, Prefill, Release
from lmc.runtime.live_contexts import LiveContexts, Prefilling
from lmc.runtime.model.sampling import best_of, draw_choice, sampling_fault
from lmc.runtime.prefills import Prefills
from lmc.runtime.request import (
    DoneEvent, Event, FailedEvent, Generated, GenerateRequest, Jump, PieceEvent, Scored, ScoreRequest, TextEvent, TokenLogprob,
)
from lmc.runtime.radix import RadixTree
from lmc.runtime.salt import plain, salted
from lmc.runtime.scheduler import Policy, Request, Scheduler
from lmc.runtime.scoring import Scoring
from lmc.runtime.time_shares import Stopwatch, Work
from lmc.runtime.token_sets import TokenSets, TokenTable

#: A token and its log-probability record, where one is wanted.
_Drawn = tuple[int, TokenLogprob | None]


class Engine:
    """`slots`: size of the pool in tokens; `max_batch_tokens`: most tokens computed in a step, so the longest time that a running
    generation waits; `cache=False` computes every request from its first token; `jump`: what is done with forced text, see `Jump`;
    `tree`: as of the scheduler; `fork_hints=False` computes nothing before the request that reads it; `narrow_head=False`
    computes the logits of all tokens, also where a mask allows few;
    `clock`: what its time shares are counted with."""

    def __init__(self, model: Model, tokenizer: TokenTable, *, slots: int, policy: str = "lpm", max_batch_tokens: int = 512,
                 cache: bool = True, jump: str = "exact", tree: RadixTree | None = None, fork_hints: bool = True,
                 narrow_head: bool = True,
                 clock: Callable[[], float] = time.perf_counter):
        model.allocate(slots)
        self._model = model
        self._sets = TokenSets(tokenizer, model.vocab_size)
        self._jump = Jump(jump)
        self._canonical = CanonicalTokens(tokenizer, self._sets)
        self._drafts = Drafts(self._sets, self._canonical)
        self._scheduler = Scheduler(slots, policy=Policy(policy), max_batch_tokens=max_batch_tokens, cache=cache, tree=tree)
        self._live = LiveContexts(self._scheduler.tree, slots)
        self._prefills = Prefills(self._scheduler.tree, self._live, slots)
        self._fork_hints = fork_hints
        self._narrow_head = narrow_head
        self._watch = self._scheduler.tree.watch = Stopwatch(clock)
        self._tickets = count(1)
        self._open: dict[int, Request] = {}
        self._events: list[Event] = []
        self._requests = self._steps = self._computed = self._prompt = self._cached = self._generated = 0

    @property
    def limit(self) -> int:
        """The most tokens that a request may have, generated ones included."""
        return min(self._model.max_positions, self._scheduler.pool.size)

    @property
    def index(self) -> TokenIndex:
        """The token index of the engine's tokenizer, for constraints."""
        return self._sets.index

    @property
    def busy(self) -> bool:
        """Whether a step has something to do or to tell."""
        return bool(self._open or self._events or self._prefills.ready)

    @property
    def stats(self) -> EngineStats:
        scheduler = self._scheduler
        return EngineStats(
            self._requests, self._steps, self._computed, self._prompt, self._cached, self._generated, scheduler.retractions,
            scheduler.pool.free_count, scheduler.tree.cached_count, scheduler.in_use, len(scheduler.running), len(scheduler.waiting),
            scheduler.tree.node_count, self._watch.shares)

    def reserve(self) -> int:
        """A new ticket.  Safe from any thread."""
        return next(self._tickets)

    def check(self, request: GenerateRequest | ScoreRequest) -> None:
        """Refuse what can never run.  Safe from any thread.

        Raises `RunError`: "context_length" or "pool" where the prompt does not fit, with the numbers; "value" for a wrong option."""
        generates = isinstance(request, GenerateRequest)
        ids = request.prompt if generates else request.ids
        assert ids and (generates or 1 <= request.start < len(ids)), "nothing to compute"
        assert 0 <= min(ids) and max(ids) < self._sets.width, f"no token has the id {min(ids)} or {max(ids)}"
        # A generation needs room for one token at least; the last token of a scoring is not computed, but counts as text.
        check_room(len(ids), 1 if generates else 0, self._model.max_positions, self._scheduler.pool.size)
        if generates:
            fault = sampling_fault(request.sampling, self._sets.width)
            if not all(request.stops):
                fault = "`stop` has an empty string, expected at least one character"
            if fault:
                raise RunError(Diagnostic("E0841", fault, None), kind="value")

    def submit(self, request: GenerateRequest | ScoreRequest, ticket: int | None = None) -> int:
        """Queue a request and return its ticket.  A generation that would not fit to its end is clipped (finish `LENGTH`).

        Raises as `check` does; `ticket`: one that `reserve` gave."""
        self.check(request)
        ticket = self.reserve() if ticket is None else ticket
        self._requests += 1
        before = self._watch.turn_to(Work.REST)
        try:
            self._open[ticket] = entry = self._enter(ticket, request)
        except Exception as error:
            self._events.append(FailedEvent(ticket, as_run_error(error)))
        else:
            self._queue(entry)
        self._watch.turn_to(before)
        return ticket

    def cancel(self, ticket: int) -> None:
        """Give up a request; its slots are released at once, its `FailedEvent` comes with the next step.  Of a request that is over
        or unknown nothing happens."""
        request = self._open.get(ticket)
        if request is not None:
            self._fail(request, cancelled(), request.computed)

    def interrupt(self) -> None:
        """End the forward pass in progress where the model can, from any thread: what was in it is cancelled."""
        if isinstance(self._model, Interruptible):
            self._model.interrupt()

    def hint(self, hint: Hint) -> None:
        """Take over what a program tells of its contexts; see `lmc.runtime.hints`.  A prefill ends with a `DoneEvent` of its handle,
        or with none where its readers compute it."""
        if not self._scheduler.cache:
            return
        match hint:
            case Prefill(handle, ids) if self._fork_hints:
                # One that is too long is left to its readers, which are told so.
                if ids and len(ids) <= self.limit and handle not in self._open:
                    self._prefills.ask(handle, ids)
            case Prefill(handle, ids):
                self._live.keep(handle, ids, None)
            case Keep(handle, ids, next_use):
                self._prefills.computed(ids)
                self._live.keep(handle, ids, next_use)
            case Release(handle):
                self.cancel(handle)
                self._prefills.drop(handle)
                self._live.release(handle)
            case Pin(ids):
                self._live.pin(ids)

    def step(self) -> list[Event]:
        """Extend the requests by one forward pass.  Returns what happened since the last step."""
        self._watch.turn_to(Work.SCHEDULER)
        self._begin_prefills()
        batch = self._scheduler.plan()
        self._watch.turn_to(Work.REST)
        outputs = self._forward(batch)
        for request, (logits, best), first in zip(batch, outputs, self._first_draws(batch, outputs)):
            self._commit(request, logits, best, first)
        events, self._events = self._events, []
        self._watch.turn_to(Work.IDLE)
        return events

    def _queue(self, entry: Request) -> None:
        before = self._watch.turn_to(Work.SCHEDULER)
        self._scheduler.submit(entry)
        self._watch.turn_to(before)
        if isinstance(entry.work, Generation) and entry.work.finish is not None:
            self._show(entry)
            self._finish(entry)

    def _enter(self, ticket: int, request: GenerateRequest | ScoreRequest) -> Request:
        if isinstance(request, ScoreRequest):
            entry = Request(ticket, salted(request.ids[:-1], request.tenant), request.start - 1, Scoring(request))
        else:
            ids = salted(request.prompt, request.tenant)
            entry = Request(ticket, ids, len(ids) - 1, self._generation(request), self._most(request))
            self._look_ahead(entry)
        entry.priority = request.priority
        return entry

    def _most(self, request: GenerateRequest) -> int:
        """The tokens that a generation may come to have; of one that only memory or the model's context bounds, a guess."""
        prompt, room = len(request.prompt), self.limit - len(request.prompt)
        return prompt + (request.max_tokens if request.max_tokens <= room else room // 4)

    def _generation(self, request: GenerateRequest) -> Generation:
        check_tokens(request, min(request.max_tokens, self.limit - len(request.prompt)))
        return Generation(request, self._sets, self.limit)

    def _begin_prefills(self) -> None:
        """Compute ahead what programs want computed, where nobody waits."""
        if not self._scheduler.waiting:
            for handle, ids in self._prefills.due(self._scheduler.max_batch_tokens):
                self._open[handle] = entry = Request(handle, list(ids), len(ids) - 1, Prefilling(ids))
                self._scheduler.submit(entry)

    def _forward(self, batch: list[Request]) -> list[tuple[np.ndarray, list[int]]]:
        """For each request of the batch the logits it wants, (outputs, vocab) float32, and where the greatest of each is; nothing where
        the model failed."""
        if not batch:
            return []
        self._watch.turn_to(Work.MASKS)
        rows = [_row(request, narrow=self._narrow_head) for request in batch]
        self._watch.turn_to(Work.MODEL)
        try:
            table = self._model.forward(rows).numpy()
        except Interrupted:
            self._abandon(batch, cancelled())
            return []
        except Exception as error:
            self._abandon(batch, model_failed(error))
            return []
        finally:
            self._watch.turn_to(Work.REST)
        self._steps += 1
        self._computed += sum(len(row.tokens) for row in rows)
        self._watch.turn_to(Work.SAMPLING)
        best = best_of(table)
        self._watch.turn_to(Work.REST)
        ends = accumulate(len(row.outputs) for row in rows)
        return [(table[start:end], best[start:end]) for start, end in pairwise([0, *ends])]

    def _first_draws(self, batch: list[Request], outputs: list[tuple[np.ndarray, list[int]]]) -> list[_Drawn | Exception | None]:
        """The next token of each request that has one, or what its draw raised.  All in a row: to read the clock before and behind each
        takes as long as a greedy draw."""
        self._watch.turn_to(Work.SAMPLING)
        found: list[_Drawn | Exception | None] = []
        for request, (logits, best) in zip(batch, outputs):
            try:
                found.append(self._draw(request.work, logits[0], best[0]) if best and isinstance(request.work, Generation) else None)
            except Exception as error:
                found.append(error)
        self._watch.turn_to(Work.REST)
        return found

    def _draw(self, work: Generation, row: np.ndarray, best: int) -> _Drawn:
        """The next token, while the watch counts for sampling.  row: (vocab,) float32, `best` the place of its greatest"""
        if work.request.constraint is None:
            return draw_choice(row, best, work.choice())
        before = self._watch.turn_to(Work.MASKS)
        try:
            choice = work.choice()
        finally:
            self._watch.turn_to(before)
        return draw_choice(row, best, choice)

    def _commit(self, request: Request, logits: np.ndarray, best: list[int], first: _Drawn | Exception | None) -> None:
        """Take over what a request got in this step: its next token, which is drawn, and logits to draw further ones from; logits to score
        (outputs, vocab); or only keys and values."""
        before = request.computed
        self._cached += request.cached if request.passes == 0 else 0
        self._scheduler.commit(request)
        if before < request.prompt:
            self._prompt += min(request.computed, request.prompt) - before
        try:
            if isinstance(first, Exception):
                raise first
            if first is not None:
                self._extend(request, logits, best, first)
            elif best:
                self._score(request, logits)
        except Exception as error:
            self._watch.turn_to(Work.REST)
            # What it computed in this step may be as broken as its logits.
            self._fail(request, self._in_this_step(as_run_error(error)), before)

    def _extend(self, request: Request, logits: np.ndarray, best: list[int], first: _Drawn) -> None:
        """Go on by the token that is drawn, and by further ones as long as the draft guessed them.  logits: (1 + drafted, vocab), `best` of
        each row"""
        work, guesses = request.work, request.draft[: request.drafted]
        work.drafted += len(guesses)
        token, record = first
        over = self._accept(request, token, record)
        for row, top, guess in zip(logits[1:], best[1:], guesses, strict=True):
            if over or token != guess:
                break
            work.jumped += 1
            self._watch.turn_to(Work.SAMPLING)
            token, record = self._draw(work, row, top)
            self._watch.turn_to(Work.REST)
            over = self._accept(request, token, record)
        if guesses:
            self._scheduler.cut(request, len(request.ids) - 1)
        if work.request.constraint is not None:
            self._look_ahead(request)
        self._show(request)
        if work.finish is not None:
            self._finish(request)

    def _accept(self, request: Request, token: int, record: TokenLogprob | None = None) -> bool:
        """Go on by a token; whether the generation is over."""
        work, before = request.work, len(request.work.ids)
        if work.request.constraint is not None and self._jump is Jump.EXACT:
            self._drafts.note(work, token)
        over = work.accept(token, record)
        self._generated += len(work.ids) - before
        request.ids.append(token)
        request.wanted = len(request.ids) - 1
        return over

    def _look_ahead(self, request: Request) -> None:
        """Accept what needs no logits, and guess what comes then."""
        work, before = request.work, self._watch.turn_to(Work.MASKS)
        while self._jump is not Jump.OFF and work.finish is None:
            known = self._known(work)
            for token in known:
                work.jumped += 1
                if self._accept(request, token):
                    break
            if not known:
                break
        if self._jump is Jump.EXACT:
            request.draft = self._drafts.propose(work, len(self._scheduler.running) or len(self._open) + 1)
        self._watch.turn_to(before)

    def _known(self, work: Generation) -> tuple[int, ...]:
        """Tokens that come next whatever the logits are."""
        constraint = work.request.constraint
        if constraint is None or work.request.logprobs:
            return ()  # each token's log-probability is wanted
        if self._jump is Jump.CANONICAL:
            return self._canonical.certain(constraint, work.place)
        token = work.only_token()
        return () if token is None else (token,)

    def _show(self, request: Request) -> None:
        if request.work.request.stream and (text := request.work.take_text()):
            self._events.append(TextEvent(request.ticket, text))

    def _score(self, request: Request, logits: np.ndarray) -> None:
        if not request.work.take(logits):
            raise not_finite()
        if request.work.finished:
            self._finish(request)
        else:
            request.wanted = request.work.wanted

    def _finish(self, request: Request) -> None:
        """Hand over what a request gave.  Of several pieces the next may be over before its first token, too."""
        while self._hand_over(request) and request.work.finish is not None:
            pass

    def _hand_over(self, request: Request) -> bool:
        """Tell what is over; whether the request goes on with another piece."""
        work = request.work
        prompt = len(work.request.prompt) if isinstance(work, Generation) else len(work.request.ids) - 1
        cached = min(request.cached or 0, prompt)  # what was generated without a pass may have been cached too
        computed = prompt - cached if request.passes else 0
        result, keep = work.result(cached, computed, request.passes), prompt + work.kept if isinstance(work, Generation) else prompt
        try:
            following = self._following(work, result)
        except Exception as error:
            self._events.append(PieceEvent(request.ticket, result))
            self._fail(request, as_run_error(error), keep)
            return False
        if following is None:
            self._events.append(DoneEvent(request.ticket, result))
            self._release(request, keep)
            return False
        self._events.append(PieceEvent(request.ticket, result))
        self._go_on(request, following, keep)
        return True

    def _following(self, work: Generation | Scoring, result: Generated | Scored) -> Generation | None:
        """The next piece; None where there is none.  Raises what a request of its own would have been refused with."""
        if not isinstance(work, Generation) or work.request.then is None:
            return None
        request = work.request.then(result)
        if request is None:
            return None
        request = replace(request, tenant=work.request.tenant)
        self.check(request)
        return self._generation(request)

    def _go_on(self, request: Request, work: Generation, keep: int) -> None:
        """Continue with a piece whose prompt begins with the first `keep` tokens of what is there."""
        prompt = salted(work.request.prompt, work.request.tenant)
        assert prompt[:keep] == request.ids[:keep], "a piece that does not go on from the one before it"
        request.work = work
        self._scheduler.go_on(request, prompt, keep)
        request.most = self._most(work.request)
        self._look_ahead(request)
        self._show(request)

    def _fail(self, request: Request, error: RunError, keep: int) -> None:
        self._events.append(FailedEvent(request.ticket, error))
        self._release(request, keep)

    def _release(self, request: Request, keep: int) -> None:
        del self._open[request.ticket]
        before = self._watch.turn_to(Work.SCHEDULER)
        self._scheduler.release(request, keep)
        self._watch.turn_to(before)
        if isinstance(request.work, Prefilling) and request.work.finished:
            self._live.keep(request.ticket, tuple(request.ids), None)

    def _abandon(self, batch: list[Request], error: RunError) -> None:
        for request in batch:
            del self._open[request.ticket]
            self._events.append(FailedEvent(request.ticket, error))
        self._scheduler.abandon(batch)

    def _in_this_step(self, error: RunError) -> RunError:
        diagnostics = [replace(d, notes=(*d.notes, f"in step {self._steps} of the engine")) for d in error.diagnostics]
        return RunError(diagnostics, error.sources, kind=error.kind, raw=error.raw)


def _row(request: Request, *, narrow: bool) -> Row:
    start, end = request.computed, request.scheduled
    outputs = list(range(max(request.wanted, start) - start, end - start))
    guesses = request.draft[: request.drafted]
    asks = narrow and outputs and isinstance(request.work, Generation) and request.work.request.constraint is not None
    few = request.work.few(guesses) if asks else ()
    tokens = (request.ids[start:] + guesses)[: end - start]
    return Row(tokens if start else plain(tokens), start, request.slots, outputs, few)
