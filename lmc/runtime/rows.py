"""Many runs of one function: the rows of a batch, side by side, their results in order.

    rows      {"review": "…"}   {"review": 3}           {"review": "…"}
    results   value             error, row 2            value

A row that fails does not disturb the others.  At most `WINDOW` rows are under way, so that a long batch does not fill the memory;
it is wide enough that the engine never waits for rows.  Rows start group by group, where groups have equal leading arguments: a
document that many questions are asked about is computed once, however small the cache.  Results come in the order of the rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from lmc.backend.program import FunctionCode
from lmc.diagnostics import LmcError
from lmc.runtime.arguments import bind_arguments
from lmc.runtime.failures import broken_run
from lmc.runtime.instance import RunOptions, Sinks, program_seed
from lmc.runtime.machine import Machine
from lmc.runtime.report import Report

#: Rows under way at a time, and rows that are looked at together to find the order in which they start.
WINDOW = 1024
STRETCH = 16 * WINDOW


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
    source = ordered_rows(code, enumerate(rows))
    tasks: set[asyncio.Task[RowResult]] = set()
    ended: asyncio.Queue[asyncio.Task[RowResult]] = asyncio.Queue()
    early: dict[int, RowResult] = {}
    expected = 0
    try:
        while True:
            while len(tasks) < WINDOW and (item := next(source, None)) is not None:
                index, row = item
                task = asyncio.create_task(_run_row(machine, code, row, index, options, sinks))
                task.add_done_callback(lambda _: on_end())
                task.add_done_callback(ended.put_nowait)
                tasks.add(task)
            if not tasks:
                return
            task = await ended.get()
            tasks.discard(task)
            early[task.result().index] = task.result()
            while expected in early:
                yield early.pop(expected)
                expected += 1
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def ordered_rows(code: FunctionCode, rows: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    """The numbered rows in the order in which they start: those with equal leading arguments follow one another, groups in the order
    of their first rows.  Of a function that the host sees at work the order stays; of long batches it is found for a stretch at a
    time."""
    rows = iter(rows)
    if code.host_effects or not code.leading:
        yield from rows
        return
    positions = {p.name: i for i, p in enumerate(code.params)}
    while stretch := list(islice(rows, STRETCH)):
        firsts: dict[tuple[str, ...], int] = {}

        def place(item: tuple[int, Any]) -> tuple[int, ...]:
            values = [_argument(item[1], name, positions[name]) for name in code.leading]
            return tuple(firsts.setdefault(tuple(values[:n + 1]), item[0]) for n in range(len(values)))

        yield from sorted(stretch, key=place)


def _argument(row: Any, name: str, position: int) -> str:
    """What sets a row's argument apart from others; empty where the row does not give it."""
    if isinstance(row, dict):
        return repr(row.get(name, ""))
    return repr(row[position]) if isinstance(row, (list, tuple)) and position < len(row) else ""


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
