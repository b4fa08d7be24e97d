"""From a body's options to the engine's requests, one for each choice.

    {"n": 2, "seed": 7, "temperature": 0.8, "regex": "[ab]+"}   ->   two requests with one prompt, one constraint and two seeds

The first choice has the seed that was given, so it is what `n: 1` would give; the others' follow from it.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from dataclasses import replace
from typing import Any

from lmc.diagnostics import LmcError
from lmc.runtime.answers import Answers
from lmc.runtime.context import Prompt
from lmc.runtime.grammar import Constraint
from lmc.runtime.request import GenerateRequest, Sampling
from lmc.server.constraint_compiler import CompilerBusy
from lmc.server.errors import ApiError, api_error, refused
from lmc.server.openai_bodies import ChatBody, CompletionBody, Options
from lmc.server.settings import ServerSettings
from lmc.server.state import ServerState

#: `json_object`: any object; how deep it nests is bounded as everywhere in `lmc`.
_ANY_OBJECT = '{"type":"object"}'


async def constraint_of(state: ServerState, tenant: str, body: Options) -> Constraint | None:
    """What the answer must match, over the model's tokens; None where it is free.  Raises `ApiError` with the field at fault."""
    wanted = wanted_by(body)
    if not wanted:
        return None
    if len(wanted) > 1:
        names = " and ".join(f"`{param}`" for param, _, _ in wanted)
        raise refused(wanted[1][0], f"{names} both say what the answer must match; give one")
    param, kind, source = wanted[0]
    try:
        return await state.compiler.constraint(kind, source, tenant)
    except CompilerBusy as error:
        raise ApiError(429, error.diagnostics[0].message, param=param, code="rate_limit_exceeded", headers={"retry-after": "2"}) from None
    except LmcError as error:
        raise api_error(error, param=param) from None


def wanted_by(body: Options) -> list[tuple[str, str, str]]:
    """All that the body says of it: the field, the kind (`regex`, `schema`, `grammar`) and its source."""
    found: list[tuple[str, str, str]] = []
    form, outputs = body.response_format, body.structured_outputs
    if form is not None and form.type != "text":
        schema = json.dumps(form.json_schema.schema_) if form.json_schema is not None else _ANY_OBJECT
        found.append(("response_format", "schema", schema))
    if body.regex is not None:
        found.append(("regex", "regex", body.regex))
    if outputs is not None:
        found.append(("structured_outputs", *_structured(outputs)))
    return found


def _structured(outputs: Any) -> tuple[str, str]:
    if outputs.regex is not None:
        return "regex", outputs.regex
    if outputs.choice is not None:
        return "regex", "|".join(map(re.escape, outputs.choice))
    if outputs.grammar is not None:
        return "grammar", outputs.grammar
    if outputs.json_ is not None:
        return "schema", outputs.json_ if isinstance(outputs.json_, str) else json.dumps(outputs.json_)
    return "schema", _ANY_OBJECT


def requests_of(body: ChatBody | CompletionBody, prompt: Prompt, constraint: Any, session: Answers,
                settings: ServerSettings) -> list[GenerateRequest]:
    """One for each choice.  Raises `ApiError`."""
    if body.n > settings.max_choices:
        raise refused("n", f"`n` is {body.n}, this server gives {settings.max_choices} choices at most")
    size = len(session.tokenizer.token_bytes)
    wrong = next((token for token in body.logit_bias if int(token) >= size), None)
    if wrong is not None:
        raise refused("logit_bias", f"`logit_bias` names the token {wrong}, expected 0 to {size - 1}")
    most = most_tokens(body, session, settings)
    if body.min_tokens > most:
        raise refused("min_tokens", f"`min_tokens` is {body.min_tokens}, and {most} tokens is the most")
    first = GenerateRequest(
        prompt=prompt.ids, max_tokens=most, heal=prompt.heal, constraint=constraint, stops=tuple(body.stop),
        min_tokens=body.min_tokens, ignore_eos=body.ignore_eos, sampling=_sampling(body), logprobs=_logprobs(body), stream=body.stream)
    return [replace(first, sampling=replace(first.sampling, seed=seed)) for seed in seeds(body.seed, body.n)]


def most_tokens(body: ChatBody | CompletionBody, session: Answers, settings: ServerSettings) -> int:
    """The bound on generated tokens; the engine ends earlier where the model's context does."""
    given = body.max_tokens
    if isinstance(body, ChatBody):
        given = body.max_completion_tokens or body.max_tokens or session.limit
    return min(given, session.limit, settings.max_tokens or session.limit)


def seeds(given: int | None, count: int) -> list[int]:
    """Unsigned 64-bit seeds: the one that was given, and those that follow from it."""
    first = secrets.randbits(64) if given is None else given % 2**64
    more = (hashlib.blake2b(first.to_bytes(8) + place.to_bytes(8), digest_size=8).digest() for place in range(1, count))
    return [first, *map(int.from_bytes, more)]


def _sampling(body: Options) -> Sampling:
    bias = tuple((int(token), value) for token, value in body.logit_bias.items())
    return Sampling(body.temperature, body.top_p, max(0, body.top_k), body.min_p, 0, body.frequency_penalty, body.presence_penalty,
                    body.repetition_penalty, bias)


def _logprobs(body: ChatBody | CompletionBody) -> int:
    """How many alternatives the engine records; one at least where any log-probability is wanted."""
    if isinstance(body, ChatBody):
        return max(1, body.top_logprobs) if body.logprobs else 0
    return 0 if body.logprobs is None else max(1, body.logprobs)
