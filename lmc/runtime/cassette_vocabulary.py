"""The part of a model that a cassette keeps, so that prompts can be made again without its files: control tokens and markers.

    model_data("default", tokenizer, template)     {"controls": ["<|im_end|>", …], "template": {"start": {"user": […]}}, …}
    tokenizer, template = replayed(data)           text is bytes, a control token is one id, tokens of answers are made

Prompts of the two vocabularies have the same pieces (`prompt_pieces`): that is what a cassette's entries are found by.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lmc.runtime.template import ChatTemplate, Marker


class ReplayTokenizer:
    """Bytes, the control tokens of a recorded model, and tokens of answers.  The interface is that of `tokenizer.Tokenizer`."""

    def __init__(self, data: dict[str, Any]):
        controls = data["controls"]
        self._control = {text: 256 + i for i, text in enumerate(controls)}
        self._texts = {id: text for text, id in self._control.items()}
        self.control_ids = frozenset(self._texts)
        self.token_bytes: list[bytes] = [bytes([b]) for b in range(256)] + [b""] * len(controls)
        self._made: dict[bytes, int] = {}
        self.end_ids = frozenset(self._control[text] for text in data["ends"])
        self.bos_id = None if data["bos"] is None else self._control[data["bos"]]
        self.begin_id = None if data["begin"] is None else self._control[data["begin"]]
        self.lossy = False
        self.longest_token = 1
        self._spaces = (data["space_at_start"], data["space_before_space"])

    def encode(self, text: str, *, at_start: bool = False) -> list[int]:
        """The bytes of ordinary text."""
        before = " " if at_start and self._spaces[text.startswith(" ")] else ""
        return list((before + text).encode())

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return b"".join(self.token_bytes[id] for id in ids)

    def control_id(self, text: str) -> int | None:
        return self._control.get(text)

    def control_text(self, id: int) -> str:
        return self._texts.get(id, "")

    def begins_longer_token(self, data: bytes) -> bool:
        """Nothing is reopened: the answer is known."""
        return False

    def token(self, data: Any) -> int:
        """The id of a token of an answer, made where there is none.  data: as `token_data` gives it."""
        if isinstance(data, dict) and "control" in data:
            return self._control[data["control"]]
        spelled = bytes.fromhex(data["bytes"]) if isinstance(data, dict) else data.encode()
        if len(spelled) == 1:
            return spelled[0]
        if spelled not in self._made:
            self._made[spelled] = len(self.token_bytes)
            self.token_bytes.append(spelled)
        return self._made[spelled]


def token_data(tokenizer: Any, id: int) -> Any:
    """A token as JSON data: its text, or its bytes where they are no whole text, or which control token it is."""
    if id in tokenizer.control_ids:
        return {"control": tokenizer.control_text(id)}
    data = tokenizer.token_bytes[id]
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"bytes": data.hex()}


def model_data(name: str, tokenizer: Any, template: ChatTemplate | None) -> dict[str, Any]:
    """What a cassette keeps of a model."""
    def spelling(id: int | None) -> str | None:
        return None if id is None else tokenizer.control_text(id)

    controls = sorted({text for id in tokenizer.control_ids if (text := tokenizer.control_text(id))} | {""})
    begun = [tokenizer.decode_bytes(tokenizer.encode(text, at_start=True)) for text in ("a", " a")]
    return {"name": name, "controls": controls, "ends": sorted(tokenizer.control_text(id) for id in tokenizer.end_ids),
            "bos": spelling(tokenizer.bos_id), "begin": spelling(tokenizer.begin_id),
            "space_at_start": begun[0] == b" a", "space_before_space": begun[1] == b"  a",
            "template": None if template is None else _template_data(template, tokenizer)}


def replayed(data: dict[str, Any]) -> tuple[ReplayTokenizer, ChatTemplate | None]:
    """Tokenizer and template from what was kept.  Raises `KeyError` for a control token that `controls` does not list."""
    tokenizer = ReplayTokenizer(data)
    if data["template"] is None:
        return tokenizer, None

    def marker(pieces: list[Any]) -> Marker:
        return tuple(p if isinstance(p, str) else tokenizer.token(p) for p in pieces)

    start = {role: marker(pieces) for role, pieces in data["template"]["start"].items()}
    rows = data["template"]["between"].items()
    between = {(ended, begun): marker(pieces) for ended, row in rows for begun, pieces in row.items()}
    return tokenizer, ChatTemplate(start, between)


def _template_data(template: ChatTemplate, tokenizer: Any) -> dict[str, Any]:
    def pieces(marker: Marker) -> list[Any]:
        return [p if isinstance(p, str) else {"control": tokenizer.control_text(p)} for p in marker]

    between: dict[str, dict[str, Any]] = {}
    for (ended, begun), marker in template.between.items():
        between.setdefault(ended, {})[begun] = pieces(marker)
    return {"start": {role: pieces(marker) for role, marker in template.start.items()}, "between": between}
