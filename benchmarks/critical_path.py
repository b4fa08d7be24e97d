"""How near programs come to their critical path, when each call of the model takes the same time whatever else runs.

    python benchmarks/critical_path.py [--delay SECONDS] [--rounds N] [--level 0|1|2]

    program                        calls   in a row   critical   measured   ratio   at once
    tree of thought 3x3x3             43          7     2.100 s   2.15…  s   1.02…        9

The critical path is the longest chain of calls that need one another, times the delay; `at once` is the most calls under way at a time.
The stand-in model takes any number of calls side by side, so whatever is above 1 is the machine's own work, and a ratio of two or more
is calls that wait without need.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import statistics
import threading
import time
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from lmc.compiler import compile_file
from lmc.runtime.arguments import bind_arguments
from lmc.runtime.dry import DryModel, dry_tokenizer
from lmc.runtime.host import bind_externs
from lmc.runtime.instance import RunOptions, Sinks
from lmc.runtime.machine import Machine
from lmc.runtime.session import Session
from lmc.runtime.template import dry_template

TREE = (Path(__file__).resolve().parent.parent / "examples" / "tree.lmp").read_text(encoding="utf-8")

MAP = '''
def note(text: str) -> str:
    user: "One sentence on this text.\\n\\n${text}"
    assistant: n = gen(max_tokens=4)
    return n

def grade(note: str) -> int:
    user: "Grade this note from 1 to 5.\\n\\n${note}"
    assistant: g = gen(1..5)
    return g

def main(texts: list[str]) -> int:
    notes = [note(t) for t in texts]
    return sum([grade(n) for n in notes])
'''

LOOP = MAP.replace('''    notes = [note(t) for t in texts]
    return sum([grade(n) for n in notes])
''', '''    total = 0
    for t in texts:
        total += grade(note(t))
    return total
''')

SIDES = MAP.replace('''def main(texts: list[str]) -> int:
    notes = [note(t) for t in texts]
    return sum([grade(n) for n in notes])
''', '''def main(texts: list[str]) -> int:
    first = note(texts[0])
    second = note(texts[1])
    return grade(first) + grade(second)
''')


@dataclass(frozen=True)
class Case:
    """A program, its arguments, how many calls it makes and the longest chain of them."""

    name: str
    text: str
    entry: str
    args: tuple[Any, ...]
    calls: int
    chain: int


TEXTS = tuple(f"Text number {n}." for n in range(24))
CASES = (
    # Level 1: 3 branches, then 9 and 9, each with a step and its rating; and the answer.
    Case("tree of thought 3x3x3", TREE, "tree", ("Make 24 of 4, 6, 8, 8.", 3, 3), 43, 7),
    Case("map in two stages, 24 texts", MAP, "main", (TEXTS,), 48, 2),
    Case("the same as a loop", LOOP, "main", (TEXTS,), 48, 2),
    Case("two calls in sequence", SIDES, "main", (TEXTS[:2],), 4, 2),
)


class Bell:
    """Rings at a time, from a thread of its own, as an engine answers: the event loop's own timers are up to a millisecond late."""

    def __init__(self):
        self.changed = threading.Condition()
        self.waiting: list[tuple[float, int, asyncio.AbstractEventLoop, asyncio.Future]] = []
        self.numbers = count()
        threading.Thread(target=self.run, daemon=True).start()

    async def after(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        rung = loop.create_future()
        with self.changed:
            heapq.heappush(self.waiting, (time.perf_counter() + seconds, next(self.numbers), loop, rung))
            self.changed.notify()
        await rung

    def run(self) -> None:
        while True:
            with self.changed:
                left = self.waiting[0][0] - time.perf_counter() if self.waiting else None
                if left is None or left > 0:
                    self.changed.wait(left)
                    continue
                _, _, loop, rung = heapq.heappop(self.waiting)
            loop.call_soon_threadsafe(rung.set_result, None)


class DelayedSession(Session):
    """Each generation, or piece of one, takes `delay` seconds and gives what the stand-in model gave for the same request before."""

    def __init__(self, delay: float):
        tokens = dry_tokenizer()
        super().__init__(DryModel(tokens), tokens, dry_template(tokens), slots=1 << 16)
        self.delay, self.bell = delay, Bell()
        self.known: dict[Any, Any] = {}
        self.calls = self.under_way = self.peak = 0

    async def generate(self, request, on_text=None, on_piece=None):
        self.calls += 1
        self.under_way += 1
        self.peak = max(self.peak, self.under_way)
        try:
            while True:
                generated = await self._answer(replace(request, then=None))
                following = request.then(generated) if request.then is not None else None
                if following is None:
                    return generated
                on_piece(generated)
                request = following
        finally:
            self.under_way -= 1

    async def _answer(self, request):
        key = (request.prompt, request.sampling)
        if key not in self.known:
            self.known[key] = await super().generate(request)
        else:
            await self.bell.after(self.delay)
        return self.known[key]


@dataclass(frozen=True)
class Measured:
    seconds: float
    calls: int
    peak: int


def measure(case: Case, *, delay: float, rounds: int, level: int = 2) -> Measured:
    """The median of `rounds` runs, after one in which the stand-in model makes up the answers."""
    program = compile_file("case.lmp", level=level, read=lambda path: case.text).program
    session = DelayedSession(delay)
    machine = Machine(program, session, bind_externs(program, {}))
    options, sinks = RunOptions(seed=1), Sinks(lambda text: None, lambda path, text: None)
    args = bind_arguments(program.functions[case.entry], case.args, {}, machine.bound.externs.types)

    async def runs() -> list[float]:
        times = []
        for _ in range(rounds + 1):
            session.calls = session.peak = 0
            start = time.perf_counter()
            await machine.start(options, sinks).call(case.entry, args)
            times.append(time.perf_counter() - start)
        return times[1:]

    try:
        return Measured(statistics.median(asyncio.run(runs())), session.calls, session.peak)
    finally:
        session.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--delay", type=float, default=0.3, metavar="SECONDS")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--level", type=int, default=2, choices=(0, 1, 2))
    given = parser.parse_args()
    print(f"{'program':<30}{'calls':>6}{'in a row':>10}{'critical':>11}{'measured':>11}{'ratio':>8}{'at once':>9}")
    for case in CASES:
        found = measure(case, delay=given.delay, rounds=given.rounds, level=given.level)
        critical = case.chain * given.delay
        print(f"{case.name:<30}{found.calls:>6}{case.chain:>10}{critical:>9.3f} s{found.seconds:>9.3f} s"
              f"{found.seconds / critical:>8.3f}{found.peak:>9}")


if __name__ == "__main__":
    main()
