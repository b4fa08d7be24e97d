"""Prompts that were asked for, as data, for people and for other programs.

    === call 1 of 2: gen at judge.lmp:26:21 in `judge`, path 1:0/0
    === str, max_tokens 150, temperature 0, stop ["\\n\\n"]
    <|im_start|>system
    You are a strict but fair essay judge.<|im_end|>
    …
    <|im_start|>assistant
    Thought⟦: ⟧                                   reopened: the first tokens spell it again

As tokens: ids in a row, a control token as `[1 <|im_start|>]`.  The JSON form loses nothing: its `pieces` have control
tokens as objects.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lmc.diagnostics import Diagnostic, RunError
from lmc.runtime.prompt_pieces import Control, Piece, spelled
from lmc.runtime.request import GenerateRequest, Origin, Sampling
from lmc.types import format_type, spell_type

_REOPENED = ("⟦", "⟧")
_IDS_A_LINE = 100  # columns


@dataclass(frozen=True, slots=True)
class Choice:
    """An option of a `select` or `score`: what is scored after the prompt that all of them share."""

    text: str
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RenderedCall:
    """A call of the model.

    ids: token ids of the prompt; of a choice, those that all options share
    pieces: the same as text and control tokens
    reopened: text at the end of the prompt that the first tokens must spell again (healing); not in `ids` and `pieces`
    choices: the options of a choice
    request: what else is asked; None of a choice
    constraint: what the value must match, for people; empty where nothing
    """

    origin: Origin
    ids: tuple[int, ...]
    pieces: tuple[Piece, ...]
    reopened: str
    choices: tuple[Choice, ...]
    request: GenerateRequest | None
    constraint: str

    @property
    def prompt(self) -> str:
        """The whole prompt as text, what is reopened included, control tokens by their spelling."""
        return spelled(self.pieces) + self.reopened


@dataclass(frozen=True, slots=True)
class Rendering:
    """calls: as they stand in the program; stops: what else the program waits for, as warnings with a place; returned: it
    came to its end without the model; error: it failed."""

    calls: tuple[RenderedCall, ...]
    stops: tuple[Diagnostic, ...]
    returned: bool
    error: RunError | None

    def text(self, *, tokens: bool = False) -> str:
        """All calls, each under its heading; prompts as text, or as token ids."""
        count = len(self.calls)
        return "\n".join(line for i, call in enumerate(self.calls) for line in _call_lines(call, i + 1, count, tokens))

    def data(self) -> list[dict[str, Any]]:
        """The calls as JSON data."""
        return [_call_data(call) for call in self.calls]

    def __str__(self) -> str:
        return self.text()


def option_list(request: GenerateRequest) -> dict[str, Any]:
    """The options of a generation that differ from what is built in, and always `max_tokens` and `temperature`."""
    usual, sampling = Sampling(), request.sampling
    names = ("top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty", "repetition_penalty", "logit_bias")
    given: dict[str, Any] = {"max_tokens": request.max_tokens, "temperature": sampling.temperature}
    given |= {name: value for name in names if (value := getattr(sampling, name)) != getattr(usual, name)}
    if sampling.temperature:
        given["seed"] = sampling.seed
    more = {"stop": list(request.stops), "min_tokens": request.min_tokens, "ignore_eos": request.ignore_eos,
            "logprobs": request.logprobs, "stream": request.stream}
    return given | {name: value for name, value in more.items() if value}


def _call_lines(call: RenderedCall, number: int, count: int, tokens: bool) -> Iterator[str]:
    yield f"=== call {number} of {count}: {_heading(call)}"
    yield f"=== {', '.join(_details(call))}"
    if tokens:
        yield from _id_lines(call)
        if call.reopened:
            yield f"=== reopened: {_quoted(call.reopened)}"
    else:
        yield spelled(call.pieces) + (call.reopened.join(_REOPENED) if call.reopened else "")
    for choice in call.choices:
        shown = " ".join(map(str, choice.ids)) + "  " if tokens else ""
        yield f"=== option: {shown}{_quoted(choice.text)}"


def _heading(call: RenderedCall) -> str:
    origin = call.origin
    path = f", path {origin.path}" if origin.path else ""
    return f"{origin.kind} at {origin.span} in `{origin.function}`{path}"


def _details(call: RenderedCall) -> Iterator[str]:
    yield spell_type(call.origin.type)
    if call.constraint and call.constraint != format_type(call.origin.type):
        yield f"matching {call.constraint}"
    if call.request is not None:
        for name, value in option_list(call.request).items():
            yield f"{name} {_quoted(value)}"
    else:
        yield f"{len(call.choices)} options, each after the prompt"


def _id_lines(call: RenderedCall) -> Iterator[str]:
    control = _control_texts(call)
    line = ""
    for id in call.ids:
        word = f"[{id} {control[id]}]" if id in control else str(id)
        if line and len(line) + len(word) >= _IDS_A_LINE:
            yield line
            line = ""
        line += f" {word}" if line else word
    yield line


def _control_texts(call: RenderedCall) -> dict[int, str]:
    return {piece.id: piece.text for piece in call.pieces if isinstance(piece, Control)}


def _call_data(call: RenderedCall) -> dict[str, Any]:
    origin, control = call.origin, _control_texts(call)
    data: dict[str, Any] = {
        "kind": origin.kind, "where": str(origin.span), "function": origin.function, "path": origin.path,
        "type": spell_type(origin.type), "constraint": call.constraint or None,
        "pieces": [{"control": p.text, "id": p.id} if isinstance(p, Control) else p for p in call.pieces],
        "reopened": call.reopened, "ids": list(call.ids), "control": [i for i, id in enumerate(call.ids) if id in control],
    }
    if call.request is not None:
        return data | {"options": option_list(call.request)}
    return data | {"choices": [{"text": choice.text, "ids": list(choice.ids)} for choice in call.choices]}


def _quoted(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, ensure_ascii=False)
