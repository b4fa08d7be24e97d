"""Hints to the engine: what a prefill costs, what lives longest under memory pressure, and that nothing depends on them."""

from __future__ import annotations

import random

import pytest

from lmc.runtime.dry import DryModel
from lmc.runtime.engine import Engine
from lmc.runtime.hints import Keep, Pin, Prefill, Release
from lmc.runtime.request import GenerateRequest, Sampling
from tests.runtime.test_random_driver import TwoTokens, check_invariants, make_engine

SUFFIX, ANSWER = 12, 9


class PrefixCount(DryModel):
    """Counts how often a token of the first `length` positions is computed."""

    def __init__(self, length: int):
        super().__init__(TwoTokens(), max_positions=500)
        self.length, self.computed = length, 0

    def forward(self, rows):
        self.computed += sum(max(min(row.start + len(row.tokens), self.length) - row.start, 0) for row in rows)
        return super().forward(rows)


def fork(width: int, prefix: int, slots: int, *, reopened: int = 0, budget: int = 64):
    """A fork whose branches part after `prefix` tokens, of which the last `reopened` are not certain before: the engine, and how
    often tokens of the prefix were computed."""
    rng = random.Random(width)
    model = PrefixCount(prefix)
    engine = Engine(model, TwoTokens(), slots=slots, max_batch_tokens=max(budget, width + 1))
    trunk = tuple(rng.randint(0, 1) for _ in range(prefix))
    if width > 1:
        engine.hint(Prefill(engine.reserve(), trunk[: prefix - reopened]))
    for branch in range(width):
        suffix = tuple(int(bit) for bit in f"{branch:06b}") + tuple(rng.randint(0, 1) for _ in range(SUFFIX - 6))
        sampling = Sampling(temperature=1.0, seed=branch)
        engine.submit(GenerateRequest(trunk + suffix, ANSWER, ignore_eos=True, sampling=sampling))
    while engine.busy:
        engine.step()
    return engine, model.computed


@pytest.mark.parametrize("extra", [0, 1, 7, 40, 150, 3000])
@pytest.mark.parametrize("width", [1, 2, 3, 5, 8, 13, 27, 64])
def test_a_fork_computes_its_prefix_once_in_any_pool_that_holds_a_branch(width, extra):
    engine, prefix = fork(width, 30, 30 + SUFFIX + ANSWER + extra)
    assert prefix == 30
    assert engine.stats.prompt <= 30 + width * SUFFIX + width
    assert engine.stats.prompt >= 30 + width, "nothing was computed: the test shows nothing"


@pytest.mark.parametrize("width", range(1, 65))
def test_a_fork_computes_its_prefix_once_at_every_width(width):
    engine, prefix = fork(width, 40, 40 + 3 * (SUFFIX + ANSWER), reopened=2)
    assert prefix <= 40 + 2 * width and engine.stats.prompt <= 40 + width * SUFFIX + width * 3


def test_retracted_branches_do_not_compute_their_prompts_again():
    engine, _ = fork(20, 30, 30 + 6 * SUFFIX)
    assert engine.stats.retractions > 5
    assert engine.stats.prompt <= 30 + 20 * SUFFIX + 20


def test_a_prefill_is_computed_where_nobody_waits_and_ends_with_an_event():
    engine = make_engine(200)
    handle, trunk = engine.reserve(), (0, 1) * 20
    engine.hint(Prefill(handle, trunk))
    assert [e.ticket for e in engine.step()] == [handle] and engine.stats.prompt == 40
    readers = [engine.submit(GenerateRequest((*trunk, bit), 1)) for bit in (0, 1)]
    assert sorted(e.ticket for e in engine.step()) == readers
    assert engine.stats.prompt == 42 and engine.stats.steps == 2


def test_readers_that_wait_compute_their_prefix_themselves():
    engine = make_engine(200)
    handle, trunk = engine.reserve(), (0, 1) * 20
    engine.hint(Prefill(handle, trunk))
    readers = [engine.submit(GenerateRequest((*trunk, bit), 1)) for bit in (0, 1)]
    assert sorted(e.ticket for e in engine.step()) == readers, "in one step, and none of it is told as computed ahead"
    assert engine.busy and engine.step() == [] and not engine.busy
    assert engine.stats.prompt == 42 and engine.stats.steps == 1
    assert handle in engine._live._kept, "the context lives all the same"


def forks_that_come_late(hints: bool) -> int:
    """Six forks whose hints come a step before their branches, in a pool that holds two of them: the prompt tokens computed."""
    rng = random.Random(1)
    engine = Engine(DryModel(TwoTokens(), max_positions=500), TwoTokens(), slots=2 * 40 + 4 * (SUFFIX + ANSWER), max_batch_tokens=64,
                    fork_hints=hints)
    trunks = [tuple(rng.randint(0, 1) for _ in range(40)) for _ in range(6)]
    for trunk in trunks:
        engine.hint(Prefill(engine.reserve(), trunk))
    for _ in range(4):
        engine.step()
    for trunk in trunks:
        for _ in range(4):
            engine.submit(GenerateRequest(trunk + tuple(rng.randint(0, 1) for _ in range(SUFFIX)), ANSWER, ignore_eos=True))
    while engine.busy:
        engine.step()
        check_invariants(engine)
    return engine.stats.prompt


def test_computing_ahead_costs_nothing_in_a_small_pool():
    assert forks_that_come_late(True) <= forks_that_come_late(False) + 6, "a token for each prefix that was there as a whole"


def test_what_branches_release_of_a_prefix_that_others_will_read_is_not_released():
    engine = make_engine(200)
    handle, branch, trunk = engine.reserve(), engine.reserve(), (0, 1) * 20
    engine.hint(Prefill(handle, trunk))
    engine.submit(GenerateRequest((*trunk, 1, 1), 1))
    engine.step()
    engine.hint(Keep(branch, (*trunk, 1, 1)))
    engine.hint(Release(branch))
    assert [node.depth for node in engine._scheduler.tree.nodes() if node.released] == [42]
    engine.hint(Release(handle))
    assert sorted(node.depth for node in engine._scheduler.tree.nodes() if node.released) == [40, 42]


def test_what_is_there_is_not_computed_and_a_prefix_that_cannot_fit_is_passed_over():
    engine = make_engine(100)
    trunk = (0, 1) * 20
    for _ in range(2):
        engine.hint(Prefill(engine.reserve(), trunk))
        while engine.busy:
            engine.step()
    engine.hint(Prefill(engine.reserve(), trunk * 3))
    engine.hint(Prefill(engine.reserve(), ()))
    assert not engine.busy and engine.stats.prompt == 40 and engine.stats.steps == 1


@pytest.mark.parametrize("when", ["waiting", "running"])
def test_a_reader_takes_over_from_a_prefill_that_is_given_up(when):
    engine = make_engine(200, max_batch_tokens=16)
    handle, trunk = engine.reserve(), (0, 1) * 20
    engine.hint(Prefill(handle, trunk))
    done = engine.step() if when == "running" else []
    reader = engine.submit(GenerateRequest((*trunk, 1), 1))
    engine.hint(Release(handle))
    while engine.busy:
        done += engine.step()
        check_invariants(engine)
    assert [e.ticket for e in done] == [handle, reader] if when == "running" else [reader]
    assert engine.stats.prompt == 41


# ------------------------------------------------------------------ what is evicted first


def cached(engine: Engine, ids) -> int:
    return engine._scheduler.tree.match_length(list(ids))[0]


def computed(engine: Engine, *prompts) -> None:
    for prompt in prompts:
        engine.submit(GenerateRequest(tuple(prompt), 0))
        engine.submit(GenerateRequest(tuple(prompt), 1))
        while engine.busy:
            engine.step()


OLD, MIDDLE, NEW = ((bits + (0,) * 8) for bits in ((0, 0), (0, 1), (1, 0)))


def test_released_contexts_go_before_older_ones():
    engine = make_engine(34)
    computed(engine, OLD, MIDDLE, NEW)
    handle = engine.reserve()
    engine.hint(Keep(handle, NEW))
    engine.hint(Release(handle))
    computed(engine, (1, 1) * 4)
    assert cached(engine, OLD) == cached(engine, MIDDLE) == 10 > cached(engine, NEW)


def test_what_another_living_context_shares_is_not_released():
    engine = make_engine(100)
    computed(engine, OLD + (1, 1), OLD + (0, 1))
    handles = [engine.reserve(), engine.reserve()]
    for handle, tail in zip(handles, ((1, 1), (0, 1))):
        engine.hint(Keep(handle, OLD + tail))
    engine.hint(Release(handles[0]))
    released = [node for node in engine._scheduler.tree.nodes() if node.released]
    assert [(node.depth, node.key) for node in released] == [(12, [1, 1])]
    check_invariants(engine)


def test_a_released_prefix_that_is_used_again_is_like_any_other():
    engine = make_engine(34)
    computed(engine, OLD, MIDDLE, NEW)
    handle = engine.reserve()
    engine.hint(Keep(handle, NEW))
    engine.hint(Release(handle))
    computed(engine, NEW, (1, 1) * 4)
    assert cached(engine, NEW) == 10 > cached(engine, OLD)


def test_pins_go_last_stay_in_their_budget_and_keep_nothing_out():
    engine = make_engine(40)
    computed(engine, OLD, MIDDLE, NEW)
    engine.hint(Pin(OLD))
    computed(engine, (1, 1) * 5, (1, 1, 0, 1) * 3)
    assert cached(engine, OLD) == 10
    engine.hint(Pin((1, 1) * 5))
    assert engine._scheduler.tree.pinned_count <= 10 == int(40 * 0.25), "the older pin gives way"
    computed(engine, (1, 0) * 19)
    assert cached(engine, (1, 0) * 19) >= 37
    check_invariants(engine)


def test_of_contexts_used_in_one_step_the_one_that_is_read_later_goes_first():
    engine = make_engine(34, max_batch_tokens=64)
    for prompt in (OLD, MIDDLE, NEW):
        engine.submit(GenerateRequest(prompt, 1))
    engine.step()
    for prompt, next_use in ((OLD, 1), (MIDDLE, 7), (NEW, 3)):
        engine.hint(Keep(engine.reserve(), prompt, next_use))
    computed(engine, (1, 1, 1, 1, 1, 1, 1, 1, 1, 1))
    assert cached(engine, OLD) == cached(engine, NEW) == 10 > cached(engine, MIDDLE)


def test_without_a_cache_hints_do_nothing():
    engine = make_engine(64, cache=False)
    for hint in (Prefill(engine.reserve(), OLD), Keep(engine.reserve(), OLD), Pin(OLD), Release(7)):
        engine.hint(hint)
    assert not engine.busy and not engine._scheduler.tree.nodes()


def test_two_forks_of_one_context_prefill_it_once():
    """The same handle comes twice while the first is on its way: a fork directly in a fork reads the same context."""
    engine, handle = make_engine(200, max_batch_tokens=16), 7
    trunk = tuple(random.Random(0).randint(0, 1) for _ in range(40))
    engine.hint(Prefill(handle, trunk))
    engine.step()
    engine.hint(Prefill(handle, trunk))
    while engine.busy:
        check_invariants(engine)
        engine.step()
    assert engine.stats.computed == 40
    engine.hint(Release(handle))
    check_invariants(engine)
