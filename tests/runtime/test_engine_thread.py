"""The engine's thread: events by step, sleeping, ends of all kinds.  Every wait has a limit, so that a hang is a failure."""

from __future__ import annotations

import asyncio
import gc
import queue
import threading
import time
import weakref

import pytest

from lmc.diagnostics import RunError
from lmc.runtime.batch import Interrupted
from lmc.runtime.dry import DryModel, dry_tokenizer
from lmc.runtime.engine import Engine
from lmc.runtime.engine_thread import EngineThread
from lmc.runtime.request import DoneEvent, FailedEvent, GenerateRequest
from tests.runtime.programs import dry_session


class Inbox:
    """Collects what is delivered; `wait` until all tickets have ended."""

    def __init__(self):
        self.lists = queue.SimpleQueue()
        self.ends = {}

    def wait(self, *tickets, limit=20.0):
        while not set(tickets) <= set(self.ends):
            for event in self.lists.get(timeout=limit):
                if isinstance(event, (DoneEvent, FailedEvent)):
                    assert event.ticket not in self.ends, "ended twice"
                    self.ends[event.ticket] = event
        return [self.ends[ticket] for ticket in tickets]


class SlowModel(DryModel):
    """Waits for `gate` in each step and says when it got there."""

    def __init__(self):
        super().__init__()
        self.gate, self.reached = threading.Semaphore(0), threading.Semaphore(0)

    def forward(self, rows):
        self.reached.release()
        assert self.gate.acquire(timeout=20)
        return super().forward(rows)


def start(model=None, slots=512):
    inbox = Inbox()
    return EngineThread(Engine(model or DryModel(), dry_tokenizer(), slots=slots), inbox.lists.put), inbox


def ask(text: str, tokens: int = 10) -> GenerateRequest:
    return GenerateRequest(tuple(dry_tokenizer().encode(text)), tokens, ignore_eos=True)


def alone(request):
    engine = Engine(DryModel(), dry_tokenizer(), slots=512)
    engine.submit(request)
    return next(event.result for _ in range(1000) for event in engine.step() if isinstance(event, DoneEvent))


def test_requests_from_many_threads_all_end_right():
    thread, inbox = start()
    tickets, lock = {}, threading.Lock()

    def ask_some(name):
        for i in range(5):
            request = ask(f"{name} {i}")
            ticket = thread.submit(request)
            with lock:
                tickets[ticket] = request

    threads = [threading.Thread(target=ask_some, args=(f"thread {n}",)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for event in inbox.wait(*tickets):
        assert event.result.ids == alone(tickets[event.ticket]).ids
    thread.close()


def test_it_sleeps_while_there_is_nothing_to_do_and_wakes_for_a_request():
    thread, inbox = start()
    inbox.wait(thread.submit(ask("one")))
    steps = thread.stats.steps
    before = time.thread_time_ns(), time.process_time_ns()
    time.sleep(0.2)
    assert thread.stats.steps == steps
    # The whole process used next to no processor time: nobody polls.
    assert time.process_time_ns() - before[1] < 100_000_000
    inbox.wait(thread.submit(ask("two")))
    thread.close()


def test_a_request_that_can_never_run_is_refused_in_the_callers_thread():
    thread, _ = start(slots=64)
    with pytest.raises(RunError) as caught:
        thread.submit(GenerateRequest((1,) * 100, 5))
    assert caught.value.kind == "pool"
    thread.close()


def test_close_fails_what_is_open_and_what_is_still_in_the_queue():
    model = SlowModel()
    thread, inbox = start(model)
    running = thread.submit(ask("one"))
    assert model.reached.acquire(timeout=20)
    queued = thread.submit(ask("two"))
    closer = threading.Thread(target=thread.close)
    closer.start()
    time.sleep(0.05)
    with pytest.raises(RunError) as caught:
        thread.submit(ask("three"))
    assert caught.value.kind == "cancelled"
    model.gate.release(1000)
    closer.join(timeout=20)
    assert not closer.is_alive()
    for event in inbox.wait(running, queued):
        assert isinstance(event, FailedEvent) and event.error.kind == "cancelled"
    thread.close()
    thread.cancel(running)


class LongModel(DryModel):
    """Its passes end only when they are interrupted."""

    def __init__(self):
        super().__init__()
        self.reached, self.end = threading.Event(), threading.Event()

    def interrupt(self):
        self.end.set()

    def forward(self, rows):
        self.reached.set()
        assert self.end.wait(20), "nobody interrupted the pass"
        raise Interrupted("between two layers")


def test_close_interrupts_the_step_in_progress():
    model = LongModel()
    thread, inbox = start(model)
    ticket = thread.submit(ask("a long prompt"))
    assert model.reached.wait(20)
    thread.close()
    (end,) = inbox.wait(ticket)
    assert isinstance(end, FailedEvent) and end.error.kind == "cancelled"


def test_a_cancelled_request_ends_within_two_steps_and_the_others_go_on():
    model = SlowModel()
    thread, inbox = start(model)
    victim, other = thread.submit(ask("one", 100)), thread.submit(ask("two", 30))
    for _ in range(3):
        assert model.reached.acquire(timeout=20)
        model.gate.release()
    assert model.reached.acquire(timeout=20)
    steps = thread.stats.steps
    thread.cancel(victim)
    thread.cancel(victim)
    model.gate.release(2)
    (event,) = inbox.wait(victim)
    assert event.error.kind == "cancelled" and thread.stats.steps <= steps + 2
    model.gate.release(1000)
    (event,) = inbox.wait(other)
    assert event.result.ids == alone(ask("two", 30)).ids
    thread.close()


def test_a_crash_of_the_thread_fails_everything_and_later_requests_are_refused():
    thread, inbox = start()
    engine = thread._engine
    engine.step = lambda: 1 / 0
    ticket = thread.submit(ask("one"))
    (event,) = inbox.wait(ticket)
    assert event.error.kind == "internal" and "ZeroDivisionError" in str(event.error)
    with pytest.raises(RunError) as caught:
        thread.submit(ask("two"))
    assert caught.value.kind == "internal"
    thread.close()


def test_close_from_the_callback_does_not_wait_for_itself():
    ended = threading.Event()
    holder = {}

    def deliver(events):
        holder["thread"].close()
        ended.set()

    holder["thread"] = EngineThread(Engine(DryModel(), dry_tokenizer(), slots=512), deliver)
    holder["thread"].submit(ask("one"))
    assert ended.wait(timeout=20)


def test_the_thread_does_not_keep_the_process_alive():
    thread, _ = start()
    assert thread._thread.daemon
    thread.close()
    assert not thread._thread.is_alive()


def test_a_thread_that_waits_holds_nothing_of_what_it_told():
    engine, told = Engine(DryModel(), dry_tokenizer(), slots=200), []

    def deliver(events):
        told.extend(weakref.ref(event.error) for event in events if isinstance(event, FailedEvent))

    thread = EngineThread(engine, deliver)
    ticket = thread.submit(GenerateRequest((1, 2, 3), 10_000, ignore_eos=True))
    thread.cancel(ticket)
    while not told or engine.busy:
        time.sleep(0.01)
    for _ in range(100):
        gc.collect()
        if told[0]() is None:
            break
        time.sleep(0.01)
    assert told[0]() is None
    thread.close()


def test_a_closed_session_leaves_its_model_at_once():
    """Weights and pool are large, and the collector, which is off here, counts objects and not bytes."""
    session = dry_session(slots=512)
    model = weakref.ref(session._engine._engine._model)
    asyncio.run(session.generate(ask("Hello")))
    gc.collect()
    gc.disable()
    try:
        session.close()
        del session
        assert model() is None
    finally:
        gc.enable()
