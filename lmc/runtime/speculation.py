"""Several generations from one answer of a model that is asked for text: the answer is held against the template.

    template   ⟨name, stop "\\n"⟩ "\\nhome: " ⟨home, stop "\\n"⟩
    asked      "name: "                                            without a stop
    answer     "Ada\\nhome: London\\nborn: 1815"
                ^^^        name: up to its stop
                   ^^^^^^^^ the text that follows, letter by letter
                           ^^^^^^ home, so nothing more is asked; the rest is thrown away

Where the answer leaves the template, what agreed is kept, and the next value is asked for as always.  So there are never more calls
than without, and the values are the same wherever the model goes on with a text as it would have gone on by itself.  (One that
writes in tokens may not: the text that is put before it can end inside a token that it would have written.)  Nobody counts the
answer's tokens here, so a value out of the middle is taken only where it has at most as many bytes as its limit has tokens.

`Ahead` is all that compares; it knows no network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from lmc.runtime.request import Finish


@dataclass(frozen=True, slots=True)
class Slot:
    """A generation of a template, and the text between the one before it and it."""

    text: str
    stops: tuple[str, ...]
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model wrote: without the stop text where it ended there."""

    text: str
    finish: Finish


class Completer(Protocol):
    """A model that goes on with a text: at most so many tokens, up to the first of the stop texts."""

    async def complete(self, prompt: str, *, max_tokens: int, stop: tuple[str, ...] = ()) -> Completion: ...


async def complete_template(completer: Completer, prompt: str, slots: Sequence[Slot], *, budget: int) -> list[Completion]:
    """What each slot of the template gives, in order.

    budget: how many tokens may be asked for past a stop, and so be thrown away, in one call; 0 asks for each slot alone.
    """
    given: list[Completion] = []
    ahead: Ahead | None = None
    for number, slot in enumerate(slots):
        prompt += slot.text
        ahead = ahead.behind(slot.text) if ahead is not None else None
        value = ahead.value(slot) if ahead is not None else None
        if value is None:
            # Behind the last slot nothing can be won, and without a stop all that comes is the value.
            alone = number + 1 == len(slots) or not slot.stops or slot.max_tokens > budget
            answer = await completer.complete(prompt, max_tokens=slot.max_tokens, stop=slot.stops if alone else ())
            ahead = None if alone else Ahead(answer.text, answer.finish)
            value = answer if alone else Ahead(answer.text, answer.finish).own_value(slot)
        given.append(value)
        prompt += value.text
        ahead = ahead.behind(value.text) if ahead is not None else None
    return given


@dataclass(frozen=True, slots=True)
class Ahead:
    """What a model wrote that is not taken yet, and why it ended there."""

    text: str
    finish: Finish

    def behind(self, text: str) -> Ahead | None:
        """What follows `text`; None where it does not begin so, and is of no use."""
        return Ahead(self.text[len(text):], self.finish) if self.text.startswith(text) else None

    def own_value(self, slot: Slot) -> Completion:
        """What the slot gives that was asked for, without its stops."""
        end = first_stop(self.text, slot.stops)
        return Completion(self.text, self.finish) if end is None else Completion(self.text[:end[0]], Finish.STOP)

    def value(self, slot: Slot) -> Completion | None:
        """What a later slot gives; None where that is not certain."""
        end = first_stop(self.text, slot.stops)
        if end is not None:
            start, stop = end
            certain = _bytes(self.text[:start] + stop) <= slot.max_tokens
            return Completion(self.text[:start], Finish.STOP) if certain else None
        # The model ended here, and not at the last token that it was allowed.
        certain = self.finish is Finish.EOS and _bytes(self.text) < slot.max_tokens
        return Completion(self.text, Finish.EOS) if certain else None


def first_stop(text: str, stops: Sequence[str]) -> tuple[int, str] | None:
    """Where the stop that completes first begins, and which it is; of two that complete together the longer one."""
    found = [(start + len(stop), start, stop) for stop in stops if (start := text.find(stop)) >= 0]
    if not found:
        return None
    _, start, stop = min(found)
    return start, stop


def _bytes(text: str) -> int:
    return len(text.encode())
