"""Instructions that reach the host: externs, `print`, `input`.

They run exactly once and in the order that the program's dependences give; a cancelled one's result is dropped.
"""

from __future__ import annotations

from typing import Any

from lmc.diagnostics import RunError
from lmc.runtime.daemon_call import call_in_daemon
from lmc.runtime.failures import failure, located
from lmc.runtime.frames import Frame
from lmc.runtime.plan import Step
from lmc.values import text_of, to_json


async def extern_call(frame: Frame, step: Step) -> None:
    instruction = step.instruction
    externs = frame.instance.bound.externs
    try:
        value = await externs.call(instruction.attributes["name"], frame.operands(instruction, "args"), frame.path_of(step),
                                     instruction.span)
    except RunError as error:
        raise located(error, instruction.span) from None
    frame.write(instruction, (value,))


def print_values(frame: Frame, step: Step) -> None:
    frame.instance.sinks.print(" ".join(map(_shown, frame.operands(step.instruction, "values"))))


async def read_input(frame: Frame, step: Step) -> None:
    instruction, ask = step.instruction, frame.instance.sinks.input
    if ask is None:
        raise failure("E0834", "`input` has nobody to ask here", instruction.span, kind="input",
                      help="run it with `lmc run` in a terminal, or pass a function: `lmc.load(…, input=…)`")
    try:
        line = await call_in_daemon(ask, text_of(frame.operand(instruction, "prompt")))
    except EOFError:
        line = ""
    except (OSError, ValueError) as error:
        raise failure("E0834", f"reading a line of input failed: {error}", instruction.span, kind="input") from None
    frame.write(instruction, (line,))


def _shown(value: Any) -> str:
    return text_of(value) if isinstance(value, (str, bool, int, float)) else to_json(value)
