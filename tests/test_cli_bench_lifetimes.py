"""`lmc bench lifetimes`: a small trace of each kind, through the real scheduler and tree; hit rates are counts, not times."""

import dataclasses

import pytest

from lmc.cli import bench_lifetimes
from lmc.cli.bench_lifetimes import SHAPES, Replay, Shape, working_set
from lmc.cli.entry import run_command
from lmc.cli.lifetimes_program import found

SMALL = Shape(header=20, sessions=16, turns=(2, 4), added=(15, 40), answer=4, wait=60, apart=8)


def rates(shape: Shape, share: float) -> list[float]:
    slots = int(working_set(shape) * share)
    return [Replay(shape, slots, policy).run() for policy in bench_lifetimes.POLICIES]


def test_sessions_that_wait_find_more_with_hints_and_nearly_what_an_oracle_finds():
    lru, hints, oracle = rates(SMALL, 0.5)
    assert hints >= lru + 3 and hints >= oracle - 4


@pytest.mark.parametrize("share", bench_lifetimes.SHARES)
@pytest.mark.parametrize("name", SHAPES)
def test_hints_lose_nothing_on_any_trace_in_any_pool(name, share):
    lru, hints, _ = rates(dataclasses.replace(SHAPES[name], sessions=12, header=60, added=(30, 60)), share)
    assert hints >= lru > 0


def test_the_hints_of_a_compiled_program_keep_the_conversations_that_go_on():
    """A loop with an extern in it: nothing but `lifetimes` and the machine says which contexts live."""
    _, whole = found(SMALL, 1 << 16, hints=False)
    slots = whole // 2
    (lru, _), (hints, _) = (found(SMALL, slots, hints=hints) for hints in (False, True))
    assert hints >= lru + 2


def test_the_command_prints_a_row_for_each_pool(monkeypatch, capsys):
    monkeypatch.setitem(SHAPES, "chat", dataclasses.replace(SMALL, sessions=12))
    assert run_command(["bench", "lifetimes", "--trace", "chat"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["trace", "of", "set", "pool", "LRU", "hints", "oracle"] and len(rows) == 3
