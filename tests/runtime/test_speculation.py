"""A template over a model that is asked for text: the same values with and without looking ahead, and never more calls."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from hashlib import blake2b

from hypothesis import given, settings
from hypothesis import strategies as st

from lmc.runtime.request import Finish
from lmc.runtime.speculation import Ahead, Completion, Slot, complete_template, first_stop


@dataclass
class TextModel:
    """Goes on with a text by `script` where it is in the middle of it, else by a letter that depends on the text; `end` ends it.

    Tokens are 1 to 3 characters, wherever they begin.
    """

    script: str
    salt: int = 0
    calls: list[tuple[str, int, tuple[str, ...]]] = field(default_factory=list)

    async def complete(self, prompt: str, *, max_tokens: int, stop: tuple[str, ...] = ()) -> Completion:
        self.calls.append((prompt, max_tokens, stop))
        written = ""
        for _ in range(max_tokens):
            token = self.token(prompt + written)
            written += token.rstrip("$")
            end = first_stop(written, stop)
            if end is not None:
                return Completion(written[: end[0]], Finish.STOP)
            if token.endswith("$"):
                return Completion(written, Finish.EOS)
        return Completion(written, Finish.LENGTH)

    def token(self, text: str) -> str:
        token = ""
        for _ in range(1 + self.random(text, 3)):
            token += self.letter(text + token)
            if token.endswith("$"):
                break
        return token

    def letter(self, text: str) -> str:
        if self.script.startswith(text) and len(text) < len(self.script):
            return self.script[len(text)]
        return "ab.é\n$"[self.random(text + "!", 6)]

    def random(self, text: str, count: int) -> int:
        return blake2b(f"{self.salt} {text}".encode(), digest_size=2).digest()[0] % count


def complete(model: TextModel, slots: list[Slot], budget: int) -> list[Completion]:
    return asyncio.run(complete_template(model, "", slots, budget=budget))


letters = st.text("ab.é\n", max_size=4)
slots = st.builds(Slot, letters, st.lists(st.text("ab.\n", min_size=1, max_size=2), max_size=2).map(tuple), st.integers(1, 14))
templates = st.lists(slots, min_size=1, max_size=6)


@st.composite
def followed(draw):
    """A template, and a script that follows it for a while: each value and its stop, or the text that comes next."""
    template = draw(templates)
    script = ""
    for slot in template:
        script += slot.text + draw(letters)
        if slot.stops and draw(st.booleans()):
            script += slot.stops[0]
    return template, script + draw(st.sampled_from(["", "$", "b"]))


@settings(max_examples=400, deadline=None)
@given(followed(), st.integers(0, 20), st.integers(0, 5))
def test_values_are_those_of_single_calls_and_calls_are_never_more(case, budget, salt):
    template, script = case
    alone, ahead = TextModel(script, salt), TextModel(script, salt)
    assert complete(ahead, template, budget) == complete(alone, template, 0)
    assert len(ahead.calls) <= len(alone.calls) == len(template)
    assert all(call in alone.calls or call[1] <= budget for call in ahead.calls)


PERSON = [Slot("name: ", ("\n",), 40), Slot("\nhome: ", ("\n",), 40), Slot("\nborn: ", ("\n",), 40)]


def test_an_answer_that_keeps_to_the_template_is_one_call():
    model = TextModel("name: Ada\nhome: London\nborn: 1815\n$")
    assert [c.text for c in complete(model, PERSON, 64)] == ["Ada", "London", "1815"]
    assert model.calls == [("name: ", 40, ())]


def test_without_a_budget_each_value_is_a_call():
    model = TextModel("name: Ada\nhome: London\nborn: 1815\n$")
    assert [c.text for c in complete(model, PERSON, 39)] == ["Ada", "London", "1815"]
    assert [stop for _, _, stop in model.calls] == [("\n",)] * 3


def test_what_agrees_before_another_text_is_kept():
    """It wrote `house` for `home`: the name is taken, and the rest asked for anew."""
    model = TextModel("name: Ada\nhouse: 7\nborn: 1815\n$")
    values = complete(model, PERSON, 64)
    assert values[0] == Completion("Ada", Finish.STOP)
    assert [prompt for prompt, _, _ in model.calls[:2]] == ["name: ", "name: Ada\nhome: "] and len(model.calls) <= 3


def test_a_value_that_may_have_passed_its_limit_is_asked_for():
    long = "L" * 12
    template = [Slot("name: ", ("\n",), 40), Slot("\nhome: ", ("\n",), 12)]
    model = TextModel(f"name: Ada\nhome: {long}\n$")
    assert complete(model, template, 64)[1].text == long and len(model.calls) == 2
    model = TextModel(f"name: Ada\nhome: {long[1:]}\n$")
    assert complete(model, template, 64)[1].text == long[1:] and len(model.calls) == 1


def test_where_the_model_ended_the_last_value_ends():
    model = TextModel("name: Ada\nhome: London$")
    assert complete(model, PERSON[:2], 64)[1] == Completion("London", Finish.EOS) and len(model.calls) == 1


def test_the_stop_that_completes_first_counts_and_of_two_the_longer_one():
    assert first_stop("one two", ("two", "ne")) == (1, "ne")
    assert first_stop("one two", ("o", "two")) == (0, "o")
    assert first_stop("a##", ("#", "##")) == (1, "#")
    assert first_stop("stop", ("p", "op")) == (2, "op")
    assert first_stop("abc", ()) is None and first_stop("abc", ("d",)) is None


def test_looking_ahead_compares_letter_by_letter():
    ahead = Ahead("\nhome: Lon", Finish.LENGTH)
    assert ahead.behind("\nhome: ") == Ahead("Lon", Finish.LENGTH) and ahead.behind("\nHome: ") is None
    assert ahead.behind("\nhome: London") is None
    assert Ahead("Lon", Finish.LENGTH).value(Slot("", ("\n",), 9)) is None
    assert Ahead("Lon", Finish.EOS).value(Slot("", ("\n",), 4)) == Completion("Lon", Finish.EOS)
    assert Ahead("Lon", Finish.EOS).value(Slot("", ("\n",), 3)) is None
    assert Ahead("é\n", Finish.LENGTH).value(Slot("", ("\n",), 2)) is None
