"""Nothing changes: 300 random programs show the same as written and optimised, with every pass left out, with any cache.

Here each program takes one of the ways; `python -m tests.differential --full` takes all of them, and makes a wrong program small.
"""

import asyncio

import pytest

from tests.differential.examples import CASES, example_faults
from tests.differential.programs import random_program
from tests.differential.runs import differences
from tests.differential.shrink import shrunk
from tests.differential.ways import ALL, faults, observed_as_written, way_of

PROGRAMS, CHUNK = 300, 50


@pytest.mark.parametrize("start", range(0, PROGRAMS, CHUNK))
def test_random_programs_show_the_same_in_every_way(start):
    async def check() -> list[str]:
        wrong = []
        for seed in range(start, start + CHUNK):
            text = random_program(seed)
            if found := await faults(text, (way_of(seed),)):
                wrong.append("\n".join([f"seed {seed}", *found, text]))
        return wrong

    wrong = asyncio.run(check())
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("number, name", list(enumerate(CASES)))
def test_examples_show_the_same_in_every_way(number, name):
    """On the stand-in model, each in a third of the ways; `python -m tests.differential --examples` has all, there and on the real one."""
    assert asyncio.run(example_faults(name, ALL[number % 3 :: 3])) == []


def test_every_way_is_taken_by_many_programs():
    assert min(sum(way_of(seed) == way for seed in range(PROGRAMS)) for way in ALL) >= PROGRAMS // len(ALL)


def test_programs_are_of_every_kind():
    texts = [random_program(seed) for seed in range(PROGRAMS)]
    assert len(set(texts)) == PROGRAMS
    for piece in ("fork ", "branch ", "for ", "while ", "part ", "resume ", "here as", "select(", "score(", "gen(Note", "regex=", "seed=",
                  "temperature=", "try:", "errors=\"collect\"", "match ", "log(", "price(", "break", "continue", "+= [f", "elif ", "raw:",
                  "system:", "gen(Act", "context", " for x", "heal=False", "stop="):
        assert sum(piece in t for t in texts) >= 5, piece


def test_most_programs_come_to_their_end_and_ask_the_model():
    async def run() -> list[tuple[bool, int]]:
        shown = [await observed_as_written(random_program(seed)) for seed in range(40)]
        return [(not s.error, sum(map(len, s.generated.values()))) for s in shown]

    ended, calls = zip(*asyncio.run(run()))
    assert sum(ended) >= 30 and sum(not e for e in ended) >= 2
    assert sum(c >= 3 for c in calls) >= 20 and max(calls) >= 12


# ------------------------------------------------------------------- the comparison itself can fail

BASE = '''
extern def log(text: str) -> str

def main(topic: str, items: list[str]) -> str:
    user: "{ask}"
    assistant: a = gen(max_tokens=3)
    log("{said}")
    return "{back}"
'''


@pytest.mark.parametrize("change, found", [
    ({"ask": "Hello"}, "gen"), ({"said": "bye"}, "externs"), ({"back": "x"}, "value"),
])
def test_a_difference_is_found(change, found):
    async def both():
        plain = {"ask": "Hi", "said": "hi", "back": "done"}
        return [await observed_as_written(BASE.format(**p)) for p in (plain, {**plain, **change})]

    one, other = asyncio.run(both())
    assert differences(one, one, strict=True) == []
    assert any(found in d for d in differences(one, other, strict=True))


def test_a_wrong_program_is_made_small():
    text = random_program(3).replace("    return", "    log(\"needle\")\n    return")

    async def still_wrong(smaller: str) -> bool:
        return "needle" in smaller and "def main" in smaller

    assert asyncio.run(shrunk(text, still_wrong)).count("\n") <= 3
