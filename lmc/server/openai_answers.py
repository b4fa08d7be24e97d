"""OpenAI's answers: their fields, and how they are made of what the engine gave.

    {"object": "chat.completion", "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}], …}

`stop_reason` and `prompt_logprobs` are vLLM's.  Log-probabilities are natural, before masks and penalties; of a stream they come with
the last piece of each choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel

from lmc.runtime.request import Finish, Generated


class TopLogprob(BaseModel):
    token: str
    logprob: float
    bytes: list[int]


class ContentLogprob(TopLogprob):
    top_logprobs: list[TopLogprob]


class ChatLogprobs(BaseModel):
    content: list[ContentLogprob]
    refusal: None = None


class CompletionLogprobs(BaseModel):
    """Of each token: its text, its log-probability, the likeliest ones in its place, and where it begins, in characters."""

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None] | None
    text_offset: list[int]


class CachedTokens(BaseModel):
    cached_tokens: int


class Usage(BaseModel):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: CachedTokens


FinishReason = Literal["stop", "length"]


class PromptLogprob(BaseModel):
    logprob: float
    decoded_token: str


#: Of each token of a prompt, by its id; the first has nothing before it.
PromptLogprobs = list[dict[str, PromptLogprob] | None]


class ChatMessage(BaseModel):
    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None


class ChatChoice(BaseModel):
    index: int
    message: ChatMessage
    logprobs: ChatLogprobs | None
    finish_reason: FinishReason
    stop_reason: str | None


class ChatAnswer(BaseModel):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage
    prompt_logprobs: PromptLogprobs | None = None


class CompletionChoice(BaseModel):
    index: int
    text: str
    logprobs: CompletionLogprobs | None
    finish_reason: FinishReason
    stop_reason: str | None
    prompt_logprobs: PromptLogprobs | None = None


class CompletionAnswer(BaseModel):
    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: Usage


class Model(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "lmc"


class Models(BaseModel):
    object: Literal["list"] = "list"
    data: list[Model]


def finish_reason(result: Generated) -> FinishReason:
    return "length" if result.finish is Finish.LENGTH else "stop"


def usage_of(prompts: Sequence[int], results: Sequence[Generated], choices: int) -> Usage:
    """prompts: tokens of each; results: `choices` of each prompt, in order.  A prompt counts once, however many choices it has."""
    generated = sum(result.usage.generated for result in results)
    # Choices of one prompt find in the cache what the first of them has computed.
    cached = sum(min(result.usage.cached for result in results[place * choices:(place + 1) * choices]) for place in range(len(prompts)))
    return Usage(prompt_tokens=sum(prompts), completion_tokens=generated, total_tokens=sum(prompts) + generated,
                 prompt_tokens_details=CachedTokens(cached_tokens=cached))


def chat_logprobs(tokenizer: Any, result: Generated, top: int) -> ChatLogprobs:
    """`top`: how many alternatives are wanted."""
    content = []
    for token in result.logprobs:
        best = [TopLogprob(**_spelled(tokenizer, id), logprob=logprob) for id, logprob in token.top[:top]]
        content.append(ContentLogprob(**_spelled(tokenizer, token.id), logprob=token.logprob, top_logprobs=best))
    return ChatLogprobs(content=content)


def completion_logprobs(tokenizer: Any, result: Generated, top: int, prompt: Sequence[int] = (),
                        scores: Sequence[float] = ()) -> CompletionLogprobs:
    """`prompt` with its `scores` where it is echoed."""
    ids = [*prompt, *(token.id for token in result.logprobs)]
    tops: list[dict[str, float] | None] = [None] * len(prompt)
    tops += ({_text(tokenizer, id): logprob for id, logprob in token.top[:top]} for token in result.logprobs)
    known: list[float | None] = [None, *scores] if prompt else []
    return CompletionLogprobs(tokens=[_text(tokenizer, id) for id in ids],
                              token_logprobs=[*known, *(token.logprob for token in result.logprobs)],
                              top_logprobs=tops if top else None, text_offset=_offsets(tokenizer, ids))


def prompt_logprobs(tokenizer: Any, ids: Sequence[int], scores: Sequence[float]) -> PromptLogprobs:
    return [None, *({str(id): PromptLogprob(logprob=score, decoded_token=_text(tokenizer, id))} for id, score in zip(ids[1:], scores))]


def _spelled(tokenizer: Any, id: int) -> dict[str, Any]:
    return {"token": _text(tokenizer, id), "bytes": list(tokenizer.decode_bytes([id]))}


def _text(tokenizer: Any, id: int) -> str:
    return tokenizer.decode_bytes([id]).decode(errors="replace") or tokenizer.control_text(id)


def _offsets(tokenizer: Any, ids: Sequence[int]) -> list[int]:
    """Where each token begins: a token that begins inside a character begins with it."""
    offsets, data = [], b""
    for id in ids:
        offsets.append(len(data.decode(errors="ignore")))
        data += tokenizer.decode_bytes([id])
    return offsets
