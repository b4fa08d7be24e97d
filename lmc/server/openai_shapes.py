"""The two forms of OpenAI's answers, whole and in pieces.

    chat          choices[].message, pieces in choices[].delta, the first of which says the role
    completions   choices[].text in both

What an answer is made of is in `openai_answers.py`.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel

from lmc.runtime.request import Generated, GenerateRequest
from lmc.server.openai_answers import (
    ChatAnswer, ChatChoice, ChatMessage, CompletionAnswer, CompletionChoice, chat_logprobs, completion_logprobs, finish_reason,
    prompt_logprobs, usage_of,
)
from lmc.server.openai_bodies import ChatBody, CompletionBody


@dataclass(frozen=True, slots=True)
class Asked:
    """prompts: ids of each; requests: `choices` of each prompt, in order; created: in seconds since 1970"""

    model: str
    prompts: tuple[tuple[int, ...], ...]
    requests: tuple[GenerateRequest, ...]
    choices: int
    created: int
    id: str = field(default_factory=lambda: secrets.token_hex(12))


class Shape(Protocol):
    asked: Asked

    @property
    def wants_scores(self) -> bool:
        """Whether the log-probabilities of the prompts' own tokens are wanted."""

    def whole(self, results: Sequence[Generated], scores: Sequence[Sequence[float]]) -> BaseModel: ...

    def openings(self) -> list[dict[str, Any]]:
        """The pieces before the first text."""

    def piece(self, place: int, text: str) -> dict[str, Any]: ...

    def end(self, place: int, result: Generated) -> dict[str, Any]:
        """The last piece of a choice."""

    def counted(self, results: Sequence[Generated]) -> dict[str, Any]:
        """The piece behind all choices, with the tokens."""


class ChatShape:
    def __init__(self, tokenizer: Any, asked: Asked, body: ChatBody):
        self.tokenizer, self.asked, self.body = tokenizer, asked, body

    @property
    def wants_scores(self) -> bool:
        return self.body.prompt_logprobs is not None

    def whole(self, results: Sequence[Generated], scores: Sequence[Sequence[float]]) -> BaseModel:
        choices = [ChatChoice(index=place, message=ChatMessage(content=result.text), logprobs=self._logprobs(result),
                              finish_reason=finish_reason(result), stop_reason=result.stop) for place, result in enumerate(results)]
        asked = self.asked
        scored = prompt_logprobs(self.tokenizer, asked.prompts[0], scores[0]) if scores else None
        return ChatAnswer(id=f"chatcmpl-{asked.id}", created=asked.created, model=asked.model, choices=choices,
                          usage=_usage(asked, results), prompt_logprobs=scored)

    def openings(self) -> list[dict[str, Any]]:
        return [self._chunk(place, {"role": "assistant", "content": ""}) for place in range(len(self.asked.requests))]

    def piece(self, place: int, text: str) -> dict[str, Any]:
        return self._chunk(place, {"content": text})

    def end(self, place: int, result: Generated) -> dict[str, Any]:
        logprobs = self._logprobs(result)
        return self._chunk(place, {}, finish_reason=finish_reason(result), stop_reason=result.stop,
                           logprobs=None if logprobs is None else logprobs.model_dump())

    def counted(self, results: Sequence[Generated]) -> dict[str, Any]:
        return self._event([]) | {"usage": _usage(self.asked, results).model_dump()}

    def _logprobs(self, result: Generated) -> Any:
        return chat_logprobs(self.tokenizer, result, self.body.top_logprobs) if self.body.logprobs else None

    def _chunk(self, place: int, delta: dict[str, Any], **more: Any) -> dict[str, Any]:
        return self._event([{"index": place, "delta": delta, "logprobs": None, "finish_reason": None, **more}])

    def _event(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        asked = self.asked
        return {"id": f"chatcmpl-{asked.id}", "object": "chat.completion.chunk", "created": asked.created, "model": asked.model,
                "choices": choices}


class CompletionShape:
    def __init__(self, tokenizer: Any, asked: Asked, body: CompletionBody):
        self.tokenizer, self.asked, self.body = tokenizer, asked, body

    @property
    def wants_scores(self) -> bool:
        return self.body.prompt_logprobs is not None or self.body.echo and self.body.logprobs is not None

    def whole(self, results: Sequence[Generated], scores: Sequence[Sequence[float]]) -> BaseModel:
        asked = self.asked
        choices = [self._choice(place, result, scores[place // asked.choices] if scores else ()) for place, result in enumerate(results)]
        return CompletionAnswer(id=f"cmpl-{asked.id}", created=asked.created, model=asked.model, choices=choices,
                                usage=_usage(asked, results))

    def openings(self) -> list[dict[str, Any]]:
        return []

    def piece(self, place: int, text: str) -> dict[str, Any]:
        return self._chunk(place, text)

    def end(self, place: int, result: Generated) -> dict[str, Any]:
        logprobs = self._logprobs(result)
        return self._chunk(place, "", finish_reason=finish_reason(result), stop_reason=result.stop,
                           logprobs=None if logprobs is None else logprobs.model_dump())

    def counted(self, results: Sequence[Generated]) -> dict[str, Any]:
        return self._event([]) | {"usage": _usage(self.asked, results).model_dump()}

    def _choice(self, place: int, result: Generated, scores: Sequence[float]) -> CompletionChoice:
        ids, echo = self.asked.prompts[place // self.asked.choices], self.body.echo
        before = self.tokenizer.decode_bytes(ids).decode(errors="replace") if echo else ""
        logprobs = self._logprobs(result, ids if echo else (), scores)
        scored = prompt_logprobs(self.tokenizer, ids, scores) if self.body.prompt_logprobs is not None else None
        return CompletionChoice(index=place, text=before + result.text, logprobs=logprobs, finish_reason=finish_reason(result),
                                stop_reason=result.stop, prompt_logprobs=scored)

    def _logprobs(self, result: Generated, prompt: Sequence[int] = (), scores: Sequence[float] = ()) -> Any:
        if self.body.logprobs is None:
            return None
        return completion_logprobs(self.tokenizer, result, self.body.logprobs, prompt, scores)

    def _chunk(self, place: int, text: str, **more: Any) -> dict[str, Any]:
        return self._event([{"index": place, "text": text, "logprobs": None, "finish_reason": None, **more}])

    def _event(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        asked = self.asked
        return {"id": f"cmpl-{asked.id}", "object": "text_completion", "created": asked.created, "model": asked.model, "choices": choices}


def _usage(asked: Asked, results: Sequence[Generated]) -> Any:
    return usage_of([len(ids) for ids in asked.prompts], results, asked.choices)
