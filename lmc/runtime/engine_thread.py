"""One thread that owns an engine.

Commands come by a queue, events go to `deliver` as one list per step, called in the engine's thread.  The thread sleeps while there
is nothing to do.  Whatever ends it (`close`, or a fault inside) ends every open request with a `FailedEvent`: nobody waits for ever.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass

from lmc.diagnostics import RunError
from lmc.runtime.engine import Engine
from lmc.runtime.engine_failures import broken, cancelled
from lmc.runtime.engine_stats import EngineStats
from lmc.runtime.hints import Hint, Prefill, Release
from lmc.runtime.pulse import Pulse
from lmc.runtime.request import DoneEvent, Event, FailedEvent, GenerateRequest, ScoreRequest


@dataclass(frozen=True, slots=True)
class _Submit:
    ticket: int
    request: GenerateRequest | ScoreRequest


@dataclass(frozen=True, slots=True)
class _Cancel:
    ticket: int


@dataclass(frozen=True, slots=True)
class _Hint:
    hint: Hint


@dataclass(frozen=True, slots=True)
class _Close:
    pass


class EngineThread:
    """Runs `engine` until `close`.  All methods may be called from any thread.  `pulse`: how its steps go."""

    def __init__(self, engine: Engine, deliver: Callable[[list[Event]], None]):
        self._engine = engine
        self._deliver = deliver
        self._commands: queue.SimpleQueue[_Submit | _Cancel | _Hint | _Close] = queue.SimpleQueue()
        self._lock = threading.Lock()  # a command is either queued before the end or refused
        self._end: RunError | None = None
        self._tickets: set[int] = set()  # open ones; the engine thread's own
        self.pulse = Pulse()
        # A daemon, so that a second Ctrl-C ends the process in the middle of a step.
        self._thread = threading.Thread(target=self._run, name="lmc-engine", daemon=True)
        self._thread.start()

    @property
    def stats(self) -> EngineStats:
        """The engine's numbers; those of a step that is under way may be half there."""
        return self._engine.stats

    @property
    def ended(self) -> bool:
        """Whether it takes nothing any more: it was closed, or a fault inside has ended it."""
        return self._end is not None

    def submit(self, request: GenerateRequest | ScoreRequest) -> int:
        """Queue a request and return its ticket.

        Raises `RunError` as `Engine.check` does, and of kind "cancelled" or "internal" once the thread has ended."""
        self._engine.check(request)
        ticket = self._engine.reserve()
        with self._lock:
            if self._end is not None:
                raise self._end
            self._commands.put(_Submit(ticket, request))
        return ticket

    def cancel(self, ticket: int) -> None:
        """Give up a request; nothing happens if it is over."""
        with self._lock:
            if self._end is None:
                self._commands.put(_Cancel(ticket))

    def reserve(self) -> int:
        """A handle for a hint."""
        return self._engine.reserve()

    def hint(self, hint: Hint) -> None:
        """Pass a hint on; nothing happens after the end.  It takes no lock, so that a finaliser may call it at any time."""
        self._commands.put(_Hint(hint))

    def close(self) -> None:
        """End the thread, in the middle of a step where the model can; open requests fail with kind "cancelled".  Twice is harmless."""
        with self._lock:
            if self._end is None:
                self._end = cancelled()
                self._commands.put(_Close())
                self._engine.interrupt()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        try:
            while self._obey():
                self._step()
            self._fail_open(cancelled())
        except BaseException as error:
            with self._lock:
                self._end = self._end or broken(error)
            self._fail_open(broken(error))
        finally:
            # Who is delivered to holds this object: weights and pool are not to wait for the collector, which does not see how large they are.
            self._deliver = _to_nobody

    def _step(self) -> None:
        # A function of its own, so that a thread that waits holds no error, and through it the frames that it came by.
        self.pulse.begin()
        events = self._engine.step()
        self.pulse.end()
        if events:
            self._tickets -= {event.ticket for event in events if isinstance(event, (DoneEvent, FailedEvent))}
            self._deliver(events)

    def _obey(self) -> bool:
        """Carry out the commands that are there; wait for one while the engine has nothing to do.  False at `close`."""
        while True:
            try:
                if not self._carry_out(self._commands.get(block=not self._engine.busy)):
                    return False
            except queue.Empty:
                return True

    def _carry_out(self, command: _Submit | _Cancel | _Hint | _Close) -> bool:
        """False for the last one."""
        match command:
            case _Submit(ticket, request):
                self._tickets.add(ticket)
                self._engine.submit(request, ticket)
            case _Cancel(ticket):
                self._engine.cancel(ticket)
            case _Hint(hint):
                self._obey_hint(hint)
            case _Close():
                for ticket in self._tickets:
                    self._engine.cancel(ticket)
                return False
        return True

    def _obey_hint(self, hint: Hint) -> None:
        if isinstance(hint, Prefill):
            self._tickets.add(hint.handle)
        self._engine.hint(hint)
        if isinstance(hint, Release):
            self._tickets.discard(hint.handle)

    def _fail_open(self, error: RunError) -> None:
        """End all requests that are open or still in the queue; nothing is queued any more once `_end` is set."""
        while not self._commands.empty():
            command = self._commands.get()
            if isinstance(command, _Submit):
                self._tickets.add(command.ticket)
        if self._tickets:
            open_tickets, self._tickets = sorted(self._tickets), set()
            self._deliver([FailedEvent(ticket, error) for ticket in open_tickets])


def _to_nobody(events: list[Event]) -> None:
    """Behind the end nothing comes."""
