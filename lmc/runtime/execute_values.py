"""Instructions that compute values, build contexts and end blocks: all of them run on the spot.

    r3 = text.concat("Judge only its ", r2, ".")
    r4 = context.append(r1, r3)[role = user]
    control.yield(r4)
"""

from __future__ import annotations

import json
from typing import Any

from lmc.diagnostics import RunError
from lmc.pure import PureError, call_pure
from lmc.pure.core import shown
from lmc.runtime.context import Context, ContextError
from lmc.runtime.failures import failure, pure_failure
from lmc.runtime.frames import Exit, Frame, Outcome
from lmc.runtime.plan import Step
from lmc.types import RecordT
from lmc.values import Record, from_data, text_of


def context_new(frame: Frame, step: Step) -> None:
    frame.write(step.instruction, (frame.instance.bound.session.prompter.new(),))


def context_append(frame: Frame, step: Step) -> None:
    instruction, attributes = step.instruction, step.instruction.attributes
    text = text_of(frame.operand(instruction, "text"))
    prompter = frame.instance.bound.session.prompter
    try:
        context = prompter.append(frame.operand(instruction, "context"), attributes["role"], text)
    except (ContextError, RunError) as error:
        # A `RunError` is what a deferred append before this one has left.
        if isinstance(error, ContextError):
            error = failure("E0840", str(error), instruction.span, kind="value")
        if not attributes.get("deferred"):
            raise error from None
        context = Context(fault=error)
    frame.write(instruction, (context,))


def const(frame: Frame, step: Step) -> None:
    instruction = step.instruction
    frame.write(instruction, (from_data(json.loads(instruction.attributes["value"]), instruction.types[0]),))


def text_concat(frame: Frame, step: Step) -> None:
    frame.write(step.instruction, ("".join([text_of(p) for p in frame.operands(step.instruction, "pieces")]),))


def record_make(frame: Frame, step: Step) -> None:
    instruction = step.instruction
    record_type = instruction.types[0]
    assert isinstance(record_type, RecordT), record_type
    frame.write(instruction, (Record(record_type, frame.operands(instruction, "values")),))


def record_get(frame: Frame, step: Step) -> None:
    instruction = step.instruction
    frame.write(instruction, (frame.operand(instruction, "record").get(instruction.attributes["field"]),))


def union_is(frame: Frame, step: Step) -> None:
    instruction = step.instruction
    value = frame.operand(instruction, "value")
    frame.write(instruction, (isinstance(value, Record) and value.type.name == instruction.attributes["member"],))


def list_make(frame: Frame, step: Step) -> None:
    frame.write(step.instruction, (frame.operands(step.instruction, "elements"),))


def tuple_get(frame: Frame, step: Step) -> None:
    instruction = step.instruction
    frame.write(instruction, (frame.operand(instruction, "value")[instruction.attributes["index"]],))


def dict_make(frame: Frame, step: Step) -> None:
    entries = frame.operands(step.instruction, "entries")
    frame.write(step.instruction, (dict(zip(entries[::2], entries[1::2])),))


def pure_call(frame: Frame, step: Step) -> None:
    instruction = step.instruction
    result = instruction.types[0] if instruction.types else None
    args = frame.operands(instruction, "args")
    try:
        value = call_pure(instruction.attributes["function"], args, result, frame.instance.bound.named)
    except PureError as error:
        raise pure_failure(error, instruction.span) from None
    frame.write(instruction, (value,))


def assertion(frame: Frame, step: Step) -> None:
    instruction = step.instruction
    if frame.operand(instruction, "condition") is True:
        return
    given = frame.operand(instruction, "message") if "message" in instruction.inputs else None
    message = f"assertion failed: {given}" if given is not None else "assertion failed"
    help = None
    if "left" in instruction.inputs:
        left, right = frame.operand(instruction, "left"), frame.operand(instruction, "right")
        help = f"left is {shown(left)}\nright is {shown(right)}"
    raise failure("E0832", message, instruction.span, kind="assert", help=help)


def fail(frame: Frame, step: Step) -> None:
    instruction = step.instruction
    raise failure("E0831", text_of(frame.operand(instruction, "message")), instruction.span, kind="fail")


def _leave(how: Exit) -> Any:
    def run(frame: Frame, step: Step) -> Outcome:
        return Outcome(how, frame.operands(step.instruction, "values"))

    return run


end_yield, end_break, end_continue, end_return = map(_leave, (Exit.YIELD, Exit.BREAK, Exit.CONTINUE, Exit.RETURN))
