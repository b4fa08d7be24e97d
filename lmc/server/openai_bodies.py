"""What OpenAI's clients send: the fields that are known, their types and bounds.

    {"model": "default", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 20, "stop": ["\\n"]}

A field that is not here is refused by its name; one that says what happens anyway (`"tools": []`) is let through.  Beside OpenAI's
fields there are those that engines have in common: `top_k`, `min_p`, `regex`, `structured_outputs` …
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

#: Stop texts of one request, and characters of one; each is looked for after every token.
_MOST_STOPS, _LONGEST_STOP = 64, 1000
#: Of lists and objects in one body, token ids included; a schema of the greatest length has fewer.
_MOST_VALUES = 300_000
_HALF = re.compile("[\ud800-\udfff]")


class Body(BaseModel):
    """Only what is declared, of the declared type.  `neutral`: values by field that change nothing and are passed over, as null is."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    neutral: ClassVar[Mapping[str, tuple[Any, ...]]] = {}

    @model_validator(mode="before")
    @classmethod
    def _without_neutral(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {name: value for name, value in data.items() if value is not None and not _is_one_of(value, cls.neutral.get(name, ()))}


class TextPart(Body):
    type: Literal["text"]
    text: str


class Message(Body):
    neutral = {"refusal": (), "annotations": ([],), "tool_calls": ([],)}

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[TextPart]

    @field_validator("content", mode="before")
    @classmethod
    def _as_text(cls, content: Any) -> Any:
        if not isinstance(content, list):
            return _a_text(content, "a text or a list of parts of type `text`")
        for place, part in enumerate(content):
            kind = part.get("type") if isinstance(part, dict) else None
            if kind != "text" or set(part) != {"type", "text"} or not isinstance(part["text"], str):
                shown = f"`{kind}`" if isinstance(kind, str) else "another form"
                raise ValueError(f"part {place} is of {shown}; this model reads text alone: {{\"type\": \"text\", \"text\": …}}")
        return "".join(part["text"] for part in content)


class StreamOptions(Body):
    neutral = {"include_obfuscation": (False,)}

    include_usage: bool = False


class JsonSchema(Body):
    name: str = "value"
    description: str | None = None
    schema_: dict[str, Any] = Field(alias="schema")
    strict: bool | None = None


class ResponseFormat(Body):
    """`json_schema` belongs to the type `json_schema` alone."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None

    @model_validator(mode="after")
    def _whole(self) -> ResponseFormat:
        if (self.type == "json_schema") != (self.json_schema is not None):
            raise ValueError("`json_schema` and the type `json_schema` go together")
        return self


class StructuredOutputs(Body):
    """One of these, by vLLM's names."""

    neutral = {"json_object": (False,)}

    json_: dict[str, Any] | str | None = Field(None, alias="json")
    regex: str | None = None
    choice: list[str] | None = Field(None, min_length=1, max_length=10_000)
    grammar: str | None = None
    json_object: Literal[True] | None = None

    @model_validator(mode="after")
    def _one(self) -> StructuredOutputs:
        if len(self.model_fields_set) != 1:
            raise ValueError("expected one of `json`, `regex`, `choice`, `grammar`, `json_object`")
        return self


class Options(Body):
    """What both interfaces know.  `user`, `metadata` and `store` are taken and change nothing."""

    neutral = {
        "tools": ([],), "tool_choice": ("none", "auto"), "parallel_tool_calls": (True, False), "functions": ([],),
        "function_call": ("none", "auto"), "best_of": (1,), "suffix": ("",), "service_tier": ("auto", "default"),
        "modalities": (["text"],), "use_beam_search": (False,),
    }

    model: str
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: int = Field(1, ge=1)
    seed: int | None = Field(None, ge=-(2**63), lt=2**63)
    temperature: float = Field(1.0, ge=0, le=2)
    top_p: float = Field(1.0, ge=0, le=1)
    top_k: int = Field(0, ge=-1, le=2**31)
    min_p: float = Field(0.0, ge=0, le=1)
    frequency_penalty: float = Field(0.0, ge=-2, le=2)
    presence_penalty: float = Field(0.0, ge=-2, le=2)
    repetition_penalty: float = Field(1.0, ge=0.01, le=100)
    logit_bias: dict[str, float] = Field({}, max_length=1000)
    stop: str | list[str] = []
    min_tokens: int = Field(0, ge=0, le=2**31)
    ignore_eos: bool = False
    response_format: ResponseFormat | None = None
    regex: str | None = None
    structured_outputs: StructuredOutputs | None = None
    prompt_logprobs: Literal[0] | None = None
    user: str | None = None
    metadata: dict[str, Any] | None = None
    store: bool | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_bounded_size(cls, data: Any) -> Any:
        if half := _half_character(data):
            raise ValueError(f"half of a character (U+{ord(half):04X}) is no text")
        return data

    @field_validator("stop", mode="before")
    @classmethod
    def _as_texts(cls, stop: Any) -> Any:
        texts = [stop] if isinstance(stop, str) else stop
        if not isinstance(texts, list) or not all(isinstance(text, str) and 0 < len(text) <= _LONGEST_STOP for text in texts):
            raise ValueError(f"expected a text or a list of texts, none empty or longer than {_LONGEST_STOP:,} characters")
        if len(texts) > _MOST_STOPS:
            raise ValueError(f"{len(texts)} stop texts, expected {_MOST_STOPS} at most")
        return texts

    @field_validator("logit_bias")
    @classmethod
    def _by_token(cls, bias: dict[str, float]) -> dict[str, float]:
        for token, value in bias.items():
            if not (token.isascii() and token.isdigit() and len(token) < 10):
                raise ValueError(f"{token!r} is no token id")
            if not -100 <= value <= 100:
                raise ValueError(f"the bias of token {token} is {value}, expected -100 to 100")
        return bias

    @model_validator(mode="after")
    def _stream_options_with_streams(self) -> Options:
        if self.stream_options is not None and not self.stream:
            raise ValueError("`stream_options` is for `stream: true`")
        return self


class ChatBody(Options):
    """Of `/v1/chat/completions`.  A last message of the assistant is gone on with."""

    messages: list[Message] = Field(min_length=1)
    max_tokens: int | None = Field(None, ge=1, le=2**31)
    max_completion_tokens: int | None = Field(None, ge=1, le=2**31)
    logprobs: bool = False
    top_logprobs: int = Field(0, ge=0, le=20)
    heal: bool = True
    continue_final_message: bool | None = None
    add_generation_prompt: bool | None = None

    @model_validator(mode="after")
    def _fits(self) -> ChatBody:
        if self.top_logprobs and not self.logprobs:
            raise ValueError("`top_logprobs` is for `logprobs: true`")
        if self.max_tokens and self.max_completion_tokens and self.max_tokens != self.max_completion_tokens:
            raise ValueError("`max_tokens` and `max_completion_tokens` are two names of one limit, and differ")
        continues = self.messages[-1].role == "assistant"
        if self.continue_final_message not in (None, continues) or self.add_generation_prompt not in (None, not continues):
            what = "is gone on with" if continues else "is closed, and the assistant begins"
            role = self.messages[-1].role
            raise ValueError(f"the last message is the {role}'s: its turn {what}, whatever `continue_final_message` says")
        return self


class CompletionBody(Options):
    """Of `/v1/completions`: raw text, or token ids, one prompt or several."""

    prompt: str | list[str] | list[int] | list[list[int]]
    max_tokens: int = Field(16, ge=0, le=2**31)
    logprobs: int | None = Field(None, ge=0, le=20)
    echo: bool = False
    heal: bool = False

    @field_validator("prompt", mode="before")
    @classmethod
    def _of_one_kind(cls, prompt: Any) -> Any:
        if isinstance(prompt, str) or _are_ids(prompt):
            return prompt
        if isinstance(prompt, list) and prompt and (all(isinstance(p, str) for p in prompt) or all(_are_ids(p) for p in prompt)):
            return prompt
        raise ValueError("expected a text, a list of texts, a list of token ids, or a list of such lists, none of them empty")

    @model_validator(mode="after")
    def _fits(self) -> CompletionBody:
        if self.max_tokens == 0 and not self.echo:
            raise ValueError("`max_tokens` is 0, which is for `echo: true`")
        if self.echo and self.logprobs:
            raise ValueError("`logprobs` with `echo` gives the prompt's own tokens and no others: it must be 0")
        if self.echo and self.stream:
            raise ValueError("`echo` is not for streams")
        return self


def _half_character(data: Any) -> str:
    """Half of a surrogate pair somewhere in the JSON, which it can spell and no text can hold; empty where there is none.

    Raises `ValueError` where there are very many values: checking them would keep others waiting.
    """
    rest, count = [data], 0
    while rest:
        one = rest.pop()
        if isinstance(one, (dict, list)):
            count += len(one)
            if count > _MOST_VALUES:
                raise ValueError(f"the body has more than {_MOST_VALUES:,} values")
            inner = [*one.keys(), *one.values()] if isinstance(one, dict) else one
            rest += [part for part in inner if isinstance(part, (str, dict, list))]
        elif isinstance(one, str) and not one.isascii() and (found := _HALF.search(one)):
            return found[0]
    return ""


def _are_ids(prompt: Any) -> bool:
    return isinstance(prompt, list) and bool(prompt) and all(isinstance(i, int) and not isinstance(i, bool) for i in prompt)


def _is_one_of(value: Any, neutral: tuple[Any, ...]) -> bool:
    # `True == 1` in Python, and in no JSON.
    return any(value == one and type(value) is type(one) for one in neutral)


def _a_text(value: Any, expected: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected {expected}")
    return value
