"""OpenAI's interface over the local engine.

    GET  /v1/models, /v1/models/{name}
    POST /v1/chat/completions         turns, in the model's template
    POST /v1/completions              raw text, not healed

A request is checked, made into one engine request for each choice, run as long as the client is there, and answered whole or as
server-sent events.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable

from fastapi import APIRouter, Request
from starlette.responses import Response

from lmc.runtime.answers import Answers
from lmc.runtime.request import Generated
from lmc.server.chat_prompt import chat_prompt, note_turn, raw_prompts
from lmc.server.connection import EventStream, event, event_schema, while_connected
from lmc.server.errors import ApiError, ErrorBody, json_response, json_text
from lmc.server.generating import News, generated, results_of, scores_of
from lmc.server.openai_answers import ChatAnswer, CompletionAnswer, Model, Models
from lmc.server.openai_bodies import ChatBody, CompletionBody, Options
from lmc.server.openai_options import constraint_of, requests_of
from lmc.server.openai_shapes import Asked, ChatShape, CompletionShape, Shape
from lmc.server.state import ServerState

_ERRORS = {status: {"model": ErrorBody} for status in (400, 401, 403, 404, 408, 413, 415, 421, 429, 500, 503)}
_STREAM = {"text/event-stream": {"itemSchema": event_schema("message", "error")}}


def openai_router(state: ServerState) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["openai"])
    _add_models(router, state)

    @router.post("/chat/completions", responses={200: {"model": ChatAnswer, "content": _STREAM}, **_ERRORS}, response_class=Response)
    async def chat(body: ChatBody, request: Request) -> Response:
        """A turn of the assistant.  A last message of the assistant is gone on with."""
        session = _session(state, request, body)
        turns = state.turns_of(request.state.tenant)
        opened = await chat_prompt(session, body, turns, most=state.settings.max_prompt_bytes)
        constraint = await while_connected(request.receive, state.ending, constraint_of(state, request.state.tenant, body))
        requests = requests_of(body, opened.prompt, constraint, session, state.settings)
        asked = Asked(body.model, (opened.prompt.ids,), tuple(requests), body.n, int(time.time()))
        shape = ChatShape(session.tokenizer, asked, body)
        if turns is None:
            return await _answer(state, session, request, body, shape)
        return await _answer(state, session, request, body, shape, lambda result: note_turn(session, turns, opened, result))

    @router.post("/completions", responses={200: {"model": CompletionAnswer, "content": _STREAM}, **_ERRORS}, response_class=Response)
    async def complete(body: CompletionBody, request: Request) -> Response:
        """What follows a text."""
        session = _session(state, request, body)
        settings = state.settings
        prompts = await raw_prompts(session, body, most=settings.max_prompt_bytes, most_prompts=state.gate.each)
        constraint = await while_connected(request.receive, state.ending, constraint_of(state, request.state.tenant, body))
        requests = tuple(one for prompt in prompts for one in requests_of(body, prompt, constraint, session, settings))
        asked = Asked(body.model, tuple(prompt.ids for prompt in prompts), requests, body.n, int(time.time()))
        return await _answer(state, session, request, body, CompletionShape(session.tokenizer, asked, body))

    return router


def _add_models(router: APIRouter, state: ServerState) -> None:
    served = Model(id=state.settings.model_name, created=state.started)

    @router.get("/models", responses={200: {"model": Models}, 401: {"model": ErrorBody}}, response_class=Response)
    async def models() -> Response:
        """The one model of this server."""
        return json_response(Models(data=[served]).model_dump())

    @router.get("/models/{name:path}", responses={200: {"model": Model}, 401: {"model": ErrorBody}, 404: {"model": ErrorBody}},
                response_class=Response)
    async def model(name: str) -> Response:
        """A model by its name."""
        _check_model(state, name)
        return json_response(served.model_dump())


def _session(state: ServerState, request: Request, body: Options) -> Answers:
    _check_model(state, body.model)
    return state.session_of(request.state.tenant)


def _check_model(state: ServerState, name: str) -> None:
    if name != state.settings.model_name:
        message = f"there is no model `{name}` here; this server has `{state.settings.model_name}`"
        raise ApiError(404, message, param="model", code="model_not_found")


async def _answer(state: ServerState, session: Answers, request: Request, body: Options, shape: Shape,
                  note: Callable[[Generated], None] = lambda result: None) -> Response:
    """The answer, whole or as a stream.  `note`: told what each choice gave."""
    client, scores = request.state.tenant, []
    if shape.wants_scores:
        scores = await while_connected(request.receive, state.ending, scores_of(session, state.gate, client, shape.asked.prompts))
    news = generated(session, state.gate, client, shape.asked.requests, note)
    if not body.stream:
        results = await while_connected(request.receive, state.ending, results_of(news, len(shape.asked.requests)))
        return json_response(shape.whole(results, scores).model_dump())
    # What is refused is refused with a status: the answer begins once there is something to tell.
    first = await while_connected(request.receive, state.ending, anext(news))
    with_usage = body.stream_options is not None and body.stream_options.include_usage
    return EventStream(_events(shape, first, news, with_usage), state.ending)


async def _events(shape: Shape, first: News, news: AsyncGenerator[News, None], with_usage: bool) -> AsyncGenerator[str, None]:
    usage = {"usage": None} if with_usage else {}
    results = {}
    try:
        for opening in shape.openings():
            yield event(json_text(opening | usage))
        one: News | None = first
        while one is not None:
            if one.text:
                yield event(json_text(shape.piece(one.place, one.text) | usage))
            if one.result is not None:
                results[one.place] = one.result
                yield event(json_text(shape.end(one.place, one.result) | usage))
            one = await anext(news, None)
        if with_usage:
            yield event(json_text(shape.counted([results[place] for place in sorted(results)])))
        yield event("[DONE]")
    finally:
        await news.aclose()
