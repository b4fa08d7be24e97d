"""Hints of a program: what comes and what is over, for the engine's cache.  None of them waits, fails or changes a value.

    hint.prefill(r3, readers = r6)      r3 gets a reader for each element of r6
    hint.keep(r4)[next_use = 2]
    hint.release(r4)                    the register lets go of the context; where nothing else holds it, it is over
    hint.pin(r3)
"""

from __future__ import annotations

from lmc.backend.program import Register
from lmc.runtime.context import Context
from lmc.runtime.frames import Frame
from lmc.runtime.plan import Step


def prefill(frame: Frame, step: Step) -> None:
    instruction = step.instruction
    if "readers" not in instruction.inputs or len(frame.operand(instruction, "readers")) > 1:
        frame.instance.leases.prefill(frame.operand(instruction, "context"))


def keep(frame: Frame, step: Step) -> None:
    instruction = step.instruction
    frame.instance.leases.keep(frame.operand(instruction, "context"), instruction.attributes.get("next_use"))


def release(frame: Frame, step: Step) -> None:
    register = step.instruction.inputs["context"]
    assert type(register) is Register, register
    context = frame.registers[register.index]
    if isinstance(context, Context):
        frame.instance.leases.release(context)
    frame.registers[register.index] = None


def pin(frame: Frame, step: Step) -> None:
    bound = frame.instance.bound
    if step not in bound.pinned:
        # A context of literal text alone has the same tokens at each call.
        bound.pinned[step] = bound.session.prompter.certain(frame.operand(step.instruction, "context"))
    if bound.pinned[step]:
        frame.instance.leases.pin(bound.pinned[step])
