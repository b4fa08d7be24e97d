"""The pool hands out every slot once, in runs where it can."""

from __future__ import annotations

import random

import pytest

from lmc.runtime.pool import KvPool


def runs(slots: list[int]) -> int:
    """Of how many stretches of neighbours the slots consist."""
    return sum(1 for before, slot in zip([None, *slots], slots) if before is None or slot != before + 1)


def test_a_demand_is_one_run_while_there_is_one():
    pool = KvPool(100)
    assert pool.allocate(40, room=20) == list(range(40, 80))
    assert pool.allocate(10, after=79) == list(range(80, 90))
    assert pool.free_count == 50


def test_who_comes_next_leaves_room_to_grow_into():
    pool = KvPool(1000)
    requests = [pool.allocate(40, room=20) for _ in range(16)]
    for left in range(19, -1, -1):
        for slots in requests:
            slots += pool.allocate(1, after=slots[-1], room=left)
    assert max(map(runs, requests)) == 1


def test_room_is_given_up_where_there_is_no_other():
    pool = KvPool(100)
    first = pool.allocate(50, room=50)
    assert sorted(first + pool.allocate(50, room=50)) == list(range(100))


def test_a_run_goes_on_behind_its_last_slot():
    pool = KvPool(100)
    slots = pool.allocate(10)
    for _ in range(20):
        slots += pool.allocate(1, after=slots[-1])
    assert runs(slots) == 1


def test_requests_that_decode_side_by_side_keep_long_runs():
    pool = KvPool(1024)
    requests = [pool.allocate(20) for _ in range(8)]
    for _ in range(60):
        for slots in requests:
            slots += pool.allocate(1, after=slots[-1])
    assert max(map(runs, requests)) <= 3


def test_requests_that_end_soon_lie_close_together():
    """Memory that nobody touches need not be cleared: what is touched is little more than what is needed."""
    pool = KvPool(100_000)
    requests = [pool.allocate(20, room=16) for _ in range(32)]
    for left in range(15, -1, -1):
        for slots in requests:
            slots += pool.allocate(1, after=slots[-1], room=left)
    assert max(map(runs, requests)) <= 3
    assert max(map(max, requests)) - min(map(min, requests)) < 1.5 * 32 * 36


def test_free_slots_always_satisfy_a_demand_however_scattered():
    pool = KvPool(64)
    pool.allocate(64)
    pool.free(list(range(0, 64, 2)))
    slots = pool.allocate(32)
    assert sorted(slots) == list(range(0, 64, 2)) and pool.free_count == 0


def test_too_large_a_demand_takes_nothing():
    pool = KvPool(8)
    pool.allocate(3)
    assert pool.allocate(6) is None and pool.free_count == 5
    assert pool.allocate(0) == [] and len(pool.allocate(5)) == 5


def test_a_slot_cannot_be_given_back_twice():
    pool = KvPool(8)
    slots = pool.allocate(4)
    pool.free(slots)
    with pytest.raises(AssertionError, match="free already"):
        pool.free([slots[0]])


def test_freed_neighbours_join_into_one_run():
    pool = KvPool(32)
    slots = pool.allocate(32)
    pool.free(slots[20:])
    pool.free(slots[:10])
    pool.free(slots[10:20])
    assert pool.allocate(32) == list(range(32))


@pytest.mark.parametrize("seed", range(5))
def test_at_random_against_a_set(seed):
    rng = random.Random(seed)
    pool, held, free = KvPool(200), [], set(range(200))
    for _ in range(2000):
        if held and rng.random() < 0.5:
            slots = held.pop(rng.randrange(len(held)))
            rng.shuffle(slots)
            pool.free(slots)
            free |= set(slots)
        else:
            count = rng.choice([1, 1, 1, 5, 30])
            after = rng.choice(held)[-1] if held else None
            slots = pool.allocate(count, after=after)
            assert (slots is None) == (count > len(free))
            if slots is not None:
                assert len(set(slots)) == count and set(slots) <= free
                free -= set(slots)
                held.append(slots)
        assert pool.free_count == len(free) and pool.free_slots() == free


def test_little_of_a_large_pool_is_touched():
    """Memory is taken by huge pages when a slot is first written: texts that grow beside one another stay near one another."""
    pool, last = KvPool(200_000), []
    for _ in range(8):
        last.append(pool.allocate(500)[-1])
    used = set(last)
    for _ in range(300):
        last = [pool.allocate(1, after=slot)[0] for slot in last]
        used |= set(last)
    assert max(used) - min(used) < 8 * (500 + 1024) + 1024
    assert sum(slot + 1 in used for slot in used) >= len(used) - 2 * 8, "each still grows in a run"
