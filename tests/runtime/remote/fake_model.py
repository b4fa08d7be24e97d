"""What a fake server answers like a model that keeps to what it is told: the shortest text that a schema or regex accepts.

    FakeServer(model_reply)

It reads requests as each of the servers does, and finds the text in the automaton.
"""

from __future__ import annotations

import json
from collections import deque
from typing import Any

from lmc.regex.build import compile_regex
from lmc.regex.dfa import START, ByteDfa
from lmc.regex.schema import compile_schema
from tests.runtime.remote.fake_server import USAGE, Asked, Events, Status, chat, text

FREE = "so be it"


def model_reply(asked: Asked) -> Any:
    """The answer to any request of the three interfaces."""
    body = asked.body
    if asked.path == "/generate":
        return _generated(body)
    if "prompt_logprobs" in body:
        prompt = body["prompt"] if "prompt" in body else body["messages"][-1]["content"]
        rows = [None, *({"1": {"decoded_token": c, "logprob": -0.1 * (i % 7)}} for i, c in enumerate(prompt[1:]))]
        return Status(200, body={"choices": [{"text": "x", "finish_reason": "length"}], "prompt_logprobs": rows, "usage": USAGE})
    said = _said(body)
    return text(said) if "prompt" in body else chat(said)


def _generated(body: dict[str, Any]) -> Any:
    meta = {"prompt_tokens": len(body["text"]), "completion_tokens": 2, "finish_reason": {"type": "stop"}}
    if body.get("return_logprob") and not body["sampling_params"]["max_new_tokens"]:
        rows = [[None, 0, body["text"][0]], *([-0.1 * (i % 7), i, c] for i, c in enumerate(body["text"][1:]))]
        return Status(200, body={"text": "", "meta_info": {**meta, "input_token_logprobs": rows}})
    return Events([{"text": _said(body["sampling_params"]), "meta_info": meta}])


def _said(told: dict[str, Any]) -> str:
    guided = told.get("structured_outputs", {})
    if "choice" in guided:
        return guided["choice"][0]
    regex = guided.get("regex") or told.get("regex")
    if regex is not None:
        return shortest(compile_regex(regex))
    schema = guided.get("json") or told.get("json_schema") or told.get("response_format", {}).get("json_schema", {}).get("schema")
    if schema is None:
        return FREE
    return shortest(compile_schema(schema if isinstance(schema, str) else json.dumps(schema)))


def shortest(dfa: ByteDfa) -> str:
    """A shortest text of printable characters that the automaton accepts."""
    seen, queue = {START}, deque([(START, "")])
    while queue:
        state, so_far = queue.popleft()
        if dfa.accepting[state]:
            return so_far
        for byte in range(32, 127):
            following = dfa.step(state, bytes([byte]))
            if following and following not in seen:
                seen.add(following)
                queue.append((following, so_far + chr(byte)))
    raise AssertionError(f"nothing printable matches {dfa.source}")
