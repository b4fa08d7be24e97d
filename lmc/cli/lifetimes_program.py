"""A trace of `lmc bench lifetimes` from a compiled program: the hints are those that the passes wrote, none is made by hand.

    person 3 says a line -> the model answers -> person 3 waits …      person 7 says a line -> …

Forty people talk with one program, each in a run of its own, all side by side on one engine.  Between two turns a person waits, in an
`extern`.  No clock decides who comes next: once all wait, the one whose wait ends first does, so that two runs of the trace are alike.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmc.backend.program import Program
    from lmc.cli.lifetimes_traces import Shape
    from lmc.runtime.session import Session

_TEXT = '''
extern def says(person: int, turn: int) -> str

def talk(person: int, turns: int) -> int:
    system: "You are a friendly guide in a museum of technology, and you answer in one short paragraph."
    for turn in range(turns):
        line = says(person, turn)
        user: "${line}"
        assistant: gen(max_tokens=20, ignore_eos=True)
    return turns
'''
#: What `fork_hints` and `lifetimes` would write is not there: what was used last is evicted last.
_HINTS = ("fork_hints", "lifetimes")


def program(*, hints: bool) -> Program:
    """The program as `-O2` makes it, with its hints or without."""
    from lmc.compiler import compile_file
    from lmc.passes import passes_of

    passes = tuple(name for name in passes_of(2) if hints or name not in _HINTS)
    return compile_file("talk.lmp", passes=passes, read=lambda _: _TEXT).program


class People:
    """The extern `says`, and whose turn it is.  `lines`: for each person what is said, and the wait before it."""

    def __init__(self, shape: Shape, seed: int = 1):
        rng, begins = random.Random(seed), 0
        self.lines: list[list[tuple[str, int]]] = []
        for _ in range(shape.sessions):
            waits = (begins, *(round(rng.expovariate(1 / shape.wait)) for _ in range(rng.randint(*shape.turns) - 1)))
            self.lines.append([(_line(rng, rng.randint(*shape.added)), wait) for wait in waits])
            begins += round(rng.expovariate(1 / shape.apart))
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._talking = shape.sessions
        self._now = 0

    async def says(self, person: int, turn: int) -> str:
        text, wait = self.lines[person][turn]
        over = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (self._now + wait, person, over))
        self.stop()
        await over
        return text

    def stop(self) -> None:
        """One talks no more: it waits, or its run has ended."""
        self._talking -= 1
        if self._talking == 0 and self._waiting:
            self._now, _, over = heapq.heappop(self._waiting)
            self._talking += 1
            over.set_result(None)


def found(shape: Shape, slots: int, *, hints: bool) -> tuple[float, int]:
    """The part of all prompt tokens that was found in the cache, in percent, and the tokens that it holds in the end."""
    from lmc.runtime.dry import DryModel, dry_tokenizer
    from lmc.runtime.session import Session
    from lmc.runtime.template import dry_template

    tokens = dry_tokenizer()
    session = Session(DryModel(tokens, max_positions=1 << 16), tokens, dry_template(tokens), slots=slots)
    try:
        return asyncio.run(_run(program(hints=hints), session, People(shape))), session.stats.cached_slots
    finally:
        session.close()


async def _run(program: Program, session: Session, people: People) -> float:
    from lmc.runtime.host import bind_externs
    from lmc.runtime.instance import RunOptions, Sinks
    from lmc.runtime.machine import Machine
    from lmc.runtime.rows import run_rows

    machine = Machine(program, session, bind_externs(program, {"says": people.says}))
    rows = [{"person": person, "turns": len(lines)} for person, lines in enumerate(people.lines)]
    prompt = cached = 0
    async for row in run_rows(machine, program.functions["talk"], rows, RunOptions(seed=1), Sinks(print, lambda path, text: None),
                              on_end=people.stop):
        if row.error is not None:
            raise row.error
        cached += row.report.cached
        prompt += row.report.cached + row.report.computed
    return 100 * cached / prompt


def _line(rng: random.Random, length: int) -> str:
    return "".join(rng.choice("abcdefghijklmnoprstuvwyz ") for _ in range(length))
