"""A session whose model is asked over the network.  `Answers` for the machine, as a `Session` is.

    session = RemoteSession(settings, "my-model")
    machine = Machine(program, session, externs)
    await session.disconnect()

Prompts are made over bytes and read back into turns (`conversation.py`); the server has the tokens and the template.  What a value
must match is told to the server where it can be told, and every answer is held against it: what does not match is asked for again,
a stated number of times, and is never a value.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lmc.diagnostics import Diagnostic, LmcError, RunError
from lmc.regex.dfa import ByteDfa
from lmc.regex.grammar import Grammar
from lmc.runtime.attempts import Attempt
from lmc.runtime.context import Prompter
from lmc.runtime.failures import failure
from lmc.runtime.hints import Hint
from lmc.runtime.remote.ahead import Saved
from lmc.runtime.remote.capabilities import CAPABILITIES
from lmc.runtime.remote.conversation import Conversation, conversation, remote_vocabulary
from lmc.runtime.remote.faults import Fault
from lmc.runtime.remote.fitting import option_faults
from lmc.runtime.remote.openai_interface import OpenAi
from lmc.runtime.remote.protocol import Answer, Ask, Interface, Token
from lmc.runtime.remote.reading import Reading
from lmc.runtime.remote.settings import RemoteSettings, checked
from lmc.runtime.remote.sglang_interface import SgLang
from lmc.runtime.remote.transport import Transport, Tried
from lmc.runtime.remote.vllm_interface import Vllm
from lmc.runtime.remote.wanted import Wanted, wanted_option, wanted_value
from lmc.runtime.request import Finish, Generated, GenerateRequest, Origin, Scored, ScoreRequest, TokenLogprob, Usage

_INTERFACES: Mapping[str, Callable[[], Interface]] = {"openai": OpenAi, "sglang": SgLang, "vllm": Vllm}
#: The log-probability of what was not chosen: finite, so that JSON holds it.
_NEVER = -1e30
_Told = Callable[[Attempt], None] | None
_OnText = Callable[[str], None] | None


class RemoteSession:
    """`model`: as the server names it.  Raises `UsageError` for wrong settings, or where the package `httpx` is missing."""

    def __init__(self, settings: RemoteSettings, model: str):
        self._settings = checked(settings)
        self.name = model
        self.remote = CAPABILITIES[settings.backend]
        self.tokenizer, self.template = remote_vocabulary()
        self.prompter = Prompter(self.tokenizer, self.template)
        self.has_template = True
        # Only the server knows.
        self.limit = sys.maxsize
        self.ended = False
        self._interface = _INTERFACES[settings.backend]()
        self._transport = Transport(settings)
        # Found out when it is needed: whether a schema behind a begun turn is refused, and a grammar is not.
        self._takes_grammars = False

    @property
    def begin_id(self) -> int:
        return min(self.tokenizer.end_ids)

    def constraint(self, dfa: ByteDfa | Grammar) -> ByteDfa:
        if isinstance(dfa, Grammar):
            message = f"a {dfa.kind} grammar cannot be kept by a model over the network"
            raise LmcError(Diagnostic("E0871", message, None, help="bound the type, or use a local model"))
        return dfa

    async def generate(self, request: GenerateRequest, on_text: _OnText = None,
                       on_piece: Callable[[Generated], None] | None = None) -> Generated:
        saved = Saved(self._settings.ahead, self._generate)
        try:
            while True:
                generated = await saved.piece(request, on_text)
                following = request.then(generated) if request.then is not None else None
                if following is None:
                    return generated
                if on_piece is not None:
                    on_piece(generated)
                saved.go_on(self.tokenizer.decode_bytes(following.prompt[len(request.prompt) + len(generated.ids):]).decode())
                request = following
        finally:
            saved.tell()

    async def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        first = requests[0]
        assert first.origin is not None
        talk = conversation(self.tokenizer, first.ids[:first.start])
        options = [self.tokenizer.decode_bytes(request.ids[request.start:]).decode() for request in requests]
        if talk.kind not in self.remote.scores:
            return await self._choose(talk, options, first)
        return [await self._scored(request, option) for request, option in zip(requests, options)]

    def reserve(self) -> int:
        return 0

    def hint(self, hint: Hint, on_usage: Callable[[Usage], None] | None = None) -> None:
        """The server has its own cache."""

    def close(self) -> None:
        """Nothing more is asked; see `disconnect`."""
        self.ended = True

    async def disconnect(self) -> None:
        """End the connections, in the event loop that they belong to."""
        await self._transport.close()

    async def _generate(self, request: GenerateRequest, on_text: _OnText, told: _Told) -> Generated:
        origin = request.origin
        assert origin is not None
        for fault in option_faults(request, self.remote):
            raise failure("E0871", fault, None, kind="value", help="leave the option out, or use a local model")
        talk = conversation(self.tokenizer, request.prompt, request.heal)
        ask = Ask(self.name, talk, request.max_tokens, request.stops[:self.remote.stops], request.sampling, request.min_tokens,
                  request.ignore_eos, request.logprobs)
        dfa: Any = request.constraint
        if dfa is None:
            answer = await self._answer(ask, request.stops, on_text if request.stream else None, origin, told)
            return self._generated(answer.text, answer, request, valid=True)
        wanted = wanted_value(dfa, origin.type)
        text, answer = await self._value(ask, wanted, request.stops, origin, told)
        if text is not None and request.stream and on_text is not None:
            on_text(text)
        return self._generated(answer.text if text is None else text, answer, request, valid=text is not None)

    async def _value(self, ask: Ask, wanted: Wanted, stops: tuple[str, ...], origin: Origin,
                     told: _Told) -> tuple[str | None, Answer]:
        """The value's text, None where it was cut.  Raises `RunError` where no answer is one."""
        kind = ask.conversation.kind
        if kind in self.remote.schemas or kind in self.remote.regexes and wanted.regex is not None:
            ask = replace(ask, wanted=wanted)
        first = ask.sampling.seed
        for number in range(self._settings.patience.invalid):
            sampling = replace(ask.sampling, seed=first + number)
            ask, answer = await self._told_or_not(replace(ask, sampling=sampling), stops, origin, told)
            text = wanted.spelled(answer.text, wrapped=self._interface.wraps(ask))
            if text is not None or answer.finish == "length" or answer.stop in stops:
                return text, answer
        message = f"{self._settings.patience.invalid} answers in turn are no value of what is asked for"
        raise failure("E0836", message, None, kind="invalid", raw=answer.text, help=f"the last one is {answer.text[:200]!r}")

    async def _told_or_not(self, ask: Ask, stops: tuple[str, ...], origin: Origin, told: _Told) -> tuple[Ask, Answer]:
        """An answer, and how it was asked for.

        llama.cpp holds what a turn has said already to the schema too, and refuses what does not begin like a value (status 400).
        A grammar is for what follows alone, so there it gets one, from then on at once.
        """
        if ask.wanted is None or not ask.conversation.begun or self.remote.regexes:
            return ask, await self._answer(ask, stops, None, origin, told)
        by_grammar = replace(ask, by_grammar=True)
        if self._takes_grammars:
            return by_grammar, await self._answer(by_grammar, stops, None, origin, told)
        try:
            return ask, await self._answer(ask, stops, None, origin, told)
        except RunError as error:
            if not _is_refused(error):
                raise
            refused = error
        try:
            answer = await self._answer(by_grammar, stops, None, origin, told)
        except RunError as error:
            raise refused if _is_refused(error) else error
        self._takes_grammars = True
        return by_grammar, answer

    async def _answer(self, ask: Ask, stops: tuple[str, ...], on_text: _OnText, origin: Origin, told: _Told) -> Answer:
        path, body = self._interface.request(ask)
        begun = "" if self.remote.continues else ask.conversation.begun
        return await self._asked(path, body, Reading(self._interface, begun, stops, on_text), origin, told)

    async def _asked(self, path: str, body: Mapping[str, Any], reading: Reading, origin: Origin, told: _Told) -> Answer:
        def tell(tried: Tried, answer: Answer | None = None) -> None:
            if told is not None:
                told(self._attempt(tried, answer, origin))

        answer, tried = await self._transport.ask(path, body, reading, tell)
        tell(tried, answer)
        return answer

    async def _choose(self, talk: Conversation, options: list[str], request: ScoreRequest) -> list[Scored]:
        """One option by a constrained answer: it has all the probability."""
        assert request.origin is not None
        # An option has no more tokens than bytes; the object round it is a few more.
        most = max(len(option.encode()) for option in options) + 32
        ask = Ask(self.name, talk, most)
        text, answer = await self._value(ask, wanted_option(options), (), request.origin, request.told)
        if text is None:
            raise failure("E0836", "the choice was cut", None, kind="invalid", raw=answer.text)
        usage = _usage(answer)
        return [Scored((0.0 if option == text else _NEVER,), usage if number == 0 else Usage())
                for number, option in enumerate(options)]

    async def _scored(self, request: ScoreRequest, option: str) -> Scored:
        assert request.origin is not None
        path, body = self._interface.score_request(Ask(self.name, conversation(self.tokenizer, request.ids), 1))
        answer = await self._asked(path, body, Reading(self._interface), request.origin, request.told)
        tokens = _last(answer.scored, option)
        if tokens is None:
            raise failure("E0873", f"the server's tokens of the prompt do not end with the option {option!r}", None, kind="model")
        return Scored(tuple(token.logprob for token in tokens), replace(_usage(answer), generated=0))

    def _generated(self, text: str, answer: Answer, request: GenerateRequest, *, valid: bool) -> Generated:
        # Half a surrogate pair can be in JSON, and in no text.
        text = text.encode("utf-8", "replace").decode()
        finish = Finish.LENGTH if answer.finish == "length" else Finish.STOP if answer.stop in request.stops else Finish.EOS
        spelled = self.tokenizer.token
        logprobs = tuple(TokenLogprob(spelled(t.text), t.logprob, tuple((spelled(o), p) for o, p in t.top)) for t in answer.tokens)
        return Generated(tuple(text.encode()), text, "", finish, answer.stop, valid, _usage(answer), logprobs)

    def _attempt(self, tried: Tried, answer: Answer | None, origin: Origin) -> Attempt:
        attempt = Attempt(str(origin.span), origin.path, tried.number, tried.outcome, tried.billed, tried.seconds, tried.waited)
        counted = answer.counted if answer is not None else None
        if counted is None:
            return attempt
        prices = self._settings.prices
        cost = prices.cost(counted.prompt, counted.generated) if prices is not None else None
        return replace(attempt, prompt=counted.prompt, cached=counted.cached, generated=counted.generated, cost=cost)


def _is_refused(error: RunError) -> bool:
    return isinstance(error.__cause__, Fault) and error.__cause__.outcome == "400"


def _usage(answer: Answer) -> Usage:
    counted = answer.counted
    return Usage() if counted is None else Usage(counted.cached, counted.prompt - counted.cached, counted.generated)


def _last(tokens: Sequence[Token], text: str) -> list[Token] | None:
    """The tokens at the end that have a part in the text; None where they do not end with it."""
    spelled = ""
    for number in range(1, len(tokens) + 1):
        spelled = tokens[-number].text + spelled
        if len(spelled) >= len(text):
            return list(tokens[-number:]) if spelled.endswith(text) else None
    return None
