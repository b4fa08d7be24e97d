"""One run for one request: its result, or what it shows as it goes on.

    await run_result(run)                     {"value": …, "seed": 7, "usage": {…}, "printed": […], …}
    async for text in run_events(run): …      server-sent events

    event: text                                                       event: print
    data: {"where":"judge.lmp:29:21","path":"0:1/","text":"The"}      data: {"text":"step 1"}

    event: value                                                      event: error
    data: {"value":…,"seed":7,…}                                      data: {"error":{…}}

The last event is `value` or `error`.  Whoever stops waiting ends the run: its generations are given up, what its externs give is
dropped.  This file does not know who waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any

from lmc.backend.program import FunctionCode
from lmc.diagnostics import RunError, Span
from lmc.runtime.failures import broken_run, failure
from lmc.runtime.instance import Sinks
from lmc.runtime.machine import Machine
from lmc.runtime.report import Report
from lmc.server.connection import event
from lmc.server.errors import json_text
from lmc.server.generating import ended
from lmc.server.program_errors import program_error
from lmc.server.program_options import AskedRun
from lmc.values import to_data

#: Characters that a run may print, and that may wait for a client that reads slowly.
MOST_PRINTED, MOST_WAITING = 1 << 20, 4 << 20
# Seconds; proxies cut streams on which nothing comes.
_QUIET = 15.0

#: What is called with an event's name and data.
Tell = Callable[[str, dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class FunctionRun:
    """A function of a program with its arguments, about to run."""

    machine: Machine
    code: FunctionCode
    args: tuple[Any, ...]
    asked: AskedRun


async def run_result(run: FunctionRun) -> dict[str, Any]:
    """The result's body.  Raises `RunError`."""
    printed: list[str] = []

    def tell(name: str, data: dict[str, Any]) -> None:
        if name == "print":
            printed.append(data["text"])

    return {**await _outcome(run, tell), "printed": printed}


async def run_events(run: FunctionRun) -> AsyncGenerator[str, None]:
    """The run's events as text, several at a time where they come fast."""
    told = _Events()
    work = asyncio.create_task(_tell_all(run, told))
    try:
        while not told.over:
            yield await told.take()
    finally:
        await ended((work,))


class _Events:
    """Events that wait to be sent.  `over`: the last one has been taken."""

    __slots__ = ("over", "_texts", "_length", "_there", "_complete")

    def __init__(self) -> None:
        self.over = self._complete = False
        self._texts: list[str] = []
        self._length = 0
        self._there = asyncio.Event()

    def tell(self, name: str, data: dict[str, Any]) -> None:
        """Raises `RunError` where too much waits already: the run ends, and with it what it would still write."""
        if self._length > MOST_WAITING:
            raise failure("E0839", "the client reads its events too slowly", None, kind="cancelled")
        self._add(event(json_text(data), name))

    def end(self, name: str, data: dict[str, Any]) -> None:
        """Tell the last one."""
        self._complete = True
        self._add(event(json_text(data), name))

    async def take(self) -> str:
        """All that is there; a comment where nothing comes for a while."""
        try:
            await asyncio.wait_for(self._there.wait(), _QUIET)
        except TimeoutError:
            return ": the run goes on\n\n"
        self._there.clear()
        text, self._texts, self._length = "".join(self._texts), [], 0
        self.over = self._complete
        return text

    def _add(self, text: str) -> None:
        self._texts.append(text)
        self._length += len(text)
        self._there.set()


async def _tell_all(run: FunctionRun, told: _Events) -> None:
    try:
        told.end("value", await _outcome(run, told.tell))
    except RunError as error:
        told.end("error", program_error(error).data)
    except Exception as error:
        told.end("error", program_error(broken_run(error)).data)


async def _outcome(run: FunctionRun, tell: Tell) -> dict[str, Any]:
    """Run it to its end, within its deadline."""
    printed = 0

    def show(text: str) -> None:
        nonlocal printed
        printed += len(text)
        if printed > MOST_PRINTED:
            message = f"the run has printed more than {MOST_PRINTED:,} characters, what a server passes on"
            raise failure("E0838", message, None, kind="budget")
        tell("print", {"text": text})

    def stream(path: str, text: str, span: Span | None) -> None:
        tell("text", {"where": str(span or ""), "path": path, "text": text})

    started = run.machine.start(run.asked.options, Sinks(show, lambda path, text: stream(path, text, None), stream_at=stream))
    try:
        async with asyncio.timeout(run.asked.deadline):
            value = await started.call(run.code.name, run.args)
    except TimeoutError:
        message = f"the run has taken {run.asked.deadline:g} s, its deadline"
        raise failure("E0838", message, run.code.span, kind="budget") from None
    return {"value": to_data(value, run.code.result), **_numbers(started.report)}


def _numbers(report: Report) -> dict[str, Any]:
    usage = {"calls": report.calls, "prompt_tokens": report.cached + report.computed, "cached_tokens": report.cached,
             "generated_tokens": report.generated, "jumped_tokens": report.jumped}
    return {"seed": report.seed, "usage": usage, "seconds": round(report.seconds, 6), "warnings": list(report.warnings)}
