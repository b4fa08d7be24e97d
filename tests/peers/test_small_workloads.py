"""The seven small workloads: who asks what after which answer, with both kinds of client, and what the least time of them is."""

import asyncio

import pytest

from lmc.cli.bench_peers import WORKLOADS
from lmc.cli.peers.contestants import Ledger
from lmc.cli.peers.exchange import PeerAnswer, PeerAsk
from lmc.cli.peers.floor import floor_seconds
from lmc.cli.peers.small_run import Run
from lmc.cli.peers.small_workloads import SMALL_WORKLOADS, Stage, before_run
from lmc.runtime.roofline import Roofline
from tests.peers.small_data import REGEX, small_set

DATA = small_set(0)
BY_NAME = {workload.name: workload for workload in SMALL_WORKLOADS}
# Generations, tokens written, and the most that are under way at a time: in parallel, and one after the other in a program.
SHAPES = {
    "W1": (4, 12, 4, 4), "W2": (2 * 39, 2 * 78, 54, 2), "W3": (6, 18, 6, 2), "W4": (2, 400, 2, 2), "W5": (4, 12, 2, 2), "W6": (6, 16, 4, 2),
    "W7 prefill": (1, 1, 1, 1), "W7 batch 1": (1, 2, 1, 1), "W7 batch 8": (8, 16, 8, 8), "W7 batch 32": (32, 64, 32, 32),
}


class Answering:
    """Writes 200, 201, … and counts who is under way."""

    def __init__(self):
        self.asked, self.running, self.most = [], 0, 0

    async def __call__(self, one: PeerAsk) -> PeerAnswer:
        self.asked.append(one)
        self.running += 1
        self.most = max(self.most, self.running)
        for _ in range(3):
            await asyncio.sleep(0)
        self.running -= 1
        return PeerAnswer(tuple(200 + place for place in range(one.max_tokens)), "x" * one.max_tokens, "length", len(one.ids), 0)


def ran(name: str, *, parallel: bool = True) -> tuple[Ledger, Answering]:
    workload, engine = BY_NAME[name], Answering()
    ledger = Ledger(engine)
    asyncio.run(workload.run(DATA[workload.key], ledger.ask, parallel))
    return ledger, engine


@pytest.mark.parametrize("name", SHAPES)
def test_shape(name):
    calls, output, at_once, one_by_one = SHAPES[name]
    for parallel, most in ((True, at_once), (False, one_by_one)):
        ledger, engine = ran(name, parallel=parallel)
        run = ledger.run(1.0, None, None)
        assert (run.calls, run.output, engine.most) == (calls, output, most)
    assert BY_NAME[name].split == (at_once != one_by_one)
    # All stages together write what is written.
    written = [stage for stage in BY_NAME[name].stages(DATA[BY_NAME[name].key]) if stage.new is not None]
    assert name == "W4" or sum(stage.rows * stage.new for stage in written) == output


def test_the_table_is_whole():
    assert set(SHAPES) == set(BY_NAME) and {workload.key for workload in SMALL_WORKLOADS} == set(WORKLOADS)


def test_a_branch_goes_on_from_what_its_parent_wrote():
    _, engine = ran("W2")
    root = DATA["W2"]["roots"][0]
    prompts = {one.ids for one in engine.asked}
    assert (*root, 65, 200, 201, 66, 200, 201, 67) in prompts and (*root, 65) in prompts
    assert all(one.ignore_eos and one.temperature == 0 for one in engine.asked)


def test_samples_have_seeds_of_their_own():
    _, engine = ran("W3")
    assert len({one.seed for one in engine.asked}) == 6 and {one.temperature for one in engine.asked} == {0.7}


def test_turns_and_merges_hold_what_was_written():
    data = DATA["W5"]["turns"][0]
    assert (*data[0], 200, 201, 202, *data[1]) in {one.ids for one in ran("W5")[1].asked}
    merged = (*DATA["W6"]["essays"][0], 70, 200, 201, 71, 200, 201, 72)
    assert merged in {one.ids for one in ran("W6")[1].asked}


def test_objects_are_held_to_the_regex():
    assert {one.regex for one in ran("W4")[1].asked} == {REGEX} and BY_NAME["W4"].needs == {"regex"}


def test_prompts_of_decoding_are_there_before_the_clock():
    engine = Answering()
    for name, count in (("W1", 0), ("W7 prefill", 0), ("W7 batch 8", 8)):
        engine.asked.clear()
        asyncio.run(before_run(BY_NAME[name], DATA[BY_NAME[name].key], engine))
        assert len(engine.asked) == count and all(one.max_tokens == 1 for one in engine.asked)


def test_the_fewest_prompt_tokens():
    """A prefix once, each question once, and the last token of a prompt that is all there."""
    ledger, _ = ran("W1")
    prefix, suffixes = DATA["W1"]["prefix"], DATA["W1"]["suffix"]
    # Questions begin alike: "0:1: ", "0:2: ".
    assert ledger.fewest() == len(prefix) + len(suffixes[0]) + 3 * (len(suffixes[0]) - 2)
    assert ran("W3")[0].fewest() == len(DATA["W3"]["prompts"][0]) + len(DATA["W3"]["prompts"][1]) - 2 + 2 * 2


# A second for a pass's weights; products cost a second for 100 rows, from then on.
ROOF = Roofline(bandwidth=200.0, products={1: 1e9, 512: 1e9}, layer_numbers=50, head_numbers=50, number_bytes=2, threads=2)


def run_of(lengths: tuple[int, ...]) -> Run:
    return Run(1.0, len(lengths), 0, sum(lengths), 0, None, None, (), lengths)


def test_the_floor():
    # 1,024 tokens of prompts in two passes; of three tokens the first comes with them.
    assert floor_seconds(ROOF, BY_NAME["W1"], DATA["W1"], 1024, run_of(())) == pytest.approx(2 + 2)
    # Prompts are there before the clock: only decoding is counted, and all of it.
    assert floor_seconds(ROOF, BY_NAME["W7 batch 8"], DATA["W7"], 1024, run_of(())) == pytest.approx(2)
    # As long as the longest object.
    assert floor_seconds(ROOF, BY_NAME["W4"], DATA["W4"], 0, run_of((3, 6))) == pytest.approx(5)
    assert BY_NAME["W4"].stages(DATA["W4"]) == [Stage(2, None)]


def test_a_pass_is_as_slow_as_the_slower_of_memory_and_products():
    roof = Roofline(bandwidth=1000.0, products={1: 100.0, 32: 400.0}, layer_numbers=300, head_numbers=200, number_bytes=2, threads=1)
    assert roof.weight_bytes == 1000 and roof.pass_seconds(0, 0) == 1.0
    assert roof.pass_seconds(1, 1) == pytest.approx(2 * 500 / 100) and roof.pass_seconds(32, 0) == pytest.approx(2 * 300 * 32 / 400)
    assert roof.rate(16.5) == pytest.approx(250) and roof.rate(512) == 400
