"""SGLang: its own `/generate` for raw text, and the chat interface with its extensions for turns.

    {"text": "Once", "sampling_params": {"max_new_tokens": 20, "regex": "[a-z]+"}, "return_logprob": true, "stream": true}
    data: {"text": "Once upon", "meta_info": {"finish_reason": {"type": "stop", "matched": "\\n"}, …}}

Each event of `/generate` holds the whole text so far.  The server finds shared prefixes by itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lmc.runtime.remote.openai_interface import OpenAi, signed
from lmc.runtime.remote.protocol import Answer, Ask, Counted, Token
from lmc.runtime.remote.vllm_interface import continued, engine_options


class SgLang(OpenAi):
    def request(self, ask: Ask) -> tuple[str, dict[str, Any]]:
        if ask.conversation.raw is None:
            path, body = super().request(ask)
            return path, {**body, **continued(ask)}
        body = {"text": ask.conversation.raw, "sampling_params": _sampling_params(ask), "stream": True}
        if ask.logprobs:
            body |= {"return_logprob": True, "top_logprobs_num": ask.logprobs, "return_text_in_logprobs": True}
        return "/generate", body

    def wraps(self, ask: Ask) -> bool:
        return False

    def held_to(self, ask: Ask) -> dict[str, Any]:
        if ask.wanted is None:
            return {}
        if ask.wanted.regex is not None:
            return {"regex": ask.wanted.regex}
        return {"response_format": {"type": "json_schema", "json_schema": {"name": "value", "schema": ask.wanted.schema}}}

    def options(self, ask: Ask) -> dict[str, Any]:
        return {**super().options(ask), **engine_options(ask)}

    def score_request(self, ask: Ask) -> tuple[str, dict[str, Any]]:
        return "/generate", {"text": ask.conversation.raw, "sampling_params": {"max_new_tokens": 0, "temperature": 0.0},
                             "return_logprob": True, "logprob_start_len": 0, "return_text_in_logprobs": True, "stream": False}

    def add(self, answer: Answer, event: Mapping[str, Any]) -> None:
        if "meta_info" not in event:
            super().add(answer, event)
            return
        meta = event["meta_info"]
        answer.text = event["text"]
        answer.counted = Counted(meta["prompt_tokens"], meta["completion_tokens"], meta.get("cached_tokens") or 0)
        finish = meta.get("finish_reason")
        if finish is not None:
            answer.finish = f"abort: {finish.get('message', '')}" if finish["type"] == "abort" else finish["type"]
            answer.stop = finish["matched"] if isinstance(finish.get("matched"), str) else None
        tops = meta.get("output_top_logprobs") or ()
        rows = meta.get("output_token_logprobs") or ()
        answer.tokens = [Token(text, logprob, tuple((t, p) for p, _, t in (tops[i] if i < len(tops) else None) or ()))
                         for i, (logprob, _, text) in enumerate(rows)]
        answer.scored = [Token(text, logprob) for logprob, _, text in meta.get("input_token_logprobs") or () if logprob is not None]


def _sampling_params(ask: Ask) -> dict[str, Any]:
    sampling = ask.sampling
    given: dict[str, Any] = {
        "max_new_tokens": ask.max_tokens, "temperature": sampling.temperature, "top_p": sampling.top_p,
        "sampling_seed": signed(sampling.seed), "frequency_penalty": sampling.frequency_penalty,
        "presence_penalty": sampling.presence_penalty,
    }
    given |= {("min_new_tokens" if name == "min_tokens" else name): value for name, value in engine_options(ask).items()}
    if ask.stops:
        given["stop"] = list(ask.stops)
    if ask.wanted is not None:
        given |= {"regex": ask.wanted.regex} if ask.wanted.regex is not None else {"json_schema": json.dumps(ask.wanted.schema)}
    return given
