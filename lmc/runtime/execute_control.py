"""Instructions that run their blocks one after the other, and calls.

    control.for(items, initial) {…}     rounds share the registers; `count_round` bounds those that never ask the model

A loop lets other work run from time to time, so that a long one can be cancelled and starves nobody.
"""

from __future__ import annotations

import asyncio
from typing import Any

from lmc.diagnostics import RunError, Span
from lmc.runtime.block_run import run_block
from lmc.runtime.failures import UNCATCHABLE, called, error_value, noted, short_name
from lmc.runtime.frames import Exit, Frame, Outcome
from lmc.runtime.plan import Plan, Step

#: Rounds between two turns of the event loop, a few milliseconds of work.
ROUNDS_PER_TURN = 100


async def control_if(frame: Frame, step: Step) -> Outcome | None:
    plan = step.blocks[0] if frame.operand(step.instruction, "condition") is True else step.blocks[1]
    return _deliver(frame, step, await run_block(frame, plan))


async def control_try(frame: Frame, step: Step) -> Outcome | None:
    body, handler = step.blocks
    try:
        outcome = await run_block(frame, body)
    except RunError as error:
        if error.kind in UNCATCHABLE:
            raise
        frame.enter(handler.params, (error_value(error),))
        outcome = await run_block(frame, handler)
    return _deliver(frame, step, outcome)


async def control_for(frame: Frame, step: Step) -> Outcome | None:
    instruction = step.instruction
    carried = frame.operands(instruction, "initial")
    for index, item in enumerate(frame.operand(instruction, "items")):
        await _count(frame, step, index)
        outcome = await _round(frame, step, index, step.blocks[0], (item, *carried))
        if outcome.exit is Exit.RETURN:
            return outcome
        carried = outcome.values
        if outcome.exit is Exit.BREAK:
            break
    frame.write(instruction, carried)
    return None


async def control_while(frame: Frame, step: Step) -> Outcome | None:
    instruction = step.instruction
    test, body = step.blocks
    carried = frame.operands(instruction, "initial")
    index = 0
    while True:
        await _count(frame, step, index)
        outcome = await _round(frame, step, index, test, carried)
        if outcome.exit is Exit.RETURN:
            return outcome
        goes_on, *rest = outcome.values
        carried = tuple(rest)
        if goes_on is not True:
            break
        outcome = await _round(frame, step, index, body, carried)
        if outcome.exit is Exit.RETURN:
            return outcome
        carried = outcome.values
        if outcome.exit is Exit.BREAK:
            break
        index += 1
    frame.write(instruction, carried)
    return None


async def call(frame: Frame, step: Step) -> None:
    instruction = step.instruction
    bound = frame.instance.bound
    code = bound.program.functions[instruction.attributes["callee"]]
    name, here = short_name(code.name), frame.function(instruction)
    frame.instance.check_depth(frame.depth_of(instruction), name, here, instruction.span)
    frame.instance.count_round(f"`{name}`", here, instruction.span)
    try:
        values = await run_function(frame.callee(code, instruction), bound.plans[code.name], frame.operands(instruction, "args"))
    except RunError as error:
        raise noted(error, called(name, instruction.span)) from None
    frame.write(instruction, values)


async def run_function(frame: Frame, plan: Plan, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Run a function's body in its own frame; gives what it returns."""
    frame.enter(plan.params, args)
    outcome = await run_block(frame, plan)
    assert outcome.exit is Exit.RETURN, outcome.exit
    return outcome.values


def _deliver(frame: Frame, step: Step, outcome: Outcome) -> Outcome | None:
    """What a block yields are the results; anything else leaves the block around it too."""
    if outcome.exit is not Exit.YIELD:
        return outcome
    frame.write(step.instruction, outcome.values)
    return None


async def _count(frame: Frame, step: Step, index: int) -> None:
    instruction = step.instruction
    frame.instance.count_round(f"the loop at {instruction.span}", frame.function(instruction), instruction.span)
    if index % ROUNDS_PER_TURN == ROUNDS_PER_TURN - 1:
        await asyncio.sleep(0)


async def _round(frame: Frame, step: Step, index: int, plan: Plan, values: tuple[Any, ...]) -> Outcome:
    """One round, or the test before it.  A budget that is used up inside names the loops around."""
    instruction = step.instruction
    frame.enter(plan.params, values)
    try:
        return await run_block(frame.round(instruction.attributes["site"], index), plan)
    except RunError as error:
        if error.kind != "budget":
            raise
        raise noted(error, round_note(index, instruction.span)) from None


def round_note(index: int, span: Span | None) -> str:
    """The note of a round in which a budget was used up."""
    return f"in round {index + 1:,} of the loop at {span}"
