"""The engine with scripted and stand-in models: refusals, events, failures, scores, cancelling, cache."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from lmc.diagnostics import RunError
from lmc.runtime.dry import DryModel, ScriptedModel, answers, dry_tokenizer
from lmc.runtime.engine import Engine
from lmc.runtime.request import DoneEvent, FailedEvent, Finish, GenerateRequest, Sampling, ScoreRequest, TextEvent
from tests.runtime.words import Words

WORDS = Words([*"abcdefghij", "ab", " ", "\n"])


def scripted(script, *, words: Words = WORDS, slots: int = 256, max_positions: int = 512, **options) -> Engine:
    return Engine(ScriptedModel(words.size, script, max_positions=max_positions), words, slots=slots, **options)


def dry(slots: int = 2048, **options) -> Engine:
    return Engine(DryModel(), dry_tokenizer(), slots=slots, **options)


def run(engine: Engine, *requests) -> list:
    """The results (or errors) of the requests, submitted together."""
    tickets = [engine.submit(request) for request in requests]
    ends = {}
    while engine.busy:
        for event in engine.step():
            if isinstance(event, (DoneEvent, FailedEvent)):
                ends[event.ticket] = event.result if isinstance(event, DoneEvent) else event.error
    return [ends[ticket] for ticket in tickets]


def encode(text: str) -> tuple[int, ...]:
    return tuple(dry_tokenizer().encode(text))


def test_a_scripted_answer_comes_out_with_its_numbers():
    prompt, answer = WORDS.ids("a", "b"), WORDS.ids("c", "d", "e")
    engine = scripted(answers({prompt: answer}, WORDS.end))
    (result,) = run(engine, GenerateRequest(prompt, 20))
    assert (result.ids, result.text, result.finish) == (answer, "cde", Finish.EOS)
    assert (result.usage.cached, result.usage.computed, result.usage.generated, result.usage.passes) == (0, 2, 3, 4)
    assert engine.stats.computed == 5 and engine.stats.used_slots == 0


def test_a_second_run_finds_prompt_and_answer_in_the_tree():
    prompt = encode("You are a strict but fair judge.")
    engine = dry()
    (cold,) = run(engine, GenerateRequest(prompt, 30))
    (warm,) = run(engine, GenerateRequest(prompt, 30))
    (further,) = run(engine, GenerateRequest(prompt + cold.ids + encode("\nmore"), 30))
    assert warm.ids == cold.ids and cold.usage.cached == 0
    assert warm.usage.cached == len(prompt) - 1 and warm.usage.computed == 1
    assert further.usage.cached >= len(prompt) + len(cold.ids) - 1


def test_text_streams_before_the_end_and_only_where_it_was_asked_for():
    prompt = encode("Tell me")
    engine = dry()
    loud = engine.submit(GenerateRequest(prompt, 20, ignore_eos=True, stream=True))
    quiet = engine.submit(GenerateRequest(prompt, 20, ignore_eos=True))
    steps = []
    while engine.busy:
        steps.append(engine.step())
    texts = [event for events in steps for event in events if isinstance(event, TextEvent)]
    done = {event.ticket: event.result for events in steps for event in events if isinstance(event, DoneEvent)}
    assert {event.ticket for event in texts} == {loud} and len(texts) > 10
    assert "".join(event.text for event in texts) == done[loud].text == done[quiet].text
    last = [event for event in steps[-1] if event.ticket == loud]
    assert isinstance(last[-1], DoneEvent), "the end comes after the last text"


def test_streams_of_two_requests_do_not_mix_and_hold_whole_characters():
    words = Words([b"\xf0\x9f", b"\x98", b"\x80", b"\xe6\x97", b"\xa5", " x", "p", "q"])
    one, two = words.ids("p"), words.ids("q")
    scripts = {one: words.ids(b"\xf0\x9f", b"\x98", b"\x80", " x"), two: words.ids(b"\xe6\x97", b"\xa5", " x")}
    engine = scripted(answers(scripts, words.end), words=words)
    tickets = [engine.submit(GenerateRequest(p, 20, stream=True)) for p in (one, two)]
    events = []
    while engine.busy:
        events += engine.step()
    for ticket, expected in zip(tickets, ("😀 x", "日 x")):
        chunks = [e.text for e in events if isinstance(e, TextEvent) and e.ticket == ticket]
        assert "".join(chunks) == expected and not any("\ufffd" in chunk for chunk in chunks)


# Refusals.

def test_a_prompt_longer_than_the_context_is_refused_with_the_numbers():
    engine = scripted(lambda ids: {}, slots=256, max_positions=100)
    with pytest.raises(RunError, match="100 tokens and one to generate, the model's context 100") as caught:
        engine.submit(GenerateRequest((0,) * 100, 10))
    assert caught.value.kind == "context_length" and not engine.busy


def test_a_prompt_larger_than_the_pool_is_refused_and_others_go_on():
    engine = scripted(lambda ids: {WORDS.end: 9.0}, slots=256, max_positions=1024)
    with pytest.raises(RunError, match="300 slots .*pool has 256") as caught:
        engine.submit(GenerateRequest((0,) * 300, 10))
    assert caught.value.kind == "pool"
    with pytest.raises(RunError) as caught:
        engine.submit(ScoreRequest((0,) * 300, 2))
    assert caught.value.kind == "pool"
    results = run(engine, *[GenerateRequest((i % 5,) * 20, 5) for i in range(10)])
    assert all(result.finish is Finish.EOS for result in results)


def test_a_generation_is_clipped_where_the_context_ends():
    engine = scripted(lambda ids: {0: 9.0}, max_positions=30)
    (result,) = run(engine, GenerateRequest((1,) * 20, 256))
    assert len(result.ids) == 10 and result.finish is Finish.LENGTH


def test_one_request_may_fill_the_pool():
    engine = scripted(lambda ids: {0: 9.0}, slots=32)
    (result,) = run(engine, GenerateRequest((1,) * 20, 256))
    assert len(result.ids) == 12 and engine.stats.used_slots == 0


def test_a_value_that_cannot_fit_is_refused_before_the_first_token():
    engine = scripted(lambda ids: {0: 9.0}, slots=32)
    (error,) = run(engine, GenerateRequest((0, 1), 3, constraint=WORDS.constraint("[c-g]{8}")))
    assert isinstance(error, RunError) and error.kind == "truncated" and engine.stats.steps == 0
    assert "8 tokens, 3 may be generated" in str(error)
    (error,) = run(engine, GenerateRequest((0, 1) * 14, 100, constraint=WORDS.constraint("[c-g]{8}")))
    assert error.kind == "truncated", "the pool ends before the value can"


def test_wrong_options_are_refused():
    engine = scripted(lambda ids: {})
    for request in (GenerateRequest((0,), 5, stops=("",)), GenerateRequest((0,), 5, sampling=Sampling(temperature=-1.0)),
                    GenerateRequest((0,), 5, sampling=Sampling(top_p=math.nan))):
        with pytest.raises(RunError) as caught:
            engine.submit(request)
        assert caught.value.kind == "value"


# Failures.

class Failing(ScriptedModel):
    """Changes the logits of those outputs whose sequence begins with `marked`, from step `since` on."""

    def __init__(self, marked: int, value: list[float], since: int):
        super().__init__(WORDS.size, lambda ids: {len(ids) % 10: 5.0})
        self.marked, self.value, self.since, self.steps = marked, value, since, 0

    def forward(self, rows):
        logits = super().forward(rows)
        self.steps += 1
        output = 0
        for row in rows:
            for _ in row.outputs:
                if self._read(row)[0] == self.marked and self.steps >= self.since:
                    logits[output, : len(self.value)] = torch.tensor(self.value)
                output += 1
        return logits


@pytest.mark.parametrize("value", [[math.nan] * WORDS.size, [math.nan], [math.inf], [-math.inf] * WORDS.size])
def test_logits_that_are_not_finite_fail_their_request_alone(value):
    requests = [GenerateRequest((i, 0), 12) for i in range(4)]
    clean = run(Engine(Failing(2, [], 0), WORDS, slots=256), *requests)
    engine = Engine(Failing(2, value, 5), WORDS, slots=256)
    results = run(engine, *requests)
    assert isinstance(results[2], RunError) and results[2].kind == "model"
    assert "not finite" in str(results[2]) and "in step 5" in str(results[2])
    assert [results[i] for i in (0, 1, 3)] == [clean[i] for i in (0, 1, 3)]
    assert engine.stats.used_slots == 0


def test_keys_and_values_beside_such_logits_are_not_kept():
    engine = Engine(Failing(2, [math.nan], 0), WORDS, slots=256, max_batch_tokens=8)
    (error,) = run(engine, GenerateRequest((2,) * 20, 5))
    assert error.kind == "model" and engine.stats.steps == 3
    assert engine.stats.cached_slots == 16, "what the steps before computed is kept, the last chunk is not"


def test_a_score_whose_logits_are_not_finite_fails():
    engine = Engine(Failing(2, [math.nan], 0), WORDS, slots=256)
    good, bad = run(engine, ScoreRequest((1, 2, 3), 1), ScoreRequest((2, 2, 3), 1))
    assert len(good.logprobs) == 2 and bad.kind == "model"


def test_an_exception_of_the_model_fails_the_requests_of_its_step_only():
    class Once(DryModel):
        broken = True

        def forward(self, rows):
            if self.broken:
                raise MemoryError("out of device memory")
            return super().forward(rows)

    model = Once()
    engine = Engine(model, dry_tokenizer(), slots=512)
    errors = run(engine, *[GenerateRequest(encode("one two three " + x), 10) for x in "abc"])
    assert all(error.kind == "model" and "out of device memory" in str(error) for error in errors)
    assert engine.stats.free_slots == 512, "tokens that were never computed stay nowhere"
    model.broken = False
    (result,) = run(engine, GenerateRequest(encode("one two three a"), 10))
    (expected,) = run(dry(), GenerateRequest(encode("one two three a"), 10))
    assert result == expected


def test_a_constraint_that_raises_fails_its_request_alone():
    class Broken:
        def min_tokens(self, *, enough=0):
            return 1

        def accepting(self, state):
            return False

        def allowed(self, state, prefix=b""):
            raise ZeroDivisionError("inside")

    engine = scripted(lambda ids: {0: 1.0})
    bad, good = run(engine, GenerateRequest((0,), 5, constraint=Broken()), GenerateRequest((1,), 5))
    assert bad.kind == "internal" and "ZeroDivisionError" in str(bad) and good.finish is Finish.LENGTH


# Scores.

def table_script(ids):
    """P(next) depends on the last token and the length, so that a shifted position shows."""
    return {i: math.sin(ids[-1] * 7 + i * 3 + len(ids)) for i in range(WORDS.size)}


def slow_score(ids, start):
    logprobs = []
    for position in range(start, len(ids)):
        logits = np.zeros(WORDS.size)
        for i, value in table_script(ids[:position]).items():
            logits[i] = np.float32(value)
        logprobs.append(logits[ids[position]] - np.log(np.exp(logits).sum()))
    return logprobs


@pytest.mark.parametrize("budget", [1, 3, 512])
def test_scores_are_those_of_a_table_cold_and_warm_in_any_chunks(budget):
    engine = scripted(table_script, max_batch_tokens=budget)
    requests = [ScoreRequest((1, 2, 3) + tail, start) for tail in itertools.permutations((4, 5, 6)) for start in (1, 3, 5)]
    for _ in range(2):
        for request, result in zip(requests, run(engine, *requests)):
            assert result.logprobs == pytest.approx(slow_score(request.ids, request.start), abs=1e-5)
            assert result.usage.cached < request.start
    assert engine.stats.cached > 0


def test_a_score_of_the_last_token_only_computes_what_is_before_it():
    engine = scripted(table_script)
    (result,) = run(engine, ScoreRequest((1, 2, 3, 4), 3))
    assert engine.stats.computed == 3 and len(result.logprobs) == 1 and result.usage.passes == 1


# Constraints.

def test_typed_values_are_whole_whatever_the_model_wants():
    tokenizer = dry_tokenizer()
    engine = dry()
    from lmc.regex.build import compile_regex
    from lmc.runtime.constraint import TokenConstraint

    patterns = [r'\{"score":[1-5],"reason":"[a-z ]{0,20}"\}', r"\d{4}-\d{2}-\d{2}", "yes|no|yesterday", "[あ-ん]{2,3}"]
    requests = [GenerateRequest(encode(f"No {i}: "), 60, constraint=TokenConstraint(compile_regex(p), engine.index), heal=heal)
                for i, p in enumerate(patterns) for heal in (b"", b" ")]
    for request, result in zip(requests, run(engine, *requests)):
        assert request.constraint.dfa.matches(result.text.encode()) and result.valid, result.text
        assert tokenizer.decode_bytes(result.ids).decode() + result.carry == request.heal.decode() + result.text


def test_a_batch_of_all_kinds_gives_the_same_in_every_order_and_alone():
    from lmc.regex.build import compile_regex
    from lmc.runtime.constraint import TokenConstraint

    digits = TokenConstraint(compile_regex(r"\d{3}(\.\d+)?"), dry().index)
    requests = [
        GenerateRequest(encode("Give a number: "), 20, constraint=digits),
        GenerateRequest(encode("Give a word:"), 12, stops=(".",)),
        GenerateRequest(encode("Give a word:"), 25, sampling=Sampling(temperature=0.8, seed=7)),
        ScoreRequest(encode("Give a number: 12"), 5),
    ]
    alone = [run(dry(), request)[0] for request in requests]
    for order in itertools.permutations(range(4)):
        # So small a pool that some are retracted, so small a budget that prompts are cut.
        engine = dry(slots=56, max_batch_tokens=7)
        results = run(engine, *[requests[i] for i in order])
        for i, result in zip(order, results):
            strip = (lambda r: (r.ids, r.text, r.finish)) if hasattr(result, "ids") else (lambda r: r.logprobs)
            assert strip(result) == strip(alone[i])


# Cancelling and seeds.

def test_cancelling_releases_at_once_and_twice_is_harmless():
    engine = dry(slots=512)
    tickets = [engine.submit(GenerateRequest(encode("a long story " * 8 + x), 200, ignore_eos=True)) for x in "ab"]
    for _ in range(3):
        engine.step()
    for ticket in (*tickets, tickets[0], 12345):
        engine.cancel(ticket)
    assert engine.stats.used_slots == 0
    third = engine.submit(GenerateRequest(encode("a long story"), 10))
    events = engine.step()
    failed = [event for event in events if isinstance(event, FailedEvent)]
    assert sorted(e.ticket for e in failed) == tickets and all(e.error.kind == "cancelled" for e in failed)
    results = [event for event in events if isinstance(event, DoneEvent)]
    while engine.busy:
        results += [event for event in engine.step() if isinstance(event, DoneEvent)]
    assert results == [DoneEvent(third, results[0].result)]
    assert results[0].result.text == run(dry(), GenerateRequest(encode("a long story"), 10))[0].text


def test_a_waiting_request_can_be_cancelled():
    engine = dry(max_batch_tokens=1)
    first, second = (engine.submit(GenerateRequest(encode(x), 5)) for x in ("one", "two"))
    engine.step()
    engine.cancel(second)
    events = []
    while engine.busy:
        events += engine.step()
    assert {e.ticket: type(e) for e in events} == {first: DoneEvent, second: FailedEvent}


@pytest.mark.parametrize("neighbours", [0, 1, 7, 31])
def test_a_seeded_sample_does_not_depend_on_its_neighbours(neighbours):
    request = GenerateRequest(encode("Once upon a time"), 20, sampling=Sampling(temperature=0.8, seed=11))
    (alone,) = run(dry(), request)
    others = [GenerateRequest(encode(f"Other {i}"), 15, sampling=Sampling(temperature=i % 3, seed=i)) for i in range(neighbours)]
    for place in {0, neighbours // 2, neighbours}:
        results = run(dry(), *others[:place], request, *others[place:])
        assert results[place].ids == alone.ids


def test_an_idle_step_does_nothing():
    engine = dry()
    assert not engine.busy and engine.step() == [] and engine.stats.steps == 0


def test_all_kept_tokens_after_a_stop_are_those_of_the_value():
    """Tokens of the stop are computed and yet no part of what is kept."""
    prompt = WORDS.ids("a")
    engine = scripted(answers({prompt: WORDS.ids("b", "c", "d", "e", "f")}, WORDS.end))
    (result,) = run(engine, GenerateRequest(prompt, 20, stops=("cde",)))
    assert result.text == "b" and engine.stats.cached_slots == 2
