"""The order of admission under each policy: what comes next to what, and that nobody waits for ever."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from lmc.runtime.admission import MAX_OVERTAKEN, Policy
from lmc.runtime.flat_table import FlatTable
from tests.runtime.test_scheduler import Clock, prompt

CLUSTERS = [prompt(cluster, 30) for cluster in range(6)]


def offline(policy: Policy, **options) -> Clock:
    """Thirty requests that come at once, shuffled, five to a prefix of 30 tokens, in a pool of little more than one of them."""
    clock = Clock(slots=60, max_batch_tokens=40, policy=policy, **options)
    jobs = [CLUSTERS[i % 6] + prompt(100 + i, 15) for i in range(30)]
    random.Random(2).shuffle(jobs)
    clock.jobs = [clock.submit(ids) for ids in jobs]
    clock.run()
    return clock


def changes(clock: Clock) -> int:
    """How often the next request has another prefix."""
    ids = {request.ticket: request.ids[:30] for request in clock.jobs}
    return sum(ids[a] != ids[b] for a, b in pairwise(clock.started))


@pytest.mark.parametrize("policy", [Policy.LPM, Policy.DFS])
def test_depth_first_and_longest_prefix_take_one_prefix_after_the_other(policy):
    assert changes(offline(policy)) == 5


@pytest.mark.parametrize("policy", [Policy.FCFS, Policy.RANDOM])
def test_orders_that_do_not_look_at_prefixes_compute_them_again(policy):
    clock = offline(policy)
    assert changes(clock) > 10 and clock.computed > offline(Policy.DFS).computed


def test_a_random_order_is_no_order_of_arrival_and_the_same_each_time():
    first, second = offline(Policy.RANDOM).started, offline(Policy.RANDOM).started
    assert first == second != sorted(first)


@pytest.mark.parametrize("policy", list(Policy))
def test_under_no_policy_is_a_request_overtaken_by_more_than_the_bound(policy):
    """The ids of the cold one come last, and nothing of it is in the tree; others come at every step, each with a smaller ticket's lot."""
    clock = Clock(max_batch_tokens=16, policy=policy)
    for _ in range(3):
        clock.submit([1] * 12)
    clock.step()
    cold = clock.submit([2] * 12)
    after = 0
    while cold.ticket not in clock.started:
        clock.submit([1] * 12)
        clock.submit([1] * 12)
        clock.step()
        after += 1
        assert after < 3 * MAX_OVERTAKEN
    later = [ticket for ticket in clock.started if cold.ticket < ticket]
    assert len(later) <= MAX_OVERTAKEN


def test_a_table_finds_whole_entries_only():
    table, ids = FlatTable(), prompt(1, 40)
    end, unused = table.extend(table.root, ids, list(range(40)))
    assert unused == [] and table.match_length(ids + [5]) == (40, end)
    assert table.match_length(ids[:39]) == table.match_length(ids[:20] + [2000]) == (0, table.root)
    longer, unused = table.extend(end, [7, 8], [40, 41])
    assert table.match_length(ids + [7, 8, 9]) == (42, longer) and table.match_length(ids + [7])[0] == 40
    table.evict(1)
    assert table.match_length(ids + [7, 8, 9]) == (40, end), "an entry that has lost its end is none"


def test_with_a_table_the_same_prompt_is_found_and_a_prefix_of_it_is_not():
    clock = Clock(max_batch_tokens=16, tree=FlatTable())
    clock.submit(prompt(1, 60))
    clock.run()
    clock.submit(prompt(1, 60))
    clock.run()
    assert clock.computed == 61
    clock.submit(prompt(1, 59) + [2000])
    clock.run()
    assert clock.computed == 121, "without its last token it is not the prompt that is known"


@pytest.mark.parametrize("seed", range(20))
def test_an_offline_batch_computes_no_more_than_the_theorem_says(seed):
    """Theorem 3.1 of the SGLang paper: the edges of the requests' tree, in a pool that holds the longest request; and one token for
    each request that is a prefix of another, whose last token has to be computed for its logits."""
    rng = random.Random(seed)
    requests = [ids for ids in random_tree(rng, [], depth=rng.randint(1, 5))][:60]
    rng.shuffle(requests)
    prefixes = {tuple(ids[:length]) for ids in requests for length in range(1, len(ids) + 1)}
    inside = sum(any(other[: len(ids)] == ids for j, other in enumerate(requests) if j != i) for i, ids in enumerate(requests))
    for policy in (Policy.LPM, Policy.DFS):
        # One slot more than the longest one: the place of the token that is generated.
        clock = Clock(slots=max(map(len, requests)) + 1, max_batch_tokens=rng.choice([8, 64, 512]), policy=policy)
        for ids in requests:
            clock.submit(ids)
        clock.run()
        assert len(clock.finished) == len(requests)
        assert len(prefixes) <= clock.computed <= len(prefixes) + inside


def random_tree(rng: random.Random, above: list[int], depth: int) -> list[list[int]]:
    """Requests that end in leaves, and some in the middle, of a tree with edges of 1 to 20 tokens; some of them twice."""
    requests = []
    for _ in range(rng.randint(1, 4)):
        here = above + [rng.randrange(50) for _ in range(rng.randint(1, 20))]
        if depth == 0 or rng.random() < 0.2:
            requests += [here] * rng.choice([1, 1, 1, 2])
        if depth:
            requests += random_tree(rng, here, depth - 1)
    return requests or [above + [0]]
