"""Instructions that run blocks side by side: `fork`, its form with named arms, and comprehensions.

    lm.fork(c, ["a", "b", "c"]) {…}     three branches, each with registers of its own; results column by column, in index order

A branch that fails ends the fork, or with `collect` gives its error as a value in each of its columns.
The number of elements is not bounded here: each is a task of the event loop, no thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from lmc.diagnostics import RunError
from lmc.runtime.block_run import run_block
from lmc.runtime.execute_control import ROUNDS_PER_TURN, round_note
from lmc.runtime.failures import UNCATCHABLE, error_value, noted
from lmc.runtime.frames import Exit, Frame
from lmc.runtime.plan import Plan, Step
from lmc.runtime.side_by_side import in_program_order


async def fork(frame: Frame, step: Step) -> None:
    instruction = step.instruction
    context, items = frame.operand(instruction, "context"), frame.operand(instruction, "items")
    place = f"of the fork at {instruction.span}"
    width = len(instruction.outputs)
    run = _collecting(width) if instruction.attributes.get("collect") else _branch
    rows = await in_program_order(
        run(frame, step, step.blocks[0], index, (context, item), f"in branch {index} {place}") for index, item in enumerate(items)
    )
    frame.write(instruction, _columns(rows, width))


async def branches(frame: Frame, step: Step) -> None:
    instruction = step.instruction
    context = frame.operand(instruction, "context")
    place = f"of the fork at {instruction.span}"
    attributes = instruction.attributes
    collect = attributes.get("collect", False)
    rows = await in_program_order(
        (_collecting(count) if collect else _branch)(frame, step, plan, index, (context,), f"in branch `{name}` {place}")
        for index, (name, count, plan) in enumerate(zip(attributes["names"], attributes["counts"], step.blocks))
    )
    frame.write(instruction, (value for row in rows for value in row))


async def comprehension(frame: Frame, step: Step) -> None:
    instruction = step.instruction
    items, plan = frame.operand(instruction, "items"), step.blocks[0]
    if plan.inline or plan.host_effects:
        rows = await _one_by_one(frame, step, items)
    else:
        rows = await in_program_order(
            _branch(frame, step, plan, index, (item,), _element(step, index)) for index, item in enumerate(items)
        )
    frame.write(instruction, _columns(rows, len(instruction.outputs)))


async def _one_by_one(frame: Frame, step: Step, items: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """What never waits needs no task, and what the host sees keeps its order."""
    rows = []
    for index, item in enumerate(items):
        if index % ROUNDS_PER_TURN == ROUNDS_PER_TURN - 1:
            await asyncio.sleep(0)
        rows.append(await _branch(frame, step, step.blocks[0], index, (item,), _element(step, index)))
    return rows


def _element(step: Step, index: int) -> str:
    if step.instruction.attributes.get("loop"):
        return round_note(index, step.instruction.span)
    return f"in element {index} of the comprehension at {step.instruction.span}"


async def _branch(frame: Frame, step: Step, plan: Plan, index: int, args: tuple[Any, ...], note: str) -> tuple[Any, ...]:
    """The values that one branch or element yields.  Its errors get the note; those of a loop only where a budget is used up."""
    own = frame.branch(step.instruction.attributes["site"], index)
    own.enter(plan.params, args)
    try:
        outcome = await run_block(own, plan)
    except RunError as error:
        if error.kind != "budget" and step.instruction.attributes.get("loop"):
            raise
        raise noted(error, note) from None
    assert outcome.exit is Exit.YIELD, outcome.exit
    return outcome.values


def _collecting(width: int) -> Callable[..., Coroutine[Any, Any, tuple[Any, ...]]]:
    """`_branch`, but that a failure is `width` times its error; what `try` does not catch fails all the same."""

    async def run(frame: Frame, step: Step, plan: Plan, index: int, args: tuple[Any, ...], note: str) -> tuple[Any, ...]:
        try:
            return await _branch(frame, step, plan, index, args, note)
        except RunError as error:
            if error.kind in UNCATCHABLE:
                raise
            return (error_value(error),) * width

    return run


def _columns(rows: list[tuple[Any, ...]], count: int) -> list[tuple[Any, ...]]:
    return [tuple([row[column] for row in rows]) for column in range(count)]
