"""Where the engine's time goes: by a clock of the test's own, and by counting calls, which no neighbour disturbs."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import count
from pathlib import Path

import pytest

from lmc.cli.entry import run_command
from lmc.runtime import radix
from lmc.runtime.dry import DryModel, dry_tokenizer
from lmc.runtime.engine import Engine
from lmc.runtime.request import GenerateRequest
from lmc.runtime.time_shares import Stopwatch, TimeShares, Work, shares_line
from tests.runtime.test_scheduler import prompt


class Hand:
    """A clock that stands still until it is moved."""

    def __init__(self):
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_each_moment_counts_once_for_the_innermost_work():
    hand = Hand()
    watch = Stopwatch(hand)
    hand.now = 5
    assert watch.turn_to(Work.SCHEDULER) is Work.IDLE
    hand.now = 7
    before = watch.turn_to(Work.TREE)
    hand.now = 8
    assert watch.turn_to(before) is Work.TREE
    hand.now = 11
    watch.turn_to(Work.IDLE)
    hand.now = 100
    assert watch.shares == TimeShares(0, 0, 0, scheduler=5, tree=1, rest=0) and watch.shares.overhead == 6
    assert shares_line(watch.shares).startswith("engine 6.00 s: model 0.0 %") and "tree 16.7 %" in shares_line(watch.shares)


def test_the_models_time_is_the_models():
    hand = Hand()

    class Slow(DryModel):
        def forward(self, rows):
            hand.now += 3
            if len(rows) == 2:
                raise RuntimeError("out of memory")
            return super().forward(rows)

    engine = Engine(Slow(), dry_tokenizer(), slots=500, clock=hand)
    engine.submit(GenerateRequest((1, 2, 3), 4, ignore_eos=True))
    steps = 0
    while engine.busy:
        engine.step()
        hand.now += 50  # between two steps
        steps += 1
    assert engine.stats.time == TimeShares(3.0 * steps, 0, 0, 0, 0, 0)
    engine.submit(GenerateRequest((1, 2, 3), 4))
    engine.submit(GenerateRequest((4, 5, 6), 4))
    engine.step()
    assert engine.stats.time == TimeShares(3.0 * steps + 3, 0, 0, 0, 0, 0), "a step that failed is over, too"


def multi_turn(engine: Engine, seed: int) -> None:
    """A conversation of four turns, each of which adds fifty tokens."""
    ids = tuple(t % 250 for t in prompt(seed, 50))
    for turn in range(4):
        engine.submit(GenerateRequest(ids, 8, ignore_eos=True))
        while engine.busy:
            events = engine.step()
        ids += events[-1].result.ids + tuple(t % 250 for t in prompt(seed * 10 + turn, 50))


def filled(nodes: int) -> Engine:
    """An engine whose tree has so many nodes, of prompts that begin alike and part at the second token or the third."""
    engine = Engine(DryModel(), dry_tokenizer(), slots=1 << 17)
    tree, pool = engine._scheduler.tree, engine._scheduler.pool
    for number in count():
        if tree.node_count >= nodes:
            return engine
        ids = [number % 3, number // 3 % 200, number // 600 % 200, 7, 8]
        _, unused = tree.extend(tree.root, ids, pool.allocate(5))
        pool.free(unused)


def calls_by_file(run) -> Counter[str]:
    """How many functions of each file are called."""
    calls: Counter[str] = Counter()

    def note(frame, event, _):
        if event == "call":
            calls[Path(frame.f_code.co_filename).name] += 1

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return calls


def test_a_tree_of_ten_thousand_nodes_is_no_more_work_than_an_empty_one():
    """The work of the tree is counted in calls; it must hang on what is looked for, not on what else is there."""
    small, large = filled(0), filled(10_000)
    assert large.stats.nodes >= 10_000
    in_small, in_large = (calls_by_file(lambda engine=engine: multi_turn(engine, 1)) for engine in (small, large))
    tree = Path(radix.__file__).name
    assert 0 < in_large[tree] <= 1.1 * in_small[tree] + 20
    assert in_large[tree] < 0.2 * in_large.total(), "and small beside the rest"


@pytest.mark.parametrize("quiet", [True, False])
def test_run_says_where_the_time_went(quiet, tmp_path, capsys):
    path = tmp_path / "ask.lmp"
    path.write_text('def ask() -> str:\n    user: "Hello"\n    assistant: answer = gen(max_tokens=3)\n    return answer\n')
    assert run_command(["run", str(path), "--dry", "--stats", *["-q"] * quiet]) == 0
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("engine ") and all(f"{work.name.lower()} " in last for work in Work if work is not Work.IDLE)
