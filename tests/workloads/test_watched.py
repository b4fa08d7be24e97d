"""What was asked and written is kept as it happened, and gives the fewest prompt tokens that a cache can leave."""

import asyncio
from array import array
from itertools import islice
from pathlib import Path

import pytest

from lmc.cli.workloads.data import Data
from lmc.cli.workloads.measuring import run_program
from lmc.cli.workloads.optimum import fewest_computed
from lmc.cli.workloads.own_run import Lmc
from lmc.cli.workloads.table import WORKLOADS
from lmc.cli.workloads.watched import Asked, WatchedSession, Written
from lmc.embed import load_program
from lmc.runtime.host import bind_externs
from lmc.runtime.machine import Machine
from lmc.runtime.open_session import open_session

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "workloads"
SAMPLE = Data(EXAMPLES / "sample")
BY_NAME = {workload.name: workload for workload in WORKLOADS}
DRY = {"model": "", "cache": None, "dry": True, "dtype": "float32"}


def asked(text: str, least: int = 1) -> Asked:
    return Asked(array("I", list(text.encode())), least)


def written(text: str) -> Written:
    return Written(array("I", list(text.encode())))


@pytest.mark.parametrize("events, fewest", [
    ([], 0),
    ([asked("abcd")], 4),
    ([asked("abcd"), asked("abce")], 4 + 1),
    ([asked("abcd"), asked("abcd"), asked("ab")], 4 + 1 + 1),
    ([asked("ab"), asked("abcd")], 2 + 2),
    # Two turns: what was written is known, the new words are not.
    ([asked("ab"), written("abxyz"), asked("abxyzcd")], 2 + 2),
    ([asked("ab"), written("abx"), asked("abxycd")], 2 + 3),
    # Options of a choice: the tokens whose successors are scored are computed for each.
    ([asked("abcde", 2), asked("abcdf", 2), asked("abcdf", 2)], 5 + 2 + 2),
    ([asked("abcd"), asked("xbcd")], 8),
])
def test_fewest_computed(events, fewest):
    assert fewest_computed(events) == fewest


def brute_force(events) -> int:
    known, computed = set(), 0
    for event in events:
        prefixes = [tuple(event.ids[:end + 1]) for end in range(len(event.ids))]
        if isinstance(event, Asked):
            new = sum(prefix not in known for prefix in prefixes)
            computed += max(new, event.least)
        known.update(prefixes)
    return computed


@pytest.mark.parametrize("name", [name for name in BY_NAME if name not in ("tree_of_thought_30", "multi_turn_chat_long")])
def test_no_run_computes_less_and_ours_hardly_more(name):
    workload = BY_NAME[name]
    outcome = Lmc(EXAMPLES, DRY).run(workload, list(islice(workload.rows(SAMPLE), 3)), SAMPLE)
    assert outcome.fewest <= outcome.computed <= outcome.prompt
    assert outcome.best_hit_rate - 0.02 <= outcome.hit_rate <= outcome.best_hit_rate


@pytest.mark.parametrize("name, calls, prompts", [("json_fields", 5, 5), ("hellaswag", 1, 4), ("llm_judge", 7, 7)])
def test_every_prompt_is_kept(name, calls, prompts):
    """Those of pieces that the compiler has put into one request, too."""
    workload = BY_NAME[name]
    events, results = watch(workload, 1)
    assert results[0].report.calls == calls
    assert sum(isinstance(event, Asked) for event in events) == prompts
    assert fewest_computed(events) == brute_force(events)
    if name == "json_fields":
        pairs = list(zip(events[1::2], events[2::2]))
        assert all(isinstance(before, Written) and isinstance(after, Asked) for before, after in pairs)
        # A field that was cut at its limit is written again by the program; one goes on from the others.
        assert any(after.ids[:len(before.ids)] == before.ids for before, after in pairs)


def watch(workload, count: int):
    program = load_program(EXAMPLES / f"{workload.program}.lmp")
    session = open_session(**DRY)
    watched = WatchedSession(session)

    async def run():
        machine = Machine(program, watched, bind_externs(program, workload.externs(SAMPLE), strict=True))
        return await run_program(machine, workload, list(islice(workload.rows(SAMPLE), count)))

    try:
        return watched.events, asyncio.run(run()).results
    finally:
        session.close()


def test_a_cut_text_ends_with_a_token_that_was_never_read():
    """The turn after it computes that token, and no other that was written."""
    workload = BY_NAME["multi_turn_chat_short"]
    events, _ = watch(workload, 1)
    turns = [event for event in events if isinstance(event, Asked)]
    ends = [event for event in events if isinstance(event, Written)]
    asked_for = [turn["reply_tokens"] for turn in next(iter(workload.rows(SAMPLE)))["turns"]]
    assert [len(end.ids) - len(turn.ids) for turn, end in zip(turns, ends)] == [count - 1 for count in asked_for]
