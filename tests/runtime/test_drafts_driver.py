"""Random constrained requests on random vocabularies, in any company: drafts change the number of passes and nothing else."""

from __future__ import annotations

import random

import pytest

from lmc.regex.build import compile_regex
from lmc.runtime.constraint import TokenConstraint, TokenIndex
from lmc.runtime.dry import DryModel
from lmc.runtime.engine import Engine
from lmc.runtime.request import DoneEvent, FailedEvent, GenerateRequest, Sampling, ScoreRequest, TextEvent
from tests.runtime.test_random_driver import FaultyModel, check_invariants
from tests.runtime.words import Words

# Forced runs before, behind and between choices, counts, ends that may come early, characters of several bytes.
_PARTS = ["ab", "abcab", "(a|b)", "(abc|abd)", "c{1,3}", "[abc]{0,4}", "(ab|ba)?", "é", "(éa|ê)", "a*", "(dab|dac|d)", "cabba"]


def random_words(rng: random.Random) -> Words:
    """All bytes in use as tokens, and some longer pieces that cut forced runs in many ways."""
    bytes_in_use = sorted(set("abcdéê".encode()))
    singles = [bytes([b]) for b in bytes_in_use]
    pieces = {bytes(rng.choices("abcd".encode(), k=rng.randint(2, 5))) for _ in range(rng.randint(2, 14))}
    return Words([*singles, *sorted(pieces), *rng.sample(["é", "ê", "aé", "éa"], 2)])


def random_pattern(rng: random.Random) -> str:
    return "".join(rng.choice(_PARTS) for _ in range(rng.randint(1, 6)))


def random_request(rng: random.Random, words: Words, constraints: list[TokenConstraint], room: int):
    prompt = tuple(rng.randrange(4) for _ in range(rng.randint(1, 12)))
    kind = rng.random()
    if kind < 0.1 and len(prompt) > 1:
        return ScoreRequest(prompt, rng.randint(1, len(prompt) - 1))
    sampling = Sampling(
        temperature=rng.choice([0.0, 0.7, 1.5]), seed=rng.randint(0, 3), top_k=rng.choice([0, 3]),
        frequency_penalty=rng.choice([0.0, 0.8]), repetition_penalty=rng.choice([1.0, 1.3]),
        logit_bias=rng.choice([(), ((0, -1.0), (2, 1.5))]))
    constraint = rng.choice(constraints) if kind < 0.85 else None
    heal = b"" if rng.random() < 0.6 else rng.choice([b"a", b"ab", b"bc", b"cab"])
    stops = () if rng.random() < 0.7 else rng.choice([("ab",), ("ca", "bb"), ("é",)])
    tokens = min(rng.randint(1, 25), room - len(prompt) - 8)
    return GenerateRequest(
        prompt, tokens, heal=heal, constraint=constraint, follow=rng.choice([b"", b"", b"a", b"d"]), stops=stops, sampling=sampling,
        min_tokens=rng.choice([0, 0, 3]), ignore_eos=rng.random() < 0.2, logprobs=rng.choice([0, 0, 2]), stream=rng.random() < 0.5)


def answer(result):
    """What may not depend on drafts, neighbours, chunks or the cache."""
    if isinstance(result, str):
        return result
    if not hasattr(result, "ids"):
        return result.logprobs
    return (result.ids, result.text, result.finish, result.stop, result.carry, result.valid, result.logprobs, result.usage.generated)


def run(engine: Engine, requests, *, rng: random.Random | None = None, most: int = 10_000) -> list:
    """The results in order (the kind of an error where one failed).  With `rng`: some are cancelled midway."""
    waiting = list(enumerate(requests))
    places, ends, texts = {}, {}, {}
    while waiting or engine.busy:
        for _ in range(rng.randint(0, 3) if rng else len(waiting)):
            if waiting:
                place, request = waiting.pop(0)
                ticket = engine.submit(request)
                places[ticket] = place
        if rng and rng.random() < 0.05 and places:
            engine.cancel(rng.choice(list(places)))
        for event in engine.step():
            if isinstance(event, TextEvent):
                texts[event.ticket] = texts.get(event.ticket, "") + event.text
            else:
                ends[places[event.ticket]] = event
        check_invariants(engine)
        most -= 1
        assert most, "the engine does not come to an end"
    for event in ends.values():
        if isinstance(event, DoneEvent) and event.ticket in texts:
            assert texts[event.ticket] == event.result.text, "what was shown was taken back"
    return [e.error.kind if isinstance(e, FailedEvent) else e.result for _, e in sorted(ends.items())]


@pytest.mark.parametrize("seed", range(40))
def test_answers_with_drafts_are_those_without(seed):
    rng = random.Random(seed)
    words = random_words(rng)
    index = TokenIndex(words.token_bytes)
    constraints = [TokenConstraint(compile_regex(random_pattern(rng)), index) for _ in range(3)]
    slots = rng.choice([48, 70, 400])
    requests = [random_request(rng, words, constraints, slots) for _ in range(40)]

    def engine(**options):
        return Engine(DryModel(words, max_positions=120), words, **options)

    alone = [run(engine(slots=512, jump="off"), [request])[0] for request in requests]
    assert any(hasattr(a, "ids") and a.usage.passes > 4 for a in alone)
    company = engine(slots=slots, max_batch_tokens=rng.choice([2, 9, 64]), policy=rng.choice(["lpm", "fcfs"]), jump="exact")
    together = run(company, requests, rng=rng)
    for request, one, other in zip(requests, alone, together, strict=True):
        assert other == "cancelled" or answer(one) == answer(other), request
    assert company.stats.used_slots == 0
    warm = engine(slots=512, jump="exact")
    run(warm, requests)
    again = run(warm, requests)
    assert list(map(answer, again)) == list(map(answer, alone))
    pairs = [(a, b) for a, b in zip(alone, again) if hasattr(a, "ids")]
    assert all(b.usage.passes <= a.usage.passes for a, b in pairs)
    assert sum(b.usage.passes for _, b in pairs) < sum(a.usage.passes for a, _ in pairs)
    assert sum(b.usage.jumped for _, b in pairs) > 0 == sum(a.usage.jumped for a, _ in pairs)


@pytest.mark.parametrize("seed", range(10))
def test_a_model_that_fails_in_the_middle_of_drafts_leaves_nothing_behind(seed):
    rng = random.Random(seed)
    words = random_words(rng)
    constraints = [TokenConstraint(compile_regex(random_pattern(rng)), TokenIndex(words.token_bytes)) for _ in range(3)]
    requests = [random_request(rng, words, constraints, 70) for _ in range(80)]
    engine = Engine(FaultyModel(rng, words), words, slots=rng.choice([70, 200]), max_batch_tokens=24)
    results = run(engine, requests, rng=rng)
    assert "model" in results and engine.stats.used_slots == 0
    for request, result in zip(requests, results):
        if not isinstance(result, str):
            alone = Engine(DryModel(words, max_positions=200), words, slots=512, jump="off")
            assert answer(run(alone, [request])[0]) == answer(result)
