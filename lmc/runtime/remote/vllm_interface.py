"""vLLM: OpenAI's interfaces with more options: guided values, turns that are gone on with, log-probabilities of prompts.

    {"structured_outputs": {"regex": "[0-9]+"}, "continue_final_message": true, "add_generation_prompt": false, "prompt_logprobs": 0}

The names are those of vLLM 0.12 and later.  Older ones pass over what they do not know, and then an answer is held against the
value's automaton all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmc.runtime.remote.openai_interface import OpenAi
from lmc.runtime.remote.protocol import Answer, Ask, Token


class Vllm(OpenAi):
    def request(self, ask: Ask) -> tuple[str, dict[str, Any]]:
        path, body = super().request(ask)
        return path, {**body, **continued(ask)}

    def wraps(self, ask: Ask) -> bool:
        return False

    def held_to(self, ask: Ask) -> dict[str, Any]:
        if ask.wanted is None:
            return {}
        if ask.wanted.options:
            return {"structured_outputs": {"choice": list(ask.wanted.options)}}
        if ask.wanted.regex is not None:
            return {"structured_outputs": {"regex": ask.wanted.regex}}
        return {"structured_outputs": {"json": ask.wanted.schema}}

    def options(self, ask: Ask) -> dict[str, Any]:
        return {**super().options(ask), **engine_options(ask)}

    def score_request(self, ask: Ask) -> tuple[str, dict[str, Any]]:
        path, body = self.request(ask)
        return path, {**body, "max_tokens": 1, "stream": False, "stream_options": None, "prompt_logprobs": 0}

    def add(self, answer: Answer, event: Mapping[str, Any]) -> None:
        super().add(answer, event)
        places = [event, *(event.get("choices") or ())]
        # The first token has nothing before it, and so no entry.
        for place in next((p["prompt_logprobs"] for p in places if p.get("prompt_logprobs")), ()):
            if place is not None:
                # The prompt's own token comes first, and a likelier one may follow.
                chosen = next(iter(place.values()))
                answer.scored.append(Token(chosen["decoded_token"], chosen["logprob"]))


def continued(ask: Ask) -> dict[str, Any]:
    """A turn of the assistant that has begun is gone on with."""
    return {"continue_final_message": True, "add_generation_prompt": False} if ask.conversation.begun else {}


def engine_options(ask: Ask) -> dict[str, Any]:
    """Options that engines have beside OpenAI's, those that change something."""
    sampling = ask.sampling
    given = {"top_k": (sampling.top_k, 0), "min_p": (sampling.min_p, 0.0), "repetition_penalty": (sampling.repetition_penalty, 1.0),
             "min_tokens": (ask.min_tokens, 0), "ignore_eos": (ask.ignore_eos, False)}
    return {name: value for name, (value, neutral) in given.items() if value != neutral}
