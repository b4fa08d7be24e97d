"""What the scheduler plans: budgets, order of admission, sharing within a step, retraction."""

from __future__ import annotations

import random

import pytest

from lmc.runtime.scheduler import MAX_OVERTAKEN, Policy, Request, Scheduler, State


class Clock:
    """Runs a scheduler without a model: a request that is computed to its end gets `more` further tokens, then it is released."""

    def __init__(self, slots: int = 4096, **options):
        self.scheduler = Scheduler(slots, **options)
        self.computed = 0
        self.started: list[int] = []
        self.finished: list[int] = []
        self._tickets = iter(range(1, 10**6))

    def submit(self, ids: list[int], more: int = 1, priority: int = 0) -> Request:
        request = Request(next(self._tickets), list(ids), len(ids) - 1, more)
        request.priority = priority
        self.scheduler.submit(request)
        return request

    def step(self) -> dict[int, int]:
        """Ticket -> planned tokens."""
        batch = self.scheduler.plan()
        planned = {r.ticket: r.planned for r in batch}
        self.started += [r.ticket for r in batch if r.ticket not in self.started]
        for request in batch:
            self.scheduler.commit(request)
            if request.computed == len(request.ids):
                self._go_on(request)
        self.computed += sum(planned.values())
        return planned

    def run(self) -> None:
        steps = 0
        while self.scheduler.running or self.scheduler.waiting:
            self.step()
            steps += 1
            assert steps < 10_000

    def _go_on(self, request: Request) -> None:
        request.work -= 1
        if request.work <= 0:
            self.finished.append(request.ticket)
            self.scheduler.release(request, len(request.ids))
        else:
            request.ids.append(7)
            request.wanted = len(request.ids) - 1


def prompt(seed: int, length: int) -> list[int]:
    rng = random.Random(seed)
    return [rng.randrange(1000) for _ in range(length)]


def test_a_long_prompt_goes_in_chunks_of_the_budget():
    clock = Clock(max_batch_tokens=100)
    clock.submit(prompt(1, 250))
    assert [sum(clock.step().values()) for _ in range(3)] == [100, 100, 50]


def test_decoding_requests_go_on_at_every_step_beside_a_long_prompt():
    clock = Clock(max_batch_tokens=64, slots=20_000)
    decoding = [clock.submit(prompt(i, 10), more=500) for i in range(8)]
    for _ in range(4):
        clock.step()
    long = clock.submit(prompt(99, 8000), more=1)
    short = [clock.submit(prompt(100 + i, 20), more=1) for i in range(20)]
    steps = 0
    while long.state is not State.FINISHED:
        planned = clock.step()
        steps += 1
        assert all(planned[r.ticket] == 1 for r in decoding), "a decoding request waited"
        assert sum(planned.values()) <= 64
        if steps == 30:
            assert all(r.state is State.FINISHED for r in short), "short requests wait for a long prompt"
    assert steps <= 8000 / ((64 - 8) / 2) + 20, "the long prompt gets half of what decoding leaves at least"


@pytest.mark.parametrize("budget", [16, 64, 512])
@pytest.mark.parametrize("width", [2, 8, 40])
def test_a_fork_computes_its_prefix_once(budget, width):
    clock = Clock(max_batch_tokens=budget)
    prefix, suffixes = prompt(1, 300), [prompt(10 + i, 5 + i % 4) for i in range(width)]
    for suffix in suffixes:
        clock.submit(prefix + suffix)
    clock.run()
    assert clock.computed <= len(prefix) + sum(map(len, suffixes)) + width
    assert clock.computed >= len(prefix) + width, "nothing was computed: the test shows nothing"


def test_a_fork_of_equal_prompts_computes_one_token_each_beyond_the_first():
    clock = Clock(max_batch_tokens=64)
    for _ in range(10):
        clock.submit(prompt(1, 200))
    clock.run()
    assert clock.computed == 200 + 9


def test_followers_are_computed_in_the_step_in_which_their_prefix_is():
    clock = Clock(max_batch_tokens=512)
    requests = [clock.submit(prompt(1, 100) + [i, i]) for i in range(2000, 2005)]
    planned = clock.step()
    assert sorted(planned.values()) == [2, 2, 2, 2, 102]
    assert all(r.state is State.FINISHED for r in requests)


def test_a_follower_takes_over_when_the_request_ahead_is_cancelled():
    clock = Clock(max_batch_tokens=32)
    leader = clock.submit(prompt(1, 200) + [1])
    clock.step()
    follower = clock.submit(prompt(1, 200) + [2])
    planned = clock.step()
    assert planned == {leader.ticket: 32}, "the follower does not compute what the leader is computing"
    clock.scheduler.release(leader, leader.computed)
    assert clock.step() == {follower.ticket: 32}
    clock.run()
    assert clock.finished == [follower.ticket] and clock.computed == 201


def test_nested_branches_share_every_level():
    clock = Clock(max_batch_tokens=128)
    trunk, edges = prompt(0, 50), 50
    for i in range(4):
        branch = prompt(10 + i, 30)
        edges += 30
        for j in range(4):
            leaf = prompt(100 + 10 * i + j, 10)
            edges += 10
            clock.submit(trunk + branch + leaf)
    clock.run()
    assert clock.computed == edges


@pytest.mark.parametrize("priorities", [1, 1000])
@pytest.mark.parametrize("slots", [120, 300])
def test_an_offline_batch_in_a_pool_of_one_request_computes_each_edge_once(slots, priorities):
    """Depth-first order is optimal where the cache holds the longest request; priorities leave it depth first."""
    clock = Clock(slots=slots, max_batch_tokens=40)
    edges, jobs = 0, []
    for i in range(5):
        branch = prompt(10 + i, 60)
        edges += 60
        for j in range(6):
            leaf = prompt(100 + 10 * i + j, 20)
            edges += 20
            jobs.append(branch + leaf)
    rng = random.Random(0)
    rng.shuffle(jobs)
    for ids in jobs:
        clock.submit(ids, priority=rng.randrange(priorities))
    clock.run()
    assert clock.computed <= edges + len(jobs)
    slow = Clock(slots=slots, max_batch_tokens=40, policy=Policy.FCFS)
    for ids in jobs:
        slow.submit(ids)
    slow.run()
    assert slow.computed >= clock.computed


def test_longest_cached_prefix_goes_first():
    clock = Clock(max_batch_tokens=8)
    clock.submit(prompt(1, 64))
    clock.run()
    first, hot = clock.submit(prompt(2, 8)), clock.submit(prompt(1, 60))
    clock.run()
    assert clock.started[1:] == [hot.ticket, first.ticket]


def test_arrival_decides_between_equal_matches():
    clock = Clock(max_batch_tokens=1)
    clock.submit([5], more=4)  # takes the whole budget for a while
    clock.step()
    early = clock.submit([9, 9])
    clock.step()
    late = clock.submit([1, 1])
    clock.run()
    assert clock.started[1:] == [early.ticket, late.ticket]


def test_priority_decides_where_prefix_and_arrival_do_not():
    """The branch with the most urgent request goes first, whole; an urgent one does not tear another branch apart."""
    clock = Clock(max_batch_tokens=1)
    alone = clock.submit([3, 3])
    calm = [clock.submit([5, 5, 5, n]) for n in (1, 2)]
    urgent = [clock.submit([7, 7, 7, 1]), clock.submit([7, 7, 7, 2], priority=90)]
    clock.run()
    assert clock.started == [r.ticket for r in (*urgent, alone, *calm)]


def test_fcfs_goes_by_arrival():
    clock = Clock(max_batch_tokens=8, policy=Policy.FCFS)
    clock.submit(prompt(1, 64))
    clock.run()
    first, hot = clock.submit(prompt(2, 8)), clock.submit(prompt(1, 60))
    clock.run()
    assert clock.started[1:] == [first.ticket, hot.ticket]


def test_nobody_is_overtaken_by_more_than_the_bound():
    clock = Clock(max_batch_tokens=1)
    clock.submit(prompt(1, 90))
    clock.run()
    cold = clock.submit(prompt(2, 3))
    after = 0
    # A hot request arrives at every step, with one token to compute and a long match.
    while cold.state is State.WAITING:
        clock.submit(prompt(1, 80) + [2000 + after])
        clock.step()
        after += 1
        assert after < 3 * MAX_OVERTAKEN
    hot_first = [t for t in clock.started if t > cold.ticket]
    assert len(hot_first) - 1 == MAX_OVERTAKEN, "the first one arrived together with it"


def test_the_youngest_is_retracted_and_what_it_had_comes_from_the_tree():
    clock = Clock(slots=40, max_batch_tokens=64)
    old, young = clock.submit(prompt(1, 12), more=20), clock.submit(prompt(2, 12), more=20)
    while not clock.scheduler.retractions:
        clock.step()
    victim = next(r for r in (old, young) if r.retractions)
    assert victim.admitted > max(r.admitted for r in (old, young) if r is not victim)
    assert victim.state is State.WAITING and len(victim.ids) > 12, "it keeps what it generated"
    assert len(victim.slots) == 12, "and holds its prompt"
    clock.run()
    assert sorted(clock.finished) == [1, 2] and len(old.ids) == len(young.ids) == 12 + 19


def test_one_that_was_retracted_three_times_is_taken_last():
    clock = Clock(slots=100, max_batch_tokens=64)
    others = [clock.submit(prompt(2 + i, 20), more=40) for i in range(2)]
    clock.step()
    youngest = clock.submit(prompt(1, 20), more=40)
    youngest.retractions = 3
    clock.run()
    assert youngest.retractions == 3 and any(r.retractions for r in others)


def test_waiting_requests_hold_nothing():
    clock = Clock(slots=64, max_batch_tokens=64)
    clock.submit(prompt(1, 40), more=20)
    clock.step()
    waiting = [clock.submit(prompt(1, 40) + prompt(5 + i, 10), more=5) for i in range(5)]
    clock.step()
    assert all(r.node is None and not r.slots for r in waiting if r.state is State.WAITING)
    assert any(r.state is State.WAITING for r in waiting)
    clock.run()
    assert len(clock.finished) == 6


def test_a_step_that_failed_leaves_no_trace_in_tree_and_pool():
    clock = Clock(slots=256, max_batch_tokens=128)
    clock.submit(prompt(1, 50))
    clock.run()
    before = clock.scheduler.tree.cached_count
    for i in range(6):
        clock.submit(prompt(1, 40) + prompt(2, 10) + [2000 + i])
    batch = clock.scheduler.plan()
    assert len(batch) == 6
    clock.scheduler.abandon(batch)
    tree, pool = clock.scheduler.tree, clock.scheduler.pool
    assert tree.cached_count == before and pool.free_count == 256 - before and tree.locked_count == 0


def test_without_a_cache_everything_is_computed():
    clock = Clock(max_batch_tokens=64, cache=False)
    for _ in range(5):
        clock.submit(prompt(1, 50))
    clock.run()
    assert clock.computed == 250 and clock.scheduler.pool.free_count == 4096


def test_a_thousand_waiting_requests_do_not_make_steps_slow():
    clock = Clock(slots=100_000, max_batch_tokens=64)
    rng = random.Random(0)
    trunk = prompt(1, 400)
    for i in range(1000):
        clock.submit(trunk[: rng.randrange(400)] + prompt(10 + i, 10), more=3)
    clock.run()
    assert len(clock.finished) == 1000 and clock.computed <= 400 + 1000 * (10 + 2 + 1)


@pytest.mark.parametrize("slots, at_once", [(8192, 64), (640, 10), (40, 1)])
def test_a_full_pool_makes_room_for_some_tokens_at_once(slots, at_once):
    scheduler = Scheduler(slots, max_batch_tokens=slots)
    first = Request(1, prompt(1, slots - 2), slots - 3, None)
    scheduler.submit(first)
    assert scheduler.plan() == [first]
    scheduler.commit(first)
    scheduler.release(first, slots - 2)
    assert scheduler.pool.free_count == 2
    second = Request(2, prompt(2, 3), 2, None)
    scheduler.submit(second)
    assert scheduler.plan() == [second] and second.planned == 3
    assert scheduler.pool.free_count == 2 + max(at_once, 1) - 3


def test_most_texts_lie_in_one_run_also_in_a_full_pool():
    scheduler = Scheduler(4096, max_batch_tokens=256)
    tickets, gaps = iter(range(1, 301)), []
    while len(gaps) < 300:
        while len(scheduler.running) + len(scheduler.waiting) < 8 and (ticket := next(tickets, None)):
            scheduler.submit(Request(ticket, prompt(ticket, 60), 59, None, most=76))
        for request in scheduler.plan():
            scheduler.commit(request)
            if request.computed == 75:
                gaps.append(sum(slot + 1 != after for slot, after in zip(request.slots, request.slots[1:])))
                scheduler.release(request, 75)
            elif request.computed == len(request.ids):
                request.ids.append(7)
                request.wanted += 1
    assert scheduler.retractions == 0 and scheduler.tree.cached_count > 3500
    assert sum(gaps) < 200, "of 300 texts"
