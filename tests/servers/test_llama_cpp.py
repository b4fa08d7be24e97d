"""Programs on llama.cpp's own server, with the default model: the examples, and what an OpenAI interface has to get right."""

import asyncio
import json
import os
import urllib.request
from pathlib import Path

import pytest

import lmc
from benchmarks.peers.write_gguf import write_gguf
from lmc.diagnostics import LmcError
from tests.servers.llama_cpp import CONTEXT, how_to_start, llama_cpp
from tests.test_examples import CALLS, check_shape, run

pytestmark = [
    pytest.mark.model,
    pytest.mark.skipif(how_to_start(Path("x")) is None, reason="no llama.cpp here: `pip install xllamacpp`, or LMC_LLAMA_SERVER=/path/to/llama-server"),
]


@pytest.fixture(scope="module")
def server(model_folder, tmp_path_factory):
    """One server for all tests of this file, on the very weights of the default model's folder."""
    folder = tmp_path_factory.mktemp("llama")
    file = folder / "default.gguf"
    write_gguf(model_folder, file, "float32")
    with llama_cpp(file, folder / "server.log") as running:
        yield running
    file.unlink()


def settings(server, **network):
    return {"backend": "openai", "base_url": server.url, "model": "default", "network": {"deadline": 120, "attempts": 1, **network}}


#: What CI runs; `LMC_ALL_EXAMPLES=1` runs them all, which takes a minute or two.
EXAMPLES = sorted(CALLS) if os.environ.get("LMC_ALL_EXAMPLES") else ["classify", "react"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example(name, server):
    if name == "classify":
        # It chooses in raw text, where this interface gives no log-probabilities and takes no schema.
        with pytest.raises(LmcError, match="`select` in raw text"):
            run(name, level=2, **settings(server))
        return
    result, said, report = run(name, level=2, **settings(server))
    check_shape(name, result, said, report)
    # A schema behind a begun turn is refused once, and told as a grammar from then on.
    assert {attempt.outcome for attempt in report.attempts} <= {"answered", "400"}
    assert all(attempt.prompt for attempt in report.attempts if attempt.outcome == "answered")


PROGRAM = """\
type Wand:
    wood: str(max_len=16)
    length: 1..20

def free(topic: str) -> str:
    system: "You are terse."
    user: "Name one fact about ${topic}."
    assistant: a = gen(max_tokens=16)
    return a

def begun(topic: str) -> str:
    user: "Name one fact about ${topic}."
    assistant: "The fact is that${a := gen(max_tokens=16, stop=".")}"
    return a

def raw_text(topic: str) -> str:
    raw: "Here is a list about ${topic}:\\n1.${a := gen(max_tokens=16, stop="\\n")}"
    return a

def turns(topic: str) -> str:
    user: "Name one fact about ${topic}."
    assistant: a = gen(max_tokens=8)
    user: "And another one."
    assistant: b = gen(max_tokens=8)
    return a + " | " + b

def six_stops(topic: str) -> str:
    user: "Tell me about ${topic}."
    assistant: a = gen(max_tokens=24, stop=["§", "¤", "¶", "ß", "a", "e"])
    return a

def sampled(topic: str) -> str:
    user: "Tell me about ${topic}."
    assistant: a = gen(max_tokens=12, temperature=1.2)
    return a

def wand() -> Wand:
    user: "A wand as JSON with ${fields(Wand)}."
    assistant: w = gen(Wand, max_tokens=80)
    return w

def word() -> str:
    user: "Say a word in small letters."
    assistant: w = gen(regex=r"[a-z]{3,8}")
    return w

def house() -> str:
    user: "Which colour has the house?"
    assistant: h = select(["red", "blue", "green"])
    return h

def number() -> int:
    user: "A number from 1 to 5."
    assistant: n = gen(1..5)
    return n

def probable() -> str:
    user: "Say yes or no."
    assistant: a = gen(max_tokens=3, logprobs=2)
    return a

def probable_raw() -> str:
    raw: "Yes or no?${a := gen(max_tokens=3, logprobs=2)}"
    return a

def long(text: str) -> str:
    user: "${text}"
    assistant: a = gen(max_tokens=8)
    return a

def endless() -> str:
    user: "Tell me the history of the whole world."
    assistant: a = gen(max_tokens=1500)
    return a

def many(n: int) -> list[str]:
    user: "Tell me of numbers."
    fork i in range(n):
        user: "Tell me of ${i}."
        assistant: a = gen(max_tokens=2)
    join a as all
    return all
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("program") / "program.lmp"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def remote(program, server):
    with lmc.load(program, seed=3, **settings(server)) as module:
        yield module


@pytest.fixture(scope="module")
def local(program, model_folder):
    with lmc.load(program, seed=3, model=str(model_folder), deterministic=True) as module:
        yield module


@pytest.mark.parametrize("name", ["free", "begun", "raw_text", "turns"])
def test_greedy_text_is_that_of_a_run_in_this_process(remote, local, name):
    """The same weights in float32: what the server makes of turns, begun turns and raw text is what the local template makes of them."""
    assert getattr(remote, name)("tea") == getattr(local, name)("tea")


def test_six_stops_where_the_server_is_told_four(remote):
    said = remote.six_stops("apples")
    assert not set("§¤¶ßae") & set(said)


def test_seeds_are_honoured(program, server):
    said = []
    # The first run leaves its prompt in the server's cache; what is computed with it is the same only where the cache is.
    for seed in (1, 1, 1, 2):
        with lmc.load(program, seed=seed, **settings(server)) as module:
            said.append(module.sampled("tea"))
    assert said[1] == said[2] != said[3]


def test_values_are_what_their_types_say(remote):
    wand = remote.wand()
    assert len(wand.wood) <= 16 and wand.length in range(1, 21)
    word = remote.word()
    assert 3 <= len(word) <= 8 and word.isascii() and word.islower()
    assert remote.house() in ("red", "blue", "green") and remote.number() in range(1, 6)
    assert all(attempt.outcome == "answered" for attempt in remote.report.attempts)


@pytest.mark.parametrize("name", ["probable", "probable_raw"])
def test_log_probabilities_come_in_both_forms(remote, name):
    said = getattr(remote, name)()
    found = remote.report.logprobs[0]
    assert "".join(token.text for token in found.tokens).startswith(said)
    for token in found.tokens:
        assert token.logprob <= 0 and len(token.top) == 2 and token.top[0][1] >= token.top[1][1]


def test_a_prompt_that_is_too_long_is_an_error_with_its_place(remote, program):
    with pytest.raises(lmc.RunError, match="status 400.*context") as caught:
        remote.long("word " * CONTEXT)
    assert f"{program}:" in str(caught.value)


def test_more_at_once_than_the_server_takes_is_waited_for(remote):
    assert len(remote.many(6)) == 6


def test_who_is_cancelled_frees_the_slot(program, server):
    def at_work() -> bool:
        with urllib.request.urlopen(f"{server.url}/slots") as answer:
            return any(slot["is_processing"] for slot in json.load(answer))

    async def main() -> None:
        with lmc.load(program, **settings(server)) as module:
            asking = asyncio.create_task(module.aio.endless())
            while not await asyncio.to_thread(at_work):
                await asyncio.sleep(0.02)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            # To its end it would take many times as long.
            for _ in range(100):
                if not await asyncio.to_thread(at_work):
                    return
                await asyncio.sleep(0.05)
        raise AssertionError("the server goes on")

    asyncio.run(main())
