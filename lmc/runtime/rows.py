"""Many runs of one function: the rows of a batch, side by side, their results in order.

    rows      {"review": "…"}   {"review": 3}           {"review": "…"}
    results   value             error, row 2            value

A row that fails does not disturb the others.  At most `WINDOW` rows are under way, so that a long batch does not fill the memory;
it is wide enough that the engine never waits for rows.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from lmc.backend.program import FunctionCode
from lmc.diagnostics import LmcError
from lmc.runtime.arguments import bind_arguments
from lmc.runtime.failures import broken_run
from lmc.runtime.instance import RunOptions, Sinks, program_seed
from lmc.runtime.machine import Machine
from lmc.runtime.report import Report

WINDOW = 1024


@dataclass(frozen=True, slots=True)
class RowResult:
    """Of one row: the value, or the error where there is one."""

    index: int
    value: Any
    error: LmcError | None
    report: Report


async def run_rows(machine: Machine, code: FunctionCode, rows: Iterable[Any], options: RunOptions, sinks: Sinks, *,
                   on_end: Callable[[], None] = lambda: None) -> AsyncIterator[RowResult]:
    """Run `code` once for each row: a mapping of arguments by name, or a sequence of them.

    `on_end` is called whenever a row ends, in any order.  All rows have one program seed, and each draws its own random numbers
    from it, by its index.
    """
    options = replace(options, seed=program_seed(options, machine.bound.program))
    waiting: deque[asyncio.Task[RowResult]] = deque()
    source = enumerate(rows)
    try:
        while True:
            while len(waiting) < WINDOW and (item := next(source, None)) is not None:
                index, row = item
                task = asyncio.create_task(_run_row(machine, code, row, index, options, sinks))
                task.add_done_callback(lambda _: on_end())
                waiting.append(task)
            if not waiting:
                return
            yield await waiting[0]
            waiting.popleft()
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def _run_row(machine: Machine, code: FunctionCode, row: Any, index: int, options: RunOptions, sinks: Sinks) -> RowResult:
    run = machine.start(replace(options, row=str(index)), sinks)
    try:
        if isinstance(row, LmcError):
            raise row
        named = row if isinstance(row, dict) else {}
        args = bind_arguments(code, () if isinstance(row, dict) else row, named, machine.bound.externs.types)
        return RowResult(index, await run.call(code.name, args), None, run.report)
    except LmcError as error:
        return RowResult(index, None, error, run.report)
    except Exception as error:
        # A fault inside `lmc` in one row must not cost the work of the others.
        return RowResult(index, None, broken_run(error), run.report)
