"""Cases of kind g: nobody waits for ever behind what the cache likes, or behind what is long; through the whole engine."""

from __future__ import annotations

import pytest

from lmc.runtime.admission import MAX_OVERTAKEN
from lmc.runtime.dry import DryModel
from lmc.runtime.engine import Engine
from lmc.runtime.request import DoneEvent, GenerateRequest
from tests.cases.test_cache import ids_of
from tests.runtime.test_random_driver import TwoTokens


def make_engine(**options) -> Engine:
    return Engine(DryModel(TwoTokens(), max_positions=9000), TwoTokens(), **options)


def hot_trace(policy: str) -> tuple[int, float]:
    """One slot; one cold request, then a hot one at every step: how many later ones were done before the cold one (at most 200 are
    asked for), and the part of all prompt tokens that was found."""
    engine = make_engine(slots=1300, max_batch_tokens=1, policy=policy)
    hot = ids_of(1, 900)
    engine.submit(GenerateRequest(hot, 1, ignore_eos=True))
    while engine.busy:
        engine.step()
    cold, before = engine.submit(GenerateRequest(ids_of(2, 3), 1, ignore_eos=True)), 0
    found = asked = 0
    for number in range(200):
        engine.submit(GenerateRequest(hot + ids_of(1000 + number, 12), 1, ignore_eos=True))
        for _ in range(6):
            for event in engine.step():
                if event.ticket == cold:
                    return before, found / max(asked, 1)
                before += 1
                found, asked = found + event.result.usage.cached, asked + 912
    raise AssertionError("the cold request never came")


def test_g01_a_cold_request_starts_within_the_bound_whatever_the_supply():
    before, rate = hot_trace("lpm")
    assert 0 < before <= MAX_OVERTAKEN + 1, "one may run when it comes"
    assert rate > 0.9


def test_g01_of_equal_age_the_longer_match_goes_first_and_more_is_found_than_in_order_of_arrival():
    def offline(policy: str) -> tuple[list[int], int]:
        engine = make_engine(slots=120, max_batch_tokens=64, policy=policy)
        kinds = {}
        for number in range(12):
            kinds[engine.submit(GenerateRequest(ids_of(number % 2, 80) + ids_of(10 + number, 10), 1, ignore_eos=True))] = number % 2
        order = []
        while engine.busy:
            order += [kinds[event.ticket] for event in engine.step() if isinstance(event, DoneEvent)]
        return order, engine.stats.cached

    order, found = offline("lpm")
    assert order in ([0] * 6 + [1] * 6, [1] * 6 + [0] * 6)
    assert found > offline("fcfs")[1]


@pytest.mark.parametrize("budget", [64, 256])
def test_g02_a_long_prompt_stalls_neither_running_nor_short_requests(budget):
    engine = make_engine(slots=16_000, max_batch_tokens=budget)
    running = {engine.submit(GenerateRequest(ids_of(i, 30), 400, ignore_eos=True, stream=True)) for i in range(8)}
    for _ in range(10):
        engine.step()
    long_request = GenerateRequest(ids_of(50, 8000), 4, ignore_eos=True)
    long = engine.submit(long_request)
    short_requests = {engine.submit(r): r for r in (GenerateRequest(ids_of(100 + i, 20), 3, ignore_eos=True) for i in range(20))}
    ends, steps, begun = {}, 0, 0
    while long not in ends:
        computed, lengths = engine.stats.computed, {t: len(engine._open[t].ids) for t in running if t in engine._open}
        events = engine.step()
        steps += 1
        assert engine.stats.computed - computed <= budget, "no step is longer than a chunk"
        for ticket in lengths.keys() & engine._open.keys():
            assert len(engine._open[ticket].ids) == lengths[ticket] + 1, "and whoever runs goes on in each"
        ends |= {event.ticket: event for event in events if isinstance(event, DoneEvent)}
        begun = begun or (steps if short_requests.keys() <= ends.keys() else 0)
    assert 0 < begun < steps, "the short ones are over before the long prompt is"
    assert steps <= 8000 / ((budget - 8) / 2) + 30, "half of what the running ones leave is for the long one at least"
    alone = make_engine(slots=9000, cache=False)
    for ticket, request in {long: long_request, **short_requests}.items():
        again = alone.submit(request)
        events = [event for _ in iter(lambda: alone.busy, False) for event in alone.step()]
        assert [e.result.ids for e in events if e.ticket == again] == [ends[ticket].result.ids]
