"""`/chat/completions` and `/completions`, as OpenAI has them and most servers copy them.

    {"model": "m", "messages": […], "max_tokens": 20, "temperature": 0.0, "stop": ["\\n"], "stream": true, …}
    data: {"choices": [{"delta": {"content": "Hel"}, "finish_reason": null}]}

Turns go to the chat interface and raw text to the other one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmc.runtime.remote.gbnf import gbnf
from lmc.runtime.remote.protocol import Answer, Ask, Counted, Token
from lmc.runtime.remote.wanted import wrapped


class OpenAi:
    def request(self, ask: Ask) -> tuple[str, dict[str, Any]]:
        body: dict[str, Any] = {"model": ask.model, "max_tokens": ask.max_tokens, "stream": True,
                                "stream_options": {"include_usage": True}, **self.options(ask)}
        if ask.stops:
            body["stop"] = list(ask.stops)
        if ask.conversation.raw is not None:
            logprobs = {"logprobs": ask.logprobs} if ask.logprobs else {}
            return "/completions", {**body, "prompt": ask.conversation.raw, **logprobs, **self.held_to(ask)}
        logprobs = {"logprobs": True, "top_logprobs": ask.logprobs} if ask.logprobs else {}
        return "/chat/completions", {**body, "messages": ask.conversation.messages(), **logprobs, **self.held_to(ask)}

    def wraps(self, ask: Ask) -> bool:
        return ask.wanted is not None and not ask.by_grammar and ask.wanted.schema.get("type") != "object"

    def held_to(self, ask: Ask) -> dict[str, Any]:
        """What makes the server keep to what is wanted."""
        if ask.wanted is None:
            return {}
        if ask.by_grammar:
            return {"grammar": gbnf(ask.wanted.automaton())}
        schema = wrapped(ask.wanted.schema) if self.wraps(ask) else ask.wanted.schema
        return {"response_format": {"type": "json_schema", "json_schema": {"name": "value", "strict": True, "schema": schema}}}

    def options(self, ask: Ask) -> dict[str, Any]:
        sampling = ask.sampling
        given = {"temperature": sampling.temperature, "top_p": sampling.top_p, "seed": signed(sampling.seed),
                 "frequency_penalty": sampling.frequency_penalty, "presence_penalty": sampling.presence_penalty}
        # What has no effect is left out: some servers refuse options that they do not know.
        kept = {name: value for name, value in given.items() if name in ("temperature", "seed") or value != _NEUTRAL[name]}
        bias = {str(token): value for token, value in sampling.logit_bias}
        return {**kept, "logit_bias": bias} if bias else kept

    def score_request(self, ask: Ask) -> tuple[str, dict[str, Any]]:
        raise AssertionError("this interface gives no log-probabilities of prompts")

    def add(self, answer: Answer, event: Mapping[str, Any]) -> None:
        if event.get("usage"):
            answer.counted = _counted(event["usage"])
        for choice in event.get("choices") or ():
            part = choice.get("delta") or choice.get("message") or choice
            answer.text += part.get("content") or part.get("text") or ""
            if part.get("refusal"):
                answer.finish = f"refusal: {part['refusal']}"
            elif choice.get("finish_reason") is not None and answer.finish is None:
                answer.finish = choice["finish_reason"]
            if isinstance(choice.get("stop_reason"), str):
                answer.stop = choice["stop_reason"]
            answer.tokens += _tokens(choice.get("logprobs"))


_NEUTRAL = {"top_p": 1.0, "frequency_penalty": 0.0, "presence_penalty": 0.0}


def signed(seed: int) -> int:
    """A seed in the signed 64 bits that servers take: the lower 63."""
    return seed & (2**63 - 1)


def _counted(usage: Mapping[str, Any]) -> Counted:
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return Counted(int(usage["prompt_tokens"]), int(usage.get("completion_tokens") or 0), int(cached))


def _tokens(logprobs: Any) -> list[Token]:
    if not logprobs:
        return []
    if "content" in logprobs:
        return [Token(t["token"], t["logprob"], tuple((o["token"], o["logprob"]) for o in t.get("top_logprobs") or ()))
                for t in logprobs["content"] or ()]
    tops = logprobs.get("top_logprobs") or [{}] * len(logprobs["tokens"])
    return [Token(text, logprob, tuple(sorted((top or {}).items(), key=lambda item: -item[1])))
            for text, logprob, top in zip(logprobs["tokens"], logprobs["token_logprobs"], tops)]
