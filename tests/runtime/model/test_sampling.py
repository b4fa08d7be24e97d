"""The sampler against slow and simple versions of itself, against transformers, and at the edges (cases H-02 and H-03)."""

import math
from collections import Counter

import numpy as np
import pytest
import torch
from transformers import MinPLogitsWarper, RepetitionPenaltyLogitsProcessor, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from lmc.diagnostics import RunError
from lmc.runtime.model.philox import philox, uniform
from lmc.runtime.model.sampling import Choice, draw, draw_rows, drawn_place, record, sampling_fault, weights_of
from lmc.runtime.request import Sampling

VOCAB = 300


def logits(seed: int = 0, vocab: int = VOCAB, spread: float = 3.0) -> torch.Tensor:
    return torch.randn(vocab, generator=torch.Generator().manual_seed(seed)) * spread


def token(row, sampling, **choice) -> int:
    return draw(row, sampling, **choice)[0]


# Random numbers.

@pytest.mark.parametrize(("counter", "key", "wanted"), [
    # Random123's published test vectors for philox4x32, 10 rounds.
    ((0,) * 4, (0,) * 2, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0), (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
])
def test_philox_vectors(counter, key, wanted):
    assert philox(counter, key) == wanted


def test_uniform_numbers():
    numbers = [uniform(seed, k) for seed in (0, 1, 2**64 - 1) for k in range(3000)]
    assert all(0 <= u < 1 for u in numbers) and len(set(numbers)) == len(numbers)
    assert abs(np.mean(numbers) - 0.5) < 0.02 and abs(np.var(numbers) - 1 / 12) < 0.005


# Draws.

def test_greedy_is_argmax_and_lowest_on_a_tie():
    assert token(logits(), Sampling()) == int(logits().argmax())
    row = torch.zeros(10)
    row[[3, 7]] = 2.0
    assert token(row, Sampling()) == 3
    assert token(row, Sampling(), allowed=np.array([5, 7, 9])) == 7
    assert token(row, Sampling(), banned=np.array([3])) == 7


def test_draws_repeat_and_depend_on_seed_and_index():
    row, sampling = logits(spread=1.0), Sampling(temperature=1.0, seed=5)
    first = [token(row, sampling, k=k) for k in range(50)]
    assert first == [token(row, sampling, k=k) for k in range(50)]
    assert first != [token(row, Sampling(temperature=1.0, seed=6), k=k) for k in range(50)]
    assert len(set(first)) > 20


@pytest.mark.parametrize("options", [
    dict(temperature=1.0), dict(temperature=0.6), dict(temperature=1.5, top_k=5), dict(temperature=1.0, top_p=0.7),
    dict(temperature=1.0, min_p=0.1), dict(temperature=1.2, top_k=12, top_p=0.8, min_p=0.05),
], ids=str)
def test_frequencies_follow_the_filtered_distribution(options):
    """Against transformers' own filters; 4,000 draws."""
    row = logits(2, 40, 2.0)
    steps = [TemperatureLogitsWarper(options["temperature"])]
    if "top_k" in options:
        steps.append(TopKLogitsWarper(options["top_k"]))
    if "top_p" in options:
        steps.append(TopPLogitsWarper(options["top_p"]))
    if "min_p" in options:
        steps.append(MinPLogitsWarper(options["min_p"]))
    scores = row[None]
    for step in steps:
        scores = step(None, scores)
    wanted = scores[0].softmax(-1).double().numpy()
    counts = Counter(token(row, Sampling(seed=3, **options), k=k) for k in range(4000))
    assert set(counts) <= set(np.flatnonzero(wanted))
    got = np.array([counts[i] / 4000 for i in range(40)])
    assert np.abs(got - wanted).max() < 0.03
    # Every token that should come in 1 % of the draws came.
    assert all(counts[i] for i in np.flatnonzero(wanted > 0.01))


@pytest.mark.parametrize("seed", range(5))
def test_inverse_of_the_distribution_function(seed):
    """The draw is the first survivor in id order whose summed probability exceeds the uniform number."""
    row, sampling = logits(seed), Sampling(temperature=0.9, seed=seed)
    allowed = np.sort(np.random.default_rng(seed).choice(VOCAB, 60, replace=False))
    for k in range(50):
        sums = np.cumsum(np.exp(row.double().numpy()[allowed] / 0.9))
        wanted = next(int(i) for i, s in zip(allowed, sums) if s > uniform(seed, k) * sums[-1])
        assert token(row, sampling, allowed=allowed, k=k) == wanted


@pytest.mark.parametrize("top_p", [0.1, 0.5, 0.9, 0.999, 0.9999999])
@pytest.mark.parametrize("vocab", [3, 50, 3000])
def test_nucleus_needs_no_full_sort_to_be_exact(top_p, vocab):
    """The short cut over the best few against a full sort, flat and peaked."""
    for spread in (0.01, 1.0, 8.0):
        row = logits(vocab, vocab, spread)
        probabilities = torch.softmax(row.double(), 0).numpy()
        order = np.argsort(-probabilities, kind="stable")
        count = int((np.cumsum(probabilities[order]) < top_p).sum()) + 1
        wanted = set(order[:count].tolist())
        draws = {token(row, Sampling(temperature=1.0, top_p=top_p, seed=1), k=k) for k in range(300)}
        assert draws <= wanted
        # The least likely survivor is drawn when it alone is worth drawing: the others are banned.
        last = order[count - 1]
        assert len(wanted) == 1 or token(row, Sampling(temperature=1.0, top_p=top_p), banned=np.delete(np.arange(vocab), last)) == last


def test_top_k_keeps_lower_ids_of_a_tie():
    row = torch.zeros(20)
    assert {token(row, Sampling(temperature=1.0, top_k=3), k=k) for k in range(200)} == {0, 1, 2}


# Penalties and bias.

def test_repetition_penalty_as_in_transformers():
    row, prompt, counts = logits(3), [4, 9, 9, 200], {7: 2, 9: 1}
    seen = torch.tensor([[*prompt, *counts]])
    wanted = RepetitionPenaltyLogitsProcessor(1.7)(seen, row[None].clone())[0]
    # Which of two tokens wins shows each changed number.
    for a in {4, 9, 7, 200, 11}:
        for b in range(0, VOCAB, 7):
            pair = np.array(sorted({a, b}))
            got = token(row, Sampling(repetition_penalty=1.7), allowed=pair, prompt_ids=prompt, counts=counts)
            assert got == int(pair[int(wanted[pair].argmax())])


def test_frequency_and_presence_penalties_count_generated_tokens_only():
    row = torch.tensor([1.0, 0.9, 0.0])
    assert token(row, Sampling(frequency_penalty=0.2), counts={}, prompt_ids=[0, 0]) == 0
    assert token(row, Sampling(frequency_penalty=0.06), counts={0: 1}) == 0
    assert token(row, Sampling(frequency_penalty=0.06), counts={0: 2}) == 1
    assert token(row, Sampling(presence_penalty=0.06), counts={0: 9}) == 0
    assert token(row, Sampling(presence_penalty=0.2), counts={0: 1}) == 1
    assert token(row, Sampling(presence_penalty=-2.0), counts={2: 1}) == 2


def test_logit_bias():
    row = torch.tensor([1.0, 0.9, 0.0])
    assert token(row, Sampling(logit_bias=((2, 5.0),))) == 2
    assert token(row, Sampling(logit_bias=((0, -100.0),))) == 1
    assert token(row, Sampling(temperature=1.0, logit_bias=((0, -math.inf), (1, -math.inf)))) == 2


def test_the_row_is_not_changed():
    row = logits()
    before = row.clone()
    draw(row, Sampling(temperature=0.5, repetition_penalty=2.0, logit_bias=((1, 4.0),), top_p=0.5), prompt_ids=[1, 2, 3], counts={5: 1})
    assert torch.equal(row, before)


def test_every_option_changes_a_draw():
    """An option that is read and has no effect is the worst of all (case H-05)."""
    row, counts = logits(8, 60, 1.0), {int(logits(8, 60, 1.0).argmax()): 3}
    base = dict(temperature=1.0, seed=1)

    def draws(**options):
        sampling = Sampling(**{**base, **options})
        return [token(row, sampling, counts=counts, prompt_ids=list(range(30)), k=k) for k in range(100)]

    plain = draws()
    for options in (dict(temperature=0.3), dict(top_p=0.5), dict(top_k=4), dict(min_p=0.3), dict(seed=2), dict(frequency_penalty=1.0),
                    dict(presence_penalty=1.5), dict(repetition_penalty=1.5), dict(logit_bias=((5, 3.0),))):
        assert draws(**options) != plain, options


# Edges: case H-02.

@pytest.mark.parametrize("temperature", [0, 1e-300, 1e-7, 1e-4, 1, 100])
@pytest.mark.parametrize("top_p", [0, 1e-9, 1])
@pytest.mark.parametrize("top_k", [-1, 0, 1, VOCAB + 1])
@pytest.mark.parametrize("min_p", [0, 1])
def test_grid(temperature, top_p, top_k, min_p):
    row = logits(4)
    sampling = Sampling(temperature=temperature, top_p=top_p, top_k=top_k, min_p=min_p, seed=9)
    assert sampling_fault(sampling, VOCAB) is None
    best, drawn = int(row.argmax()), {token(row, sampling, k=k) for k in range(20)}
    if temperature <= 1e-4 or top_p < 1 or top_k == 1 or min_p == 1:
        assert drawn == {best}
    else:
        assert len(drawn) > 1 and drawn <= set(range(VOCAB))
    assert token(row, sampling, allowed=np.array([17])) == 17
    assert token(row, sampling, banned=np.delete(np.arange(VOCAB), 17)) == 17


def test_off_values_of_top_k_are_the_same():
    for k in range(50):
        drawn = {token(logits(), Sampling(temperature=1.0, top_k=top_k), k=k) for top_k in (0, -1, VOCAB, VOCAB + 1)}
        assert len(drawn) == 1


@pytest.mark.parametrize("options", [dict(frequency_penalty=1e9), dict(frequency_penalty=-1e9), dict(repetition_penalty=1e9),
                                     dict(repetition_penalty=1e-9), dict(logit_bias=((1, 1e9), (1, 1e9)))], ids=str)
def test_largest_penalties_do_not_overflow(options):
    row = torch.tensor([3e38, -3e38, 2.9e38])
    for temperature in (0.0, 1e-300, 1.0):
        assert token(row, Sampling(temperature=temperature, **options), counts={0: 10**6, 1: 3}, prompt_ids=[0, 1]) in (0, 1, 2)


def test_huge_logits():
    row = torch.tensor([3e38, -3e38, 2.9e38])
    assert {token(row, Sampling(temperature=t), k=k) for t in (0, 1e-7, 1.0, 100.0) for k in range(5)} == {0}


@pytest.mark.parametrize(("options", "part"), [
    (dict(temperature=-0.1), "`temperature` is -0.1"), (dict(temperature=math.nan), "`temperature` is nan"),
    (dict(temperature=math.inf), "`temperature` is inf"), (dict(top_p=1.5), "`top_p` is 1.5"), (dict(top_p=-1.0), "`top_p`"),
    (dict(top_p=math.nan), "`top_p`"), (dict(top_k=-2), "`top_k` is -2"), (dict(min_p=2.0), "`min_p`"), (dict(seed=-1), "`seed`"),
    (dict(seed=2**64), "`seed`"), (dict(frequency_penalty=math.inf), "`frequency_penalty`"),
    (dict(frequency_penalty=-2e9), "`frequency_penalty`"), (dict(logit_bias=((3, math.nan),)), "token 3"),
    (dict(presence_penalty=math.nan), "`presence_penalty`"), (dict(repetition_penalty=0.0), "`repetition_penalty`"),
    (dict(logit_bias=((VOCAB, 1.0),)), f"token {VOCAB}"), (dict(logit_bias=((-1, 1.0),)), "token -1"),
    (dict(logit_bias=((3, math.inf),)), "token 3"),
])
def test_wrong_values_are_named(options, part):
    assert part in sampling_fault(Sampling(**options), VOCAB)


# Broken logits: case H-03.

def broken(value: float) -> torch.Tensor:
    row = logits()
    row[100] = value
    return row


@pytest.mark.parametrize("row", [broken(math.nan), broken(math.inf), torch.full((VOCAB,), math.nan), torch.full((VOCAB,), -math.inf)])
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=1.0), Sampling(repetition_penalty=1.1)])
def test_logits_that_are_not_finite(row, sampling):
    for allowed in (None, np.array([1, 2, 3])):
        with pytest.raises(RunError) as error:
            draw(row, sampling, allowed=allowed, prompt_ids=[1])
        assert error.value.kind == "model" and error.value.diagnostics[0].code == "E0817"
        assert "float32" in error.value.diagnostics[0].message


def test_some_tokens_at_minus_infinity_are_never_drawn():
    row = torch.full((VOCAB,), -math.inf)
    row[[5, 250]] = 0.0
    assert {token(row, Sampling(temperature=1.0), k=k) for k in range(50)} == {5, 250}


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_nothing_left(temperature):
    sampling = Sampling(temperature=temperature)
    biased = Sampling(temperature=temperature, logit_bias=((4, -math.inf),))
    for sampled, allowed, banned in ((sampling, [], []), (sampling, [3, 4], [3, 4]), (sampling, None, range(VOCAB)), (biased, [4], [])):
        with pytest.raises(RunError) as error:
            draw(logits(), sampled, allowed=None if allowed is None else np.array(allowed, np.int64), banned=np.array(banned, np.int64))
        assert error.value.diagnostics[0].code == "E0818"


def test_a_row_that_fails_does_not_touch_the_others():
    table = torch.stack([logits(1), broken(math.nan), logits(2), logits(3), broken(math.inf)])
    choices = [Choice(Sampling()), Choice(Sampling()), Choice(Sampling(temperature=1.0, seed=4), k=3), Choice(Sampling(), np.array([8, 9])),
               Choice(Sampling(temperature=1.0))]
    results = draw_rows(table, choices)
    assert isinstance(results[1], RunError) and isinstance(results[4], RunError)
    assert results[0] == (int(table[0].argmax()), None)
    assert results[2][0] == token(table[2], Sampling(temperature=1.0, seed=4), k=3)
    assert results[3][0] == token(table[3], Sampling(), allowed=np.array([8, 9]))


def test_rows_equal_single_draws():
    """The call that all rows share against one call a row, for choices of all kinds."""
    g = np.random.default_rng(0)
    table = torch.stack([logits(i) for i in range(40)])
    choices = []
    for i in range(40):
        allowed = np.sort(g.choice(VOCAB, int(g.integers(1, 200)), replace=False)) if i % 3 == 0 else None
        banned = g.choice(VOCAB, 20, replace=False) if i % 4 == 0 and (allowed is None or len(allowed) > 30) else np.empty(0, np.int64)
        sampling = Sampling(temperature=float(g.choice([0, 0, 0.8])), seed=i, frequency_penalty=float(g.choice([0, 0.5])))
        choices.append(Choice(sampling, allowed, banned, {int(g.integers(VOCAB)): 2}, k=i, logprobs=i % 2))
    for row, choice, result in zip(table, choices, draw_rows(table, choices)):
        allowed = row.clone()
        for token_id, times in choice.counts.items():
            allowed[token_id] -= choice.sampling.frequency_penalty * times
        hidden = np.ones(VOCAB, bool)
        hidden[np.arange(VOCAB) if choice.allowed is None else choice.allowed] = False
        hidden[choice.banned] = True
        if choice.sampling.temperature == 0:
            assert result[0] == int(allowed.masked_fill(torch.from_numpy(hidden), -math.inf).argmax())
        assert not hidden[result[0]] and (result[1] is not None) == bool(choice.logprobs)
    assert draw_rows(torch.empty(0, VOCAB), []) == []


# Records.

def test_record_is_of_the_unmodified_logits():
    row = logits(6)
    wanted = row.double().log_softmax(0)
    drawn, entry = draw(row, Sampling(temperature=0.5, seed=3, logit_bias=((7, 100.0),)), logprobs=4)
    assert drawn == entry.id == 7
    assert math.isclose(entry.logprob, float(wanted[7]), rel_tol=1e-9)
    best = torch.topk(wanted, 4)
    assert [i for i, _ in entry.top] == best.indices.tolist()
    assert all(math.isclose(p, float(w), rel_tol=1e-9) for (_, p), w in zip(entry.top, best.values))


def test_record_edges():
    row = np.zeros(5, np.float32)
    assert [i for i, _ in record(row, 4, 3).top] == [0, 1, 2]
    assert len(record(row, 4, 50).top) == 5
    assert record(row, 4, 0).top == ()
    assert math.isclose(record(row, 4, 1).logprob, -math.log(5))


@pytest.mark.parametrize("filters", [{}, dict(top_p=0.9), dict(top_k=40), dict(min_p=0.02)], ids=str)
@pytest.mark.parametrize("temperature", [0.01, 0.7, 1.0, 30.0])
def test_the_draw_from_all_tokens_is_the_general_one(temperature, filters):
    """The general way is the one for a constraint, here one that leaves everything."""
    generator = torch.Generator().manual_seed(3)
    for k in range(50):
        row = 4 * torch.randn(1000 + k, generator=generator)
        row[::7] = -torch.inf
        best = int(row.argmax())
        for banned in (np.array([], np.int64), np.array([0, 3, best])):
            sampling = Sampling(temperature, seed=k, **filters)
            wanted = token(row, sampling, k=k, allowed=np.arange(len(row)), banned=banned)
            assert token(row, sampling, k=k, banned=banned) == wanted


@pytest.mark.parametrize("size", [1, 2, 255, 256, 257, 5000])
def test_thedrawn_place_is_that_of_running_sums(size):
    numbers = np.random.default_rng(size)
    for _ in range(100):
        weights = numbers.random(size) * (numbers.random(size) < 0.3)
        weights[numbers.integers(size)] = 0.5
        sums = np.cumsum(weights)
        for number in (0.0, numbers.random(), 1 - 2**-53):
            place = drawn_place(weights, number)
            assert weights[place] > 0
            # A number that lies on the edge of two places may fall to either: sums of blocks round in another way.
            below = sums[place - 1] if place else 0.0
            assert below * (1 - 1e-12) <= number * sums[-1] <= sums[place] * (1 + 1e-12)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_weight_is_a_function_of_its_logit_alone(threads):
    """Wherever it stands and however many are computed together: the draw of a row is the same in all company."""
    values = np.concatenate([-np.random.default_rng(1).random(70_000) * 60, [0.0, -np.inf, -745.0, -5e-324]])
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        whole = weights_of(np.append(values, 0.0), 0.7)
        for start in range(0, 70_000, 1301):
            for size in (1, 3, 8, 255, 4096):
                part = values[start : start + size]
                assert np.array_equal(weights_of(np.append(part, 0.0), 0.7)[:-1], whole[start : start + len(part)])
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_max_ulp(whole, np.exp(np.append(values, 0.0) / 0.7), 2)
