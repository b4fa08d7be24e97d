"""The prompts of a program up to where it needs the model, without one: `lmc render`.

    shown = render_calls(program, stand_in, externs, "judge", args, RunOptions(seed=1), sinks)
    shown.calls[0].pieces        (Control("<|im_start|>"), "system\\nYou are …", …)
    shown.stops                  what else it waits for: an extern that is not bound, a line of input

The machine runs the program as always, on something that takes requests and never answers.  What waits for an answer waits for
ever; when nothing else can go on, the rest is given up.  So calls that run side by side are all there, each branch's first.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

from lmc.backend.program import Program
from lmc.diagnostics import Diagnostic, RunError, Severity, Span
from lmc.runtime.binding import bind
from lmc.runtime.context import Prompter
from lmc.runtime.execute_host import extern_call
from lmc.runtime.frames import Frame
from lmc.runtime.hints import Hint
from lmc.runtime.host import Externs
from lmc.runtime.idle_loop import IdleSelector, idle_runner
from lmc.runtime.instance import Instance, RunOptions, Sinks
from lmc.runtime.machine import Run
from lmc.runtime.opcodes import OPCODES
from lmc.runtime.plan import Opcode, Step
from lmc.runtime.prompt_pieces import prompt_pieces, spelled
from lmc.runtime.rendering import Choice, RenderedCall, Rendering
from lmc.runtime.request import Generated, GenerateRequest, ScoreRequest, Usage


class ShownRequests:
    """Stands for a model: takes requests and never answers.  `Answers` for the machine."""

    def __init__(self, tokenizer: Any, template: Any, name: str):
        self.tokenizer, self.name = tokenizer, name
        self.has_template = template is not None
        self.prompter = Prompter(tokenizer, template)
        self.limit = sys.maxsize
        self.remote = None
        self.calls: list[RenderedCall] = []

    @property
    def begin_id(self) -> int:
        begin = self.tokenizer.begin_id
        return begin if begin is not None else min(self.tokenizer.end_ids)

    def reserve(self) -> int:
        return 0

    def hint(self, hint: Hint, on_usage: Callable[[Usage], None] | None = None) -> None:
        """There is no cache."""

    def constraint(self, dfa: Any) -> str:
        """What a constraint is for people; no masks are made."""
        return dfa.source

    async def generate(self, request: GenerateRequest, on_text: Callable[[str], None] | None = None,
                       on_piece: Callable[[Generated], None] | None = None) -> Any:
        assert request.origin is not None
        pieces, reopened = prompt_pieces(self.tokenizer, request.prompt), request.heal.decode("utf-8", "replace")
        constraint = str(request.constraint or "")
        self.calls.append(RenderedCall(request.origin, request.prompt, pieces, reopened, (), request, constraint))
        await _for_ever()

    async def score(self, requests: Sequence[ScoreRequest]) -> Any:
        first = requests[0]
        assert first.origin is not None
        shared = first.ids[:first.start]
        tails = [r.ids[r.start:] for r in requests]
        choices = tuple(Choice(spelled(prompt_pieces(self.tokenizer, tail)), tail) for tail in tails)
        self.calls.append(RenderedCall(first.origin, shared, prompt_pieces(self.tokenizer, shared), "", choices, None, ""))
        await _for_ever()


def render_calls(program: Program, shown: ShownRequests, externs: Externs, name: str, args: tuple[Any, ...], options: RunOptions,
                 sinks: Sinks) -> Rendering:
    """Run the function `name` until it can go no further without an answer.

    externs: those that are bound run; one that is not stops what calls it.
    Runs an event loop of its own, so the calling thread must have none.
    Raises `LmcError` where the program does not fit the model.
    """
    host = _Host(externs)
    opcodes = {**OPCODES, "extern.call": Opcode(host.extern_call, waits=True), "io.input": Opcode(host.read_input, waits=True)}
    run = Run(Instance(bind(program, shown, host.externs, opcodes), options, sinks))
    with idle_runner() as (runner, selector):
        returned, error = runner.run(_until_idle(run.call(name, args), host, selector))
    return Rendering(tuple(sorted(shown.calls, key=_place)), tuple(host.stops), returned, error)


class _Host:
    """What a program asks of the host: bound externs run, anything else is a stop."""

    def __init__(self, externs: Externs):
        self.externs = externs
        self.stops: list[Diagnostic] = []
        #: Calls of the host under way: while there is one, nothing is idle.
        self.busy = 0

    async def extern_call(self, frame: Frame, step: Step) -> None:
        name = step.instruction.attributes["name"]
        if not self.externs.has(name):
            short = name.rpartition(".")[2]
            await self._stop(step, f"nothing is bound to the extern `{short}`, which the program calls before it goes on",
                             f"bind it, and it runs: `--extern tools.py`, or `lmc.load(…, externs={{\"{short}\": …}})`")
        self.busy += 1
        try:
            await extern_call(frame, step)
        finally:
            self.busy -= 1

    async def read_input(self, frame: Frame, step: Step) -> None:
        await self._stop(step, "the program waits for a line of `input`", "rendering asks nobody")

    async def _stop(self, step: Step, message: str, help: str) -> None:
        self.stops.append(Diagnostic("W181", message, step.instruction.span, label="rendering stops here", help=help,
                                     severity=Severity.WARNING))
        await _for_ever()


async def _until_idle(call: Any, host: _Host, selector: IdleSelector) -> tuple[bool, RunError | None]:
    """Whether the call came to its end, and the error if it failed."""
    idle = asyncio.get_running_loop().create_future()

    def on_idle() -> bool:
        if host.busy or idle.done():
            return False
        idle.set_result(None)
        return True

    selector.on_idle = on_idle
    task = asyncio.create_task(call)
    await asyncio.wait({task, idle}, return_when=asyncio.FIRST_COMPLETED)
    if not task.done():
        task.cancel()
        await asyncio.wait({task})
        return False, None
    error = task.exception()
    if error is not None and not isinstance(error, RunError):
        raise error
    return error is None, error


def _place(call: RenderedCall) -> tuple[list[int], Span | None]:
    """Calls that run side by side are asked in any order; they are shown as they stand in the program."""
    return [int(number) for number in re.findall(r"\d+", call.origin.path)], call.origin.span


async def _for_ever() -> None:
    await asyncio.get_running_loop().create_future()
