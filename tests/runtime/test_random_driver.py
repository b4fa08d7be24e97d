"""Random requests on pool, tree, scheduler and engine, with a vocabulary of two tokens so that prefixes meet everywhere.

After each step every slot has one owner; at the end each result is that of the same request alone, without a cache.
"""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest

from lmc.runtime.dry import DryModel
from lmc.runtime.engine import Engine
from lmc.runtime.flat_table import FlatTable
from lmc.runtime.hints import Keep, Pin, Prefill, Release
from lmc.runtime.live_contexts import PINNED_SHARE
from lmc.runtime.request import DoneEvent, FailedEvent, GenerateRequest, Sampling, ScoreRequest


class TwoTokens:
    """`a`, `b` and an end token."""

    size = 3
    token_bytes = (b"a", b"b", b"")
    end_ids = frozenset({2})

    def encode(self, text):
        return ["ab".index(c) for c in text]


def make_engine(slots: int, **options) -> Engine:
    return Engine(DryModel(TwoTokens(), max_positions=200), TwoTokens(), slots=slots, **options)


def check_invariants(engine: Engine) -> None:
    """Every slot has one owner, counts agree with the nodes, locks with the running requests."""
    scheduler = engine._scheduler
    pool, tree = scheduler.pool, scheduler.tree
    assert pool.free_count + tree.cached_count + scheduler.in_use == pool.size
    owners = Counter(pool.free_slots())
    assert len(owners) == pool.free_count
    locks: Counter = Counter()
    for node in tree.nodes():
        assert node.alive and node.key and len(node.key) == len(node.slots)
        assert node.parent.children[node.key[0]] is node and node.depth == node.parent.depth + len(node.key)
        owners.update(node.slots)
    held = [request for request in scheduler.waiting if request.node is not None]
    for request in held:
        assert request.retractions and request.shared == request.computed <= request.prompt
    for request in (*scheduler.running, *held):
        assert request.planned == 0 and len(request.slots) == request.computed
        owners.update(request.slots[request.shared :])
        assert tree.path_slots(request.node) == request.slots[: request.shared]
        node = request.node
        while node.parent is not None:
            locks[node] += 1
            node = node.parent
    for request in scheduler.waiting:
        assert request.node is not None or not request.slots
    assert sorted(owners) == list(range(pool.size)) and set(owners.values()) == {1}
    for node in tree.nodes():
        assert node.locks == locks[node]
    assert tree.cached_count == sum(len(n.key) for n in tree.nodes() if not n.locks)
    assert tree.locked_count == sum(len(n.key) for n in tree.nodes() if n.locks)
    check_hints(engine)


def check_hints(engine: Engine) -> None:
    """Marks on the nodes are those of the contexts that live and of the pins; pins stay within their part of the pool."""
    tree, live = engine._scheduler.tree, engine._live
    keeps, pins = (Counter(n for node in nodes.values() for n in path(node)) for nodes in (live._kept, live._pinned))
    nodes = tree.nodes()
    for node in nodes:
        assert (node.keeps, node.pins) == (keeps[node], pins[node])
        assert not (node.released and (node.keeps or node.locks))
    assert tree.pinned_count == sum(len(n.key) for n in nodes if n.pins) <= PINNED_SHARE * engine._scheduler.pool.size


def path(node) -> list:
    nodes = []
    while node.parent is not None:
        nodes.append(node)
        node = node.parent
    return nodes


def run_alone(request):
    engine = make_engine(256, cache=False, max_batch_tokens=256)
    ticket = engine.submit(request)
    while True:
        for event in engine.step():
            if isinstance(event, DoneEvent):
                assert event.ticket == ticket
                return event.result


def answer(result):
    """What may not depend on neighbours, chunks or the cache."""
    if hasattr(result, "ids"):
        return result.ids, result.text, result.finish, result.stop, result.carry
    return result.logprobs


def random_request(rng: random.Random, trunks: list[list[int]], room: int):
    ids = rng.choice(trunks)[: rng.randint(1, 30)] + [rng.randint(0, 1) for _ in range(rng.randint(0, 12))]
    ids = tuple(ids[: room - 8])
    if rng.random() < 0.3 and len(ids) > 1:
        return ScoreRequest(ids, rng.randint(1, len(ids) - 1))
    sampling = Sampling(temperature=rng.choice([0.0, 1.0]), seed=rng.randint(0, 5))
    # Always below the pool, so that a request that runs alone ends the same way.
    tokens = min(rng.randint(0, 24), room - len(ids) - 2)  # two that only spell `heal`
    return GenerateRequest(ids, tokens, stops=rng.choice([(), ("abba",), ("aa", "bbb")]), sampling=sampling,
                           heal=b"" if rng.random() < 0.8 else b"ab", ignore_eos=rng.random() < 0.3)


class FaultyModel(DryModel):
    """Fails in some steps, before or after it wrote, and gives one request logits that are not finite in others; `rate`: in how many,
    1 being one of twelve."""

    def __init__(self, rng: random.Random, tokens=TwoTokens(), max_positions: int = 200, rate: float = 1.0):
        super().__init__(tokens, max_positions=max_positions)
        self.rng, self.rate = rng, rate

    def forward(self, rows):
        dice = self.rng.random() / self.rate
        if dice < 0.02:
            raise RuntimeError("out of memory")
        logits = super().forward(rows)
        if dice < 0.04:
            raise RuntimeError("too late")
        if dice < 0.08 and len(logits):
            logits[self.rng.randrange(len(logits)), self.rng.randrange(logits.shape[1])] = self.rng.choice([math.nan, math.inf])
        return logits


def random_hint(engine: Engine, rng: random.Random, trunks: list[list[int]], handles: list[int]):
    """Any hint, with handles that live, are over or were never given."""
    ids = tuple(rng.choice(trunks)[: rng.randint(0, 30)] + [rng.randint(0, 1) for _ in range(rng.randint(0, 3))])
    kind = rng.random()
    if kind < 0.2:
        return Pin(ids)
    if kind < 0.6 and handles:
        return Release(rng.choice(handles))
    handles.append(engine.reserve())
    return Prefill(handles[-1], ids) if kind < 0.8 else Keep(rng.choice(handles), ids, rng.choice([None, 0, 3]))


def drive(engine: Engine, rng: random.Random, steps: int = 250):
    """Random requests, each ends, among random hints; returns them and their last events, and which were cancelled."""
    trunks = [[rng.randint(0, 1) for _ in range(30)] for _ in range(3)]
    requests, ends, cancelled = {}, {}, set()
    handles: list[int] = []
    step = 0
    while step < steps or engine.busy:
        step += 1
        assert step < 6000, "the engine does not come to an end"
        while step < steps and rng.random() < 0.5:
            request = random_request(rng, trunks, engine.limit)
            requests[engine.submit(request)] = request
        if rng.random() < 0.1 and requests:
            ticket = rng.choice(list(requests))
            engine.cancel(ticket)
            engine.cancel(ticket)
            cancelled.add(ticket)
        if rng.random() < 0.2:
            engine.hint(random_hint(engine, rng, trunks, handles))
        for event in engine.step():
            assert event.ticket not in ends
            ends[event.ticket] = event
        check_invariants(engine)
    for handle in handles:
        engine.hint(Release(handle))
    assert not engine._live._kept
    ends = {ticket: end for ticket, end in ends.items() if ticket not in handles}
    assert sorted(ends) == sorted(requests)
    assert engine.stats.used_slots == 0
    pool, tree = engine._scheduler.pool, engine._scheduler.tree
    pool.free(tree.evict(pool.size))
    assert pool.free_count == pool.size
    return requests, ends, cancelled


def random_options(rng: random.Random) -> dict:
    options: dict = {"max_batch_tokens": rng.choice([1, 3, 8, 64]), "policy": rng.choice(["lpm", "dfs", "fcfs", "random"])}
    # Whole prompts are hardly ever found again here, so that most engines have a tree.
    return options | {"tree": FlatTable()} if rng.random() < 0.2 else options


@pytest.mark.parametrize("seed", range(24))
def test_every_slot_has_one_owner_and_every_answer_is_right(seed):
    rng = random.Random(seed)
    engine = make_engine(rng.choice([48, 64, 100, 180]), **random_options(rng))
    requests, ends, cancelled = drive(engine, rng)
    for ticket, event in ends.items():
        if isinstance(event, FailedEvent):
            assert ticket in cancelled and event.error.kind == "cancelled"
        else:
            assert answer(event.result) == answer(run_alone(requests[ticket]))
    whole = isinstance(engine._scheduler.tree, FlatTable)
    assert engine.stats.cached > 0 or whole, "nothing was shared: the test shows nothing"


@pytest.mark.parametrize("seed", range(12))
def test_a_failing_model_leaves_nothing_behind(seed):
    rng = random.Random(seed)
    engine = Engine(FaultyModel(rng), TwoTokens(), slots=rng.choice([48, 100]), **random_options(rng))
    requests, ends, cancelled = drive(engine, rng)
    kinds = {event.error.kind for event in ends.values() if isinstance(event, FailedEvent)}
    assert "model" in kinds and kinds <= {"model", "cancelled"}
    for ticket, event in ends.items():
        if isinstance(event, DoneEvent):
            assert answer(event.result) == answer(run_alone(requests[ticket]))


def test_long_answers_in_a_small_pool_are_retracted_and_right():
    engine = make_engine(64, max_batch_tokens=16)
    rng = random.Random(1)
    requests = {}
    for _ in range(30):
        prompt = tuple(rng.randint(0, 1) for _ in range(6))
        request = GenerateRequest(prompt, 50, ignore_eos=True, sampling=Sampling(temperature=1.0, seed=rng.randint(0, 99)))
        requests[engine.submit(request)] = request
    results = {}
    while engine.busy:
        results |= {event.ticket: event.result for event in engine.step()}
        check_invariants(engine)
    assert engine.stats.retractions > 10
    for ticket, request in requests.items():
        assert answer(results[ticket]) == answer(run_alone(request)) and len(results[ticket].ids) == 50
