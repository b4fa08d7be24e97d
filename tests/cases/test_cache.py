"""Cases of kind f: the cache is exact and full of what it should be, and whoever goes leaves nothing behind."""

from __future__ import annotations

import random
import threading

import pytest

from lmc import load
from lmc.compiler import compile_file
from lmc.diagnostics import RunError
from lmc.regex.build import compile_regex
from lmc.runtime.constraint import TokenConstraint, TokenIndex
from lmc.runtime.dry import DryModel
from lmc.runtime.engine import Engine
from lmc.runtime.engine_thread import EngineThread
from lmc.runtime.hints import Keep, Prefill, Release
from lmc.runtime.request import DoneEvent, FailedEvent, GenerateRequest, Sampling
from lmc.runtime.underway import State
from tests.runtime.test_random_driver import TwoTokens, answer, check_invariants, make_engine, run_alone


def ids_of(seed: int, length: int) -> tuple[int, ...]:
    rng = random.Random(seed)
    return tuple(rng.randint(0, 1) for _ in range(length))


def test_f01_ten_thousand_operations_keep_the_books():
    rng = random.Random(7)
    engine, handles, tickets = make_engine(512, max_batch_tokens=24), [], []
    trunk = ids_of(0, 60)
    for operation in range(10_000):
        dice = rng.random()
        # A prefix of any length, so that nodes are split everywhere; a fork is several of one prefix.
        prefix = trunk[: rng.randint(1, 60)]
        if dice < 0.12 and len(engine._open) < 40:
            for _ in range(rng.choice([1, 1, 3])):
                tail = tuple(rng.randint(0, 1) for _ in range(rng.randint(0, 20)))
                tickets.append(engine.submit(GenerateRequest(prefix + tail, rng.randint(1, 60), ignore_eos=True)))
        elif dice < 0.16 and tickets:
            engine.cancel(rng.choice(tickets))
        elif dice < 0.2:
            handles.append(engine.reserve())
            engine.hint(rng.choice([Prefill, Keep])(handles[-1], prefix))
        elif dice < 0.22 and handles:
            engine.hint(Release(rng.choice(handles)))
        else:
            engine.step()
        if operation % 10 == 0:
            check_invariants(engine)
    while engine.busy:
        engine.step()
    check_invariants(engine)
    assert engine.stats.retractions > 0, "the pool was never full: the test shows nothing"
    assert engine.stats.cached_slots > 400
    engine.submit(GenerateRequest(ids_of(99, 100), 100, ignore_eos=True))
    engine.step()
    assert engine.stats.running == 1, "where all is cached, room is made"


def test_f02_what_is_larger_than_the_pool_is_refused_at_once_with_the_numbers():
    engine = Engine(DryModel(TwoTokens(), max_positions=1024), TwoTokens(), slots=256)
    with pytest.raises(RunError, match="300 slots .* the pool has 256") as refused:
        engine.submit(GenerateRequest(ids_of(1, 300), 10))
    assert refused.value.kind == "pool" and engine.limit == 256 and not engine.busy
    tickets = {engine.submit(GenerateRequest(ids_of(2 + i, 20), 10)) for i in range(10)}
    done, steps = set(), 0
    while engine.busy:
        computed = engine.stats.computed
        done |= {event.ticket for event in engine.step()}
        steps += 1
        assert engine.stats.computed > computed and steps < 100, "a step without progress"
    assert done == tickets


def test_f04_models_that_differ_in_weights_or_positions_share_nothing(tmp_path):
    """A cache belongs to one engine, and an engine to one model as it was loaded: there is no key that could be mistaken."""
    class Shifted(DryModel):
        def logits_of(self, ids):
            return super().logits_of(ids)[::-1].copy()

    request = GenerateRequest(ids_of(1, 40), 12, ignore_eos=True)
    engines = [Engine(model(TwoTokens(), max_positions=200), TwoTokens(), slots=256) for model in (DryModel, Shifted)]
    first = [[run(engine, request) for engine in order] for order in (engines, engines[::-1])]
    again = [run(engine, request) for engine in engines]
    (a, b), (b_again, a_again) = first
    assert a.usage.cached == b.usage.cached == 0 < again[0].usage.cached
    assert a.ids == a_again.ids == again[0].ids and b.ids == b_again.ids == again[1].ids and a.ids != b.ids


def run(engine: Engine, request: GenerateRequest):
    engine.submit(request)
    while True:
        for event in engine.step():
            if isinstance(event, DoneEvent):
                return event.result


# Case F-06.

VICTIM = GenerateRequest(ids_of(5, 60), 30, ignore_eos=True, stream=True)
NEIGHBOURS = [GenerateRequest(ids_of(6 + i, 20), 80, ignore_eos=True, sampling=Sampling(temperature=1.0, seed=i)) for i in range(2)]


def phase(engine: Engine, ticket: int) -> str:
    request = engine._open[ticket]
    if request.state is State.WAITING:
        return "queued"
    return "prefilling" if request.prefilling else "decoding"


def test_f06_whoever_goes_at_any_moment_is_gone_within_two_steps():
    seen, moment = set(), 0
    while True:
        engine = make_engine(400, max_batch_tokens=16)
        tickets = [engine.submit(request) for request in NEIGHBOURS]
        engine.step()
        victim = engine.submit(VICTIM)
        events = [event for _ in range(moment) for event in engine.step()]
        if any(isinstance(event, DoneEvent) and event.ticket == victim for event in events):
            break
        seen.add(phase(engine, victim))
        engine.cancel(victim)
        engine.cancel(victim)
        third = engine.submit(VICTIM)
        after = [event for _ in range(2) for event in engine.step()]
        assert [e.error.kind for e in after if isinstance(e, FailedEvent) and e.ticket == victim] == ["cancelled"]
        check_invariants(engine)
        assert third in {request.ticket for request in engine._scheduler.running}, "its place is taken at once"
        ends = {}
        while engine.busy:
            ends |= {event.ticket: event.result for event in engine.step() if isinstance(event, DoneEvent)}
        assert [answer(ends[t]) for t in (*tickets, third)] == [answer(run_alone(r)) for r in (*NEIGHBOURS, VICTIM)]
        moment += 1
    assert seen == {"queued", "prefilling", "decoding"} and moment > 30


class SlowConstraint(TokenConstraint):
    """One whose first look takes until the test says so."""

    def __init__(self, *args):
        super().__init__(*args)
        self.begun, self.goes_on = threading.Event(), threading.Event()

    def min_tokens(self, *args, **options):
        self.begun.set()
        assert self.goes_on.wait(20)
        return super().min_tokens(*args, **options)


def test_f06_whoever_goes_while_its_constraint_is_made_ready_is_gone_too():
    class Counted(DryModel):
        steps = 0

        def forward(self, rows):
            self.steps += 1
            return super().forward(rows)

    events, over, model = [], threading.Event(), Counted(TwoTokens(), max_positions=200)

    def deliver(news):
        events.extend(news)
        if any(not hasattr(event, "text") for event in news):
            over.set()

    constraint = SlowConstraint(compile_regex("(ab)*"), TokenIndex(TwoTokens.token_bytes))
    engine = Engine(model, TwoTokens(), slots=200)
    thread = EngineThread(engine, deliver)
    try:
        ticket = thread.submit(GenerateRequest((0, 1), 50, constraint=constraint))
        assert constraint.begun.wait(20)
        thread.cancel(ticket)
        thread.cancel(ticket)
        constraint.goes_on.set()
        assert over.wait(20)
    finally:
        thread.close()
    assert [(event.ticket, event.error.kind) for event in events] == [(ticket, "cancelled")]
    assert model.steps <= 2 and engine.stats.used_slots == 0
    check_invariants(engine)


# Case F-08.

RULES = " ".join(f"Rule {n}: answer with care." for n in range(150))
CLOCK_FIRST = f'''
extern def now() -> str

def ask() -> str:
    raw:
        "At ${{now()}}. {RULES} So?"
        answer = gen(max_tokens=2)
    return answer
'''
CLOCK_LAST = CLOCK_FIRST.replace('"At ${now()}. ', '"').replace(" So?", " At ${now()}. So?")


@pytest.mark.parametrize("text, first", [(CLOCK_FIRST, True), (CLOCK_LAST, False)])
def test_f08_a_clock_at_the_head_ends_all_sharing_and_is_told(text, first, tmp_path):
    path = tmp_path / "ask.lmp"
    path.write_text(text)
    times = iter(range(10, 99))
    with load(path, dry=True, externs={"now": lambda: f"{next(times)}:00"}) as program:
        shown = str(program.ask.render())
        found = []
        for _ in range(5):
            program.ask()
            found.append(program.report.by_call[-1])
    where = shown.index("Rule 0"), shown.index("10:00")
    assert (where[0] > where[1]) is first, "no pass moves text"
    assert found[0].prompt > 2000
    if first:
        assert all(call.cached < 20 for call in found)
    else:
        assert all(call.cached >= 2000 for call in found[1:])
    warned = [w for w in compile_file(str(path)).warnings if w.code == "W107"]
    assert len(warned) == first and all("now" in path.read_text().splitlines()[w.span.line - 1] for w in warned)
