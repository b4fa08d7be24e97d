"""What the assistant has said, sent back, is read in the tokens it was written in, where that was asked for."""

from __future__ import annotations

import pytest

import lmc
from lmc.runtime.context import Context
from lmc.server.known_turns import KnownTurns

from tests.server.running import KEYS, keyed, running

TALK = '''
def talk(first: str) -> str:
    system: "You are brief."
    user: "${first}"
    assistant: "Well: ${a := gen(max_tokens=20, stop="\\n")} and${b := gen(max_tokens=12)}"
    user: "Why?"
    assistant: c = gen(max_tokens=20)
    user: "Really?"
    assistant: d = gen(max_tokens=20)
    return a + "|" + b + "|" + c + "|" + d
'''


@pytest.fixture(scope="module")
def exact():
    with running(exact_turns=True, **keyed("alice", "bob")) as one:
        yield one


@pytest.mark.parametrize("backend", ["openai", "vllm"])
def test_a_program_on_a_server_is_the_program_here(exact, backend, tmp_path, monkeypatch):
    (tmp_path / "talk.lmp").write_text(TALK)
    monkeypatch.setenv("LMC_TEST_KEY", KEYS["alice"])
    with lmc.load(tmp_path / "talk.lmp", dry=True) as here, \
            lmc.load(tmp_path / "talk.lmp", backend=backend, base_url=f"{exact.url}/v1", model="dry", key_env="LMC_TEST_KEY") as there:
        for first in ("Tell me about tea.", "And coffee?", "the the of"):
            assert there.talk(first=first) == here.talk(first=first)


def conversation(served, who: str, turns: int = 4):
    messages, usages = [], []
    for number in range(turns):
        messages.append({"role": "user", "content": f"Question {number}?"})
        answer = served.client(who).chat.completions.create(model="dry", messages=messages, temperature=1.0, seed=5, max_tokens=40)
        messages.append({"role": "assistant", "content": answer.choices[0].message.content})
        usages.append(answer.usage)
    return messages, usages


def test_the_cache_has_all_that_was_said(exact):
    _, usages = conversation(exact, "alice")
    for before, after in zip(usages, usages[1:]):
        assert after.prompt_tokens_details.cached_tokens >= before.total_tokens - 2
    with running(**keyed("alice")) as plain:
        _, others = conversation(plain, "alice")
    assert any(after.prompt_tokens_details.cached_tokens < before.total_tokens - 2 for before, after in zip(others, others[1:]))


def test_what_was_said_to_others_is_not_known(exact):
    messages, _ = conversation(exact, "alice")
    ask = {"model": "dry", "messages": [*messages, {"role": "user", "content": "So?"}], "temperature": 0, "max_tokens": 10}
    alice, bob = (exact.client(who).chat.completions.create(**ask) for who in ("alice", "bob"))
    with running() as plain:
        anybody = plain.client().chat.completions.create(**ask)
    assert bob.choices[0].message == anybody.choices[0].message != alice.choices[0].message


def test_the_longest_beginning_counts_and_the_oldest_is_forgotten():
    turns, opened = KnownTurns(), Context((1, 2), "assistant\n", 0, "assistant")
    one, two = Context((1, 2, 3)), Context((1, 2, 3, 4))
    turns.note(opened, "Well", one)
    turns.note(opened, "Well, yes", two)
    assert turns.begun(opened, "Well, yes, then") == (two, ", then") and turns.begun(opened, "Well, no") == (one, ", no")
    assert turns.begun(opened, "Wel") == (opened, "Wel")
    other = Context((9,), "assistant\n")
    assert turns.begun(other, "Well") == (other, "Well")
    for number in range(100):
        turns.note(opened, f"text {number}", Context(tuple(range(10))))
    assert turns.begun(opened, "Well")[0] is opened, "64 beginnings of one turn are kept"
    for number in range(40):
        turns.note(Context((number,), "x"), "said", Context(tuple(range(8000))))
    assert turns.begun(opened, "text 99")[0] is opened and turns.begun(Context((39,), "x"), "said")[1] == ""
