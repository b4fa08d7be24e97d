"""`lm.template`: texts and generations of one turn as one request of several pieces.

    r9, r5, r8 = lm.template(r1)
      block(r2)
        r3, r5 = lm.gen(r2)[…]                            piece 0
        r6 = context.append(r3, "\\nage: ")[…]            piece 1 begins with it
        r7, r8 = lm.gen(r6)[…]
        control.yield(r7, r5, r8)

When a piece is there, the engine's thread makes the next one's request exactly as the machine would make it for a `gen` that stands
alone: the same context, segments, healing, seed and limits.  So a template changes how many requests there are, and nothing else.
What the run counts and reports is done here, piece by piece, in the machine's thread.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lmc.diagnostics import RunError
from lmc.runtime.block_run import run_step
from lmc.runtime.context import Context
from lmc.runtime.execute_model import Asked, ask, context_after, read_value, take
from lmc.runtime.failures import located, through
from lmc.runtime.frames import Frame
from lmc.runtime.plan import Step
from lmc.runtime.request import Generated, GenerateRequest
from lmc.values import text_of


async def template(frame: Frame, step: Step) -> None:
    run = _Run(frame, step)
    context = await run.run(frame.operand(step.instruction, "context"))
    frame.write(step.instruction, (context, *run.values))


@dataclass(frozen=True, slots=True)
class _Piece:
    """A generation, and the texts that come before it."""

    texts: tuple[str, ...]
    step: Step


def _pieces(frame: Frame, step: Step) -> tuple[_Piece, ...]:
    pieces: list[_Piece] = []
    texts: list[str] = []
    for inner in step.blocks[0].steps:
        match inner.instruction.opcode:
            case "context.append":
                texts.append(text_of(frame.operand(inner.instruction, "text")))
            case "lm.gen":
                pieces.append(_Piece(tuple(texts), inner))
                texts = []
            case "text.concat":
                run_step(frame, inner)
    return tuple(pieces)


class _Run:
    """One template on its way.

    asked: the pieces whose requests are made; the engine's thread adds to it
    calls: the numbers of those that were counted; values: what those that are over gave
    written: the tokens that the run had generated before the next piece, as the engine's thread knows it
    """

    __slots__ = ("frame", "pieces", "asked", "calls", "values", "written")

    def __init__(self, frame: Frame, step: Step):
        self.frame, self.pieces = frame, _pieces(frame, step)
        self.asked: list[Asked] = []
        self.calls: list[int] = []
        self.values: list[Any] = []
        self.written = frame.instance.usage.generated

    async def run(self, context: Context) -> Context:
        """The context after the last piece.  Raises what a piece alone would have raised, at its place."""
        try:
            request = self._ask(context)
            self._count()
            async with self.frame.instance.turn:
                generated = await self.frame.instance.bound.session.generate(request, self._show, self._take)
            self._take(generated)
        except RunError as error:
            step = self._step
            raise through(located(error, step.instruction.span), step.calls) from None
        return context_after(self.frame, self.asked[-1], generated)

    @property
    def _step(self) -> Step:
        """The step of the piece that is on its way."""
        return self.pieces[len(self.values)].step

    def _count(self) -> None:
        instruction = self._step.instruction
        self.calls.append(self.frame.instance.count_call(self.frame.function(instruction), instruction.span))

    def _show(self, text: str) -> None:
        self.frame.instance.show(self.frame.path_of(self._step), text, self._step.instruction.span)

    def _take(self, generated: Generated) -> None:
        """A piece is over, and the next one has begun, if there is one and it could begin."""
        number = len(self.values)
        self.values.append(take(self.frame, self.asked[number], self.calls[number], generated))
        if len(self.asked) > len(self.values):
            self._count()

    def _ask(self, context: Context) -> GenerateRequest:
        number = len(self.asked)
        asked = ask(self.frame, self.pieces[number].step, context, self.written)
        self.asked.append(asked)
        return replace(asked.request, then=self._next) if number + 1 < len(self.pieces) else asked.request

    def _next(self, generated: Generated) -> GenerateRequest | None:
        """In the engine's thread: the next piece; None where the value is none, which `_take` then tells."""
        asked = self.asked[-1]
        self.written += generated.usage.generated
        try:
            read_value(self.frame, asked, generated)
        except RunError:
            return None
        context = context_after(self.frame, asked, generated)
        piece = self.pieces[len(self.asked)]
        for text in piece.texts:
            context = self.frame.instance.bound.session.prompter.append(context, piece.step.instruction.attributes["role"], text)
        return self._ask(context)
