"""A session whose model is a peer: `Answers` for the machine, so that another engine runs the same `.lmp` programs.

    session = PeerSession(peer, tokenizer, template, limit=8192)
    machine = Machine(program, session, externs)

Prompts are made here, of the same tokens as for our own engine, and go to the peer as ids.  What comes back is taken token by token,
as if we had drawn it: stops, values and the next prompts are then what the language says they are.  Requests of several pieces go
out piece by piece, and hints are passed over: a peer has its own cache.

What a value must match is told to the peer as a regex or a JSON schema, and the answer is held against our automaton.  A choice is
made of the log-probabilities of the prompt, where the peer gives them; else the peer writes one option, kept to them by a regex,
which is another choice of options for the same prompt.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

from lmc.cli.peers.exchange import PeerAnswer, PeerAsk
from lmc.cli.peers.process import Peer
from lmc.diagnostics import Diagnostic, LmcError
from lmc.regex.dfa import ByteDfa
from lmc.regex.grammar import Grammar
from lmc.runtime.cassette_sessions import piece_by_piece
from lmc.runtime.constraint import TokenConstraint
from lmc.runtime.context import Prompter
from lmc.runtime.failures import failure
from lmc.runtime.generation import Generation
from lmc.runtime.hints import Hint
from lmc.runtime.remote.wanted import wanted_option, wanted_value
from lmc.runtime.request import Finish, Generated, GenerateRequest, Sampling, Scored, ScoreRequest, Usage
from lmc.runtime.token_sets import TokenSets

#: The log-probability of what was not chosen.
_NEVER = -1e30


class PeerSession:
    """peer: opened; limit: the longest prompt with its answer, in tokens.  `PeerError` comes through as it is."""

    def __init__(self, peer: Peer, tokenizer: Any, template: Any, *, limit: int):
        assert peer.ready is not None, "a peer that was not opened"
        self.name, self.tokenizer, self.template, self.limit = peer.name, tokenizer, template, limit
        self.has_template, self.remote = template is not None, None
        self.prompter = Prompter(tokenizer, template)
        self._peer, self._can = peer, peer.ready.can
        self._sets = TokenSets(tokenizer, tokenizer.size)
        self._constraints: dict[ByteDfa, TokenConstraint] = {}

    @property
    def begin_id(self) -> int:
        begin = self.tokenizer.begin_id
        return begin if begin is not None else min(self.tokenizer.end_ids)

    def constraint(self, dfa: ByteDfa | Grammar) -> TokenConstraint:
        if isinstance(dfa, Grammar):
            raise LmcError(Diagnostic("E0874", f"a {dfa.kind} grammar is not given to peers", None))
        if dfa not in self._constraints:
            self._constraints[dfa] = TokenConstraint(dfa, self._sets.index)
        return self._constraints[dfa]

    async def generate(self, request: GenerateRequest, on_text: Callable[[str], None] | None = None,
                       on_piece: Callable[[Generated], None] | None = None) -> Generated:
        generated = await piece_by_piece(request, self._generate, on_piece)
        if request.stream and on_text is not None:
            on_text(generated.text)
        return generated

    async def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        if "score" not in self._can:
            return await self._choose(requests)
        scores = await asyncio.gather(*(self._peer.score(request.ids, request.start) for request in requests))
        return [Scored(score.logprobs, Usage(score.cached or 0, score.computed or 0, 0)) for score in scores]

    def reserve(self) -> int:
        return 0

    def hint(self, hint: Hint, on_usage: Callable[[Usage], None] | None = None) -> None:
        """The peer has its own cache."""

    async def _generate(self, request: GenerateRequest) -> Generated:
        for fault in _faults(request):
            raise failure("E0874", f"a peer is not asked for {fault}", None, kind="value")
        sampling = request.sampling
        ask = PeerAsk(request.prompt, request.max_tokens, sampling.temperature, sampling.top_p,
                      # A seed means nothing where the likeliest token is taken, and 32 bits are what all peers take.
                      sampling.seed % 2**32 if sampling.temperature > 0 and "seed" in self._can else None,
                      request.stops, *self._told(request), request.ignore_eos)
        answer = await self._peer.generate(ask)
        generated = taken(request, answer, self._sets, self.limit)
        if not generated.valid and generated.finish is not Finish.LENGTH:
            raise failure("E0836", f"the peer's text is no value of what was asked for: {generated.text[:100]!r}", None, kind="invalid",
                          raw=generated.text)
        return generated

    def _told(self, request: GenerateRequest) -> tuple[str | None, str | None]:
        """Regex and schema for the peer, one of both; neither where the text is free."""
        if request.constraint is None:
            return None, None
        assert request.origin is not None
        dfa = next(dfa for dfa, constraint in self._constraints.items() if constraint is request.constraint)
        wanted = wanted_value(dfa, request.origin.type)
        if wanted.regex is not None and "regex" in self._can:
            return wanted.regex, None
        if not wanted.bare and "schema" in self._can:
            return None, json.dumps(wanted.schema)
        raise failure("E0874", f"the peer `{self.name}` cannot be kept to a value of this type", None, kind="value")

    async def _choose(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        """The option that the peer writes has all the probability."""
        first = requests[0]
        options = [self.tokenizer.decode_bytes(request.ids[request.start:]).decode(errors="replace") for request in requests]
        # Each byte may be a token of its own where the likeliest token is no beginning of an option.
        most = max(len(option.encode()) for option in options) + 1
        answer = await self._peer.generate(PeerAsk(first.ids[:first.start], most, regex=wanted_option(options).regex))
        if answer.text not in options:
            raise failure("E0836", f"the peer's text is none of the options: {answer.text[:100]!r}", None, kind="invalid", raw=answer.text)
        usage = Usage(answer.cached or 0, answer.computed or 0, 0)
        return [Scored((0.0 if option == answer.text else _NEVER,), usage if number == 0 else Usage())
                for number, option in enumerate(options)]


def taken(request: GenerateRequest, answer: PeerAnswer, sets: TokenSets, limit: int) -> Generated:
    """What our engine would have given, had it drawn these tokens."""
    # Where the peer says that there was no more room, there was none, whatever was asked for.
    room = min(limit, len(request.prompt) + len(answer.ids)) if answer.finish == "length" else limit
    generation = Generation(request, sets, room)
    for token in answer.ids:
        if generation.finish is not None:
            break
        generation.accept(token)
    if generation.finish is None:
        # The peer knows ends that are no tokens of the answer: its end token, or a stop that it took off.
        generation.accept(min(sets.end_ids))
    return generation.result(answer.cached or 0, answer.computed or 0, 0)


def _faults(request: GenerateRequest) -> list[str]:
    """What the request asks for that the protocol has no word for."""
    drawn, plain = request.sampling, Sampling()
    others = ("top_k", "min_p", "frequency_penalty", "presence_penalty", "repetition_penalty", "logit_bias")
    faults = [f"`{name}`" for name in others if getattr(drawn, name) != getattr(plain, name)]
    faults += ["`min_tokens`"] * (request.min_tokens > 0) + ["`logprobs`"] * (request.logprobs > 0)
    return faults + ["healing"] * bool(request.heal)
