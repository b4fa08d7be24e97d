"""A session that keeps what it is asked and answers, and one that answers from what was kept.

    session = RecordingSession(session, cassette)      Machine(program, session, …) runs as always, and `cassette` fills
    session = ReplayingSession(cassette)               no model, no files

Both are `Answers` for the machine.  The replaying one makes prompts over bytes; see `cassette_vocabulary.py`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from lmc.diagnostics import Diagnostic, LmcError, RunError
from lmc.runtime.cassette import Cassette, Entries, Entry
from lmc.runtime.cassette_asks import constraint_data, difference, gen_ask, place_of, rows_ask, score_ask
from lmc.runtime.cassette_vocabulary import model_data, replayed, token_data
from lmc.runtime.context import Context, OptionPrompts, Prompter
from lmc.runtime.failures import failure
from lmc.runtime.hints import Hint
from lmc.runtime.request import Finish, Generated, GenerateRequest, Scored, ScoreRequest, TokenLogprob, Usage

#: Errors that come from outside the run: they are not its answers.
_NOT_ANSWERS = frozenset({"cancelled", "internal", "model"})


class RecordingSession:
    """Passes everything on to `session`.  Raises `LmcError` E0862 where the model's tokenizer changes text: a prompt would not be
    what the program wrote."""

    def __init__(self, session: Any, cassette: Cassette):
        if session.tokenizer.lossy:
            message = f"the tokenizer of {session.name} changes text, so its prompts cannot be found again"
            raise LmcError(Diagnostic("E0862", message, None, help="record with another model"))
        self._session, self._cassette = session, cassette
        self.name, self.tokenizer, self.prompter = session.name, session.tokenizer, session.prompter
        self.has_template, self.limit, self.remote = session.has_template, session.limit, session.remote
        self._constraints: dict[int, tuple[Any, dict[str, str]]] = {}
        cassette.model = model_data(session.name, session.tokenizer, session.template)

    @property
    def begin_id(self) -> int:
        return self._session.begin_id

    def constraint(self, dfa: Any) -> Any:
        made = self._session.constraint(dfa)
        # Kept here, so that the identity stays its own.
        self._constraints[id(made)] = (made, constraint_data(dfa))
        return made

    async def generate(self, request: GenerateRequest, on_text: Callable[[str], None] | None = None,
                       on_piece: Callable[[Generated], None] | None = None) -> Generated:
        return await piece_by_piece(request, lambda piece: self._generate(piece, on_text), on_piece)

    async def _generate(self, request: GenerateRequest, on_text: Callable[[str], None] | None) -> Generated:
        constraint = None if request.constraint is None else self._constraints[id(request.constraint)][1]
        entry = self._entry(request, gen_ask(request, self.tokenizer, constraint))
        with recorded_failure(entry):
            generated = await self._session.generate(request, on_text)
        entry.answer = _generated_data(generated, request, self.tokenizer)
        return generated

    async def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        entry = self._entry(requests[0], score_ask(requests, self.tokenizer))
        with recorded_failure(entry):
            scored = await self._session.score(requests)
        entry.answer = {"rows": [
            {"tokens": [token_data(self.tokenizer, id) for id in r.ids[r.start:]], "logprobs": list(s.logprobs),
             "usage": _usage_data(s.usage)} for r, s in zip(requests, scored)
        ]}
        return scored

    def reserve(self) -> int:
        return self._session.reserve()

    def hint(self, hint: Hint, on_usage: Callable[[Usage], None] | None = None) -> None:
        self._session.hint(hint, on_usage)

    def _entry(self, request: GenerateRequest | ScoreRequest, ask: dict[str, Any]) -> Entry:
        assert request.origin is not None
        entry = Entry(*place_of(request.origin), ask)
        self._cassette.calls.append(entry)
        return entry


async def piece_by_piece(request: GenerateRequest, generate: Callable[[GenerateRequest], Awaitable[Generated]],
                         on_piece: Callable[[Generated], None] | None) -> Generated:
    """Each piece as a request of its own, so that a cassette serves whatever the compiler puts into one request."""
    while True:
        generated = await generate(replace(request, then=None))
        following = request.then(generated) if request.then is not None else None
        if following is None:
            return generated
        if on_piece is not None:
            on_piece(generated)
        request = following


@contextmanager
def recorded_failure(entry: Entry) -> Iterator[None]:
    """What is raised inside is the entry's answer; a cancel is none."""
    try:
        yield
    except RunError as error:
        if error.kind not in _NOT_ANSWERS:
            first = error.diagnostics[0]
            entry.answer = {"error": {"kind": error.kind, "code": first.code, "message": first.message, "help": first.help}}
        raise


class ReplayingSession:
    """Answers from the cassette; what it does not hold is a `RunError` of kind `cassette`."""

    def __init__(self, cassette: Cassette):
        try:
            self.tokenizer, template = replayed(cassette.model)
        except KeyError as error:
            message = f"the cassette of `{cassette.test}` names the control token {error}, which it does not list"
            raise LmcError(Diagnostic("E0862", message, None, help="record the test again")) from None
        self.name = cassette.model["name"]
        self.has_template = template is not None
        self.limit = sys.maxsize
        self.remote = None
        self._entries = Entries(cassette.calls, again=True)
        choices = [e for e in cassette.calls if e.answer is not None and "rows" in e.answer]
        self._rows = Entries([Entry("", "", {"prompt": e.ask["prompt"], "options": e.ask["options"]}, e.answer) for e in choices],
                             again=True)
        self.prompter = _ReplayPrompter(self.tokenizer, template, self._scored_rows)
        self.given_up = GivenUp()

    @property
    def begin_id(self) -> int:
        begin = self.tokenizer.begin_id
        return begin if begin is not None else min(self.tokenizer.end_ids)

    def reserve(self) -> int:
        return 0

    def hint(self, hint: Hint, on_usage: Callable[[Usage], None] | None = None) -> None:
        """There is no cache."""

    def constraint(self, dfa: Any) -> dict[str, str]:
        """No masks are needed where the answer is known."""
        return constraint_data(dfa)

    async def generate(self, request: GenerateRequest, on_text: Callable[[str], None] | None = None,
                       on_piece: Callable[[Generated], None] | None = None) -> Generated:
        return await piece_by_piece(request, lambda piece: self._generate(piece, on_text), on_piece)

    async def _generate(self, request: GenerateRequest, on_text: Callable[[str], None] | None) -> Generated:
        constraint: Any = request.constraint
        answer = await self._answer(request, gen_ask(request, self.tokenizer, constraint))
        if request.stream and on_text is not None and answer["text"]:
            on_text(answer["text"])
        return _generated(answer, self.tokenizer)

    async def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        answer = await self._answer(requests[0], score_ask(requests, self.tokenizer))
        return [Scored(tuple(row["logprobs"]), Usage(**row["usage"])) for row in answer["rows"]]

    async def _answer(self, request: GenerateRequest | ScoreRequest, ask: dict[str, Any]) -> dict[str, Any]:
        assert request.origin is not None
        at, where = place_of(request.origin)
        entry = self._entries.take(at, ask)
        if entry is None:
            raise _not_held(self._entries.nearest(at, where, ask), ask)
        # As with a model, others come to their turn meanwhile.
        await asyncio.sleep(0)
        return await answer_of(entry, self.given_up)

    def _scored_rows(self, rows: Sequence[tuple[int, ...]]) -> list[list[int]] | None:
        """The tokens that were scored for options whose bytes these are."""
        begun = [(self.begin_id, *ids) for ids in rows]
        for asked in (rows_ask(rows, self.tokenizer), rows_ask(begun, self.tokenizer)):
            found = self._rows.take("", asked)
            if found is not None and found.answer is not None:
                return [[self.tokenizer.token(t) for t in row["tokens"]] for row in found.answer["rows"]]
        return None


class GivenUp:
    """Those who wait for what the recorded run gave up before it was answered: there, something else ended first.

    Where nothing else is left to happen, `end` fails them, so that nobody waits for ever.
    """

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[Any]] = []

    async def wait(self) -> Any:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    def end(self) -> bool:
        """Whether there was anybody."""
        waiting, self._waiting = [f for f in self._waiting if not f.done()], []
        message = "the cassette does not hold an answer to this: the recorded run ended before it came"
        for future in waiting:
            future.set_exception(failure("E0861", message, None, kind="cassette", help=RECORD))
        return bool(waiting)


async def answer_of(entry: Entry, given_up: GivenUp) -> dict[str, Any]:
    """The entry's answer.  Raises the error that it is, without a place."""
    if entry.answer is None:
        await given_up.wait()
    assert entry.answer is not None
    if "error" in entry.answer:
        error = entry.answer["error"]
        raise failure(error["code"], error["message"], None, kind=error["kind"], help=error["help"])
    return entry.answer


RECORD = "if the change is meant, record it again: `lmc test FILE --record`"


def _not_held(nearest: Entry | None, ask: dict[str, Any]) -> RunError:
    what = difference(nearest.ask, ask) if nearest is not None else "the recorded run asked nothing"
    return failure("E0861", "the cassette does not hold this request: re-record", None, kind="cassette", help=f"{what}\n{RECORD}")


class _ReplayPrompter(Prompter):
    """Cuts options into the tokens that were scored."""

    __slots__ = ("_scored",)

    def __init__(self, tokenizer: Any, template: Any, scored: Callable[[Sequence[tuple[int, ...]]], list[list[int]] | None]):
        super().__init__(tokenizer, template)
        self._scored = scored

    def option_prompts(self, context: Context, role: str, options: Sequence[str], *, heal: bool) -> OptionPrompts:
        prompts = super().option_prompts(context, role, options, heal=heal)
        tails = self._scored(prompts.options)
        if tails is None:
            return prompts  # whoever asks for the scores hears that they are not there
        # A tail ends where its option ends, and before it stands the same for all.
        length = len(self._tokenizer.decode_bytes(tails[0]))
        prefix = prompts.options[0][:len(prompts.options[0]) - length]
        return OptionPrompts(prefix, tuple((*prefix, *tail) for tail in tails), len(prefix))


def _generated_data(generated: Generated, request: GenerateRequest, tokenizer: Any) -> dict[str, Any]:
    added = tokenizer.decode_bytes(generated.ids)[len(request.heal):].decode("utf-8", "replace") + generated.carry
    logprobs = [{"token": token_data(tokenizer, t.id), "logprob": t.logprob,
                 "top": [{"token": token_data(tokenizer, i), "logprob": p} for i, p in t.top]} for t in generated.logprobs]
    return {"text": generated.text, "context": added, "tokens": [token_data(tokenizer, i) for i in generated.ids],
            "finish": generated.finish.value, "stop": generated.stop, "valid": generated.valid,
            "usage": _usage_data(generated.usage), "logprobs": logprobs}


def _generated(answer: dict[str, Any], tokenizer: Any) -> Generated:
    # The ids that the context goes on with are the bytes it got: nothing was reopened here, so the recorded tokens do not fit.
    logprobs = tuple(
        TokenLogprob(tokenizer.token(t["token"]), t["logprob"], tuple((tokenizer.token(o["token"]), o["logprob"]) for o in t["top"]))
        for t in answer["logprobs"]
    )
    return Generated(tuple(answer["context"].encode()), answer["text"], "", Finish(answer["finish"]), answer["stop"],
                     answer["valid"], Usage(**answer["usage"]), logprobs)


def _usage_data(usage: Usage) -> dict[str, int]:
    return {"cached": usage.cached, "computed": usage.computed, "generated": usage.generated, "passes": usage.passes}
