"""What a chat template puts around the turns, found by rendering conversations of sentinels.

    <|im_start|>user\\n  lmcturn0end  <|im_end|>\\n<|im_start|>assistant\\n  lmcturn1end  <|im_end|>\\n
    \\--- start[user] --/             \\----- between[user, assistant] ----/

A conversation is then the markers with the contents between them, verbatim: a value is never seen by the template.  What a
template cannot do (many have no system turn) is left out of the tables.  This file knows strings; tokens are the business of
`template.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmc.runtime.model.folder import read_json
from lmc.runtime.sandbox import TemplateError, render

_SPECIAL = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


@dataclass(frozen=True, slots=True)
class Markers:
    """start: what stands before the content of a first turn of that role (begin token and a default system text included)
    between: what stands between the contents of two turns, by (role that ends, role that begins)
    end: what closes an assistant's turn that is the last one
    differences: where a full rendering of a longer conversation would differ from these markers, in words
    """

    start: Mapping[str, str]
    between: Mapping[tuple[str, str], str]
    end: str
    differences: tuple[str, ...]


def read_markers(folder: Path) -> Markers | None:
    """The markers of the model's chat template, None if it has no template.  Raises TemplateError."""
    source = template_source(folder)
    return None if source is None else isolate(source, special_tokens(folder))


def template_source(folder: Path) -> str | None:
    """The template's text: from chat_template.jinja, chat_template.json or tokenizer_config.json, in this order."""
    if (folder / "chat_template.jinja").is_file():
        return (folder / "chat_template.jinja").read_text(encoding="utf-8")
    for name in ("chat_template.json", "tokenizer_config.json"):
        found = read_json(folder / name).get("chat_template") if (folder / name).is_file() else None
        if isinstance(found, list):
            found = {entry.get("name"): entry.get("template") for entry in found}
        if isinstance(found, dict):
            found = found.get("default")
        if found:
            return str(found)
    return None


def special_tokens(folder: Path) -> dict[str, str]:
    """The special tokens that templates may name: `{"eos_token": "<|im_end|>", …}`."""
    found: dict[str, str] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        data = read_json(folder / name) if (folder / name).is_file() else {}
        for key in _SPECIAL:
            text = data.get(key)
            # Some files give an object with the token's flags.
            text = text.get("content") if isinstance(text, dict) else text
            if isinstance(text, str):
                found[key] = text
    return found


def isolate(source: str, variables: Mapping[str, Any]) -> Markers:
    """Finds the markers.  Raises TemplateError if the template cannot be applied turn by turn."""
    probe = _Probe(source, variables)
    first = probe.pieces("user")
    opened = probe.pieces("user", generate=True)
    talk = probe.pieces("user", "assistant", "user", "assistant", "user", generate=True)
    # Without a generation prompt of its own, the template opens the assistant's turn as it does in a finished conversation.
    to_assistant = opened[1] if opened[1] != first[1] else talk[1]
    if not talk[0] == opened[0] == first[0]:
        raise TemplateError("what it writes before the first turn depends on what follows")
    if talk[2] != talk[4]:
        raise TemplateError("it ends the first turn of the assistant otherwise than the second")
    start, between = {"user": first[0]}, {("user", "assistant"): to_assistant, ("assistant", "user"): talk[2]}
    finished = probe.pieces("user", "assistant")
    differences = _differences(probe, to_assistant, [talk[1], talk[3], finished[1]])
    _add_system(probe, start, between)
    alone = probe.try_pieces("assistant")
    if alone is not None:
        start["assistant"] = alone[0]
    return Markers(start, between, finished[2], tuple(differences))


def _add_system(probe: _Probe, start: dict[str, str], between: dict[tuple[str, str], str]) -> None:
    pair = probe.try_pieces("system", "user", generate=True)
    if pair is None:
        return
    talk = probe.pieces("system", "user", "assistant", "user", generate=True)
    if talk[:2] != pair[:2] or talk[3] != between["assistant", "user"]:
        raise TemplateError("what it writes around the system's text depends on what follows")
    start["system"], between["system", "user"] = pair[:2]
    alone, opened = probe.try_pieces("system"), probe.try_pieces("system", generate=True)
    followed = probe.try_pieces("system", "assistant")
    if opened is not None and alone is not None and opened[1] != alone[1]:
        between["system", "assistant"] = opened[1]
    elif followed is not None:
        between["system", "assistant"] = followed[1]


def _differences(probe: _Probe, to_assistant: str, past: list[str]) -> list[str]:
    found = []
    if any(text != to_assistant for text in past):
        found.append("it opens the assistant's past turns otherwise than the turn that is being written")
    if not probe.keeps_spaces():
        found.append("it strips spaces and newlines around a turn's content")
    return found


class _Probe:
    __slots__ = ("_source", "_variables")

    def __init__(self, source: str, variables: Mapping[str, Any]):
        self._source = source
        self._variables = variables

    def pieces(self, *roles: str, generate: bool = False) -> list[str]:
        """The template's text before, between and after the contents of turns of these roles."""
        contents = [f"lmcturn{index}end" for index in range(len(roles))]
        rest = self._render(roles, contents, generate)
        pieces = []
        for role, content in zip(roles, contents):
            if rest.count(content) != 1:
                what = "drops or changes" if content not in rest else "repeats or reorders"
                raise TemplateError(f"it {what} the content of a turn of the {role} in the conversation {', '.join(roles)}")
            before, _, rest = rest.partition(content)
            pieces.append(before)
        return [*pieces, rest]

    def try_pieces(self, *roles: str, generate: bool = False) -> list[str] | None:
        """The same, or None where the template does not take such a conversation."""
        try:
            return self.pieces(*roles, generate=generate)
        except TemplateError:
            return None

    def keeps_spaces(self) -> bool:
        contents = [" \n lmcturn0end \n ", " \n lmcturn1end \n ", " \n lmcturn2end \n "]
        text = self._render(("user", "assistant", "user"), contents, True)
        return all(content in text for content in contents)

    def _render(self, roles: tuple[str, ...], contents: list[str], generate: bool) -> str:
        messages = [{"role": role, "content": content} for role, content in zip(roles, contents)]
        return render(self._source, {
            **self._variables, "messages": messages, "add_generation_prompt": generate, "tools": None, "documents": None,
        })
