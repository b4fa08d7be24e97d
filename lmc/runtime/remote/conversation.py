"""Prompts for servers that know their own tokens: the machine makes contexts over bytes, and they are read back into turns.

    <|user|> H i <|assistant|> S u r e :          Conversation((Turn("user", "Hi"), Turn("assistant", "Sure:")))
    O n c e   u p o n                             Conversation((), raw="Once upon")

A control token stands for the beginning of a turn alone, so no text of a program can be one.  No tokenizer is needed and no chat
template: both are the server's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lmc.runtime.cassette_vocabulary import ReplayTokenizer, replayed
from lmc.runtime.prompt_pieces import Control, prompt_pieces
from lmc.runtime.template import ChatTemplate

ROLES = ("system", "user", "assistant")


@dataclass(frozen=True, slots=True)
class Turn:
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """`raw`: text without turns, None where there are turns.  The last turn is that of the assistant, who goes on with it."""

    turns: tuple[Turn, ...]
    raw: str | None = None

    @property
    def kind(self) -> str:
        return "chat" if self.raw is None else "raw"

    @property
    def begun(self) -> str:
        """What the assistant has said already in the turn that is to go on."""
        return self.turns[-1].text if self.turns and self.turns[-1].role == "assistant" else ""

    def messages(self) -> list[dict[str, str]]:
        """The turns as chat interfaces take them; an assistant's turn without text is the one that is asked for."""
        turns = self.turns[:-1] if self.turns and self.turns[-1] == Turn("assistant", "") else self.turns
        return [{"role": turn.role, "content": turn.text} for turn in turns]


def remote_vocabulary() -> tuple[ReplayTokenizer, ChatTemplate]:
    """Bytes, a control token for the beginning of each kind of turn, and the template that puts them."""
    def mark(role: str) -> list[Any]:
        return [{"control": _mark(role)}]

    between = {ended: {begun: mark(begun) for begun in ROLES if begun not in (ended, "system")} for ended in ROLES}
    tokenizer, template = replayed({
        "name": "", "controls": ["", *map(_mark, ROLES)], "ends": [""], "bos": None, "begin": None, "space_at_start": False,
        "space_before_space": False, "template": {"start": {role: mark(role) for role in ROLES}, "between": between},
    })
    assert template is not None
    return tokenizer, template


def conversation(tokenizer: ReplayTokenizer, ids: Iterable[int], tail: bytes = b"") -> Conversation:
    """The turns that a prompt of this vocabulary spells; `tail` are bytes that follow the last id."""
    turns: list[Turn] = []
    text, role = "", None
    for piece in prompt_pieces(tokenizer, ids, tail):
        if isinstance(piece, Control):
            if role is not None:
                turns.append(Turn(role, text))
            text, role = "", piece.text[2:-2]
        else:
            text += piece
    return Conversation((), text) if role is None else Conversation((*turns, Turn(role, text)))


def _mark(role: str) -> str:
    return f"<|{role}|>"
