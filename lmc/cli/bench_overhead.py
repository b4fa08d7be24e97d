"""`lmc bench overhead`: what machine and scheduler take beside the model, at ten thousand instances of a program.

    instances 10,000 · calls 30,000 · tokens 960,000 · 64 at a time · peak memory 512 MiB
    engine     41.0 us a token    sampling 18.2, masks 3.0, scheduler 7.9, tree 1.1, rest 10.8
    machine   310.0 us a call
    together   50.7 us a token    (bar 60; a call 500)

Each instance makes three calls, one after the other, with prompts of about 200 tokens and answers of 32, on the stand-in model.
Processor time of the engine's thread less the model's, and of the event loop's thread: what other programs do meanwhile is not in it.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lmc.cli.ablation_programs import words

if TYPE_CHECKING:
    from lmc.runtime.machine import Machine
    from lmc.runtime.session import Session
    from lmc.runtime.time_shares import TimeShares

TOKENS = 32
_CALLS = 3
#: Microseconds that a token and a call may take.
TOKEN_BAR, CALL_BAR = 60, 500
_PROGRAM = f'''
def thrice(texts: list[str]) -> str:
    answer = ""
    for text in texts:
        answer = once(text, answer)
    return answer

def once(text: str, before: str) -> str:
    raw:
        "${{text}} ${{before}}"
        answer = gen(max_tokens={TOKENS}, ignore_eos=True)
    return answer
'''
# Made-up words are spelled letter by letter by the stand-in's tokenizer: these are about 170 tokens, and an answer the rest.
_WORDS = 32


@dataclass(frozen=True, slots=True)
class Overhead:
    """What a run took.  engine: the time of its thread, machine: that of the event loop's, both of the processor in seconds;
    prompt: tokens of prompts; nodes: of the tree at the end; peak_bytes: the most memory that the process has had."""

    instances: int
    calls: int
    tokens: int
    prompt: int
    engine: TimeShares
    machine: float
    nodes: int
    peak_bytes: int

    @property
    def token_microseconds(self) -> float:
        return 1e6 * (self.engine.overhead + self.machine) / self.tokens

    @property
    def call_microseconds(self) -> float:
        return 1e6 * self.machine / self.calls


def measure(instances: int, batch: int, slots: int) -> Overhead:
    """Run so many instances, `batch` at a time, with a pool of `slots` tokens."""
    # Every command reads this file.
    import asyncio

    from lmc.runtime.dry import DryModel, dry_tokenizer
    from lmc.runtime.session import Session
    from lmc.runtime.template import dry_template

    tokenizer = dry_tokenizer()
    session = Session(DryModel(tokenizer), tokenizer, dry_template(tokenizer), slots=slots, clock=time.thread_time)
    try:
        machine_seconds = asyncio.run(_run(session, instances, batch))
        stats = session.stats
    finally:
        session.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Overhead(instances, stats.requests, stats.generated, stats.prompt + stats.cached, stats.time, machine_seconds, stats.nodes, peak)


def overhead_lines(found: Overhead, batch: int) -> Iterator[str]:
    """The report of a run."""
    engine = found.engine
    parts = ", ".join(f"{name} {1e6 * getattr(engine, name) / found.tokens:.1f}" for name in ("sampling", "masks", "scheduler", "tree", "rest"))
    yield (f"instances {found.instances:,} · calls {found.calls:,} · tokens {found.tokens:,} · prompts of {found.prompt // found.calls:,} · "
           f"{batch} at a time · peak memory {found.peak_bytes / 2**20:,.0f} MiB")
    yield f"engine   {1e6 * engine.overhead / found.tokens:8.1f} us a token    {parts}"
    yield f"machine  {found.call_microseconds:8.1f} us a call     (bar {CALL_BAR})"
    yield f"together {found.token_microseconds:8.1f} us a token    (bar {TOKEN_BAR})"
    yield f"tree     {100 * engine.tree / engine.total:8.2f} % of the engine's time with {found.nodes:,} nodes; the stand-in model takes {100 * engine.model / engine.total:.0f} %"


async def _run(session: Session, instances: int, batch: int) -> float:
    """The processor time of this thread, less what compiling and making texts takes."""
    import asyncio

    from lmc.compiler import compile_file
    from lmc.runtime.host import bind_externs
    from lmc.runtime.machine import Machine

    program = compile_file("thrice.lmp", level=2, read=lambda _: _PROGRAM).program
    machine = Machine(program, session, bind_externs(program, {}))
    numbers = iter(range(instances))
    spent = [0.0]
    start = time.thread_time()
    async with asyncio.TaskGroup() as group:
        for _ in range(batch):
            group.create_task(_work(machine, numbers, spent))
    return time.thread_time() - start - spent[0]


async def _work(machine: Machine, numbers: Iterator[int], spent: list[float]) -> None:
    from lmc.runtime.instance import RunOptions, Sinks

    sinks = Sinks(print, lambda path, text: None)
    for number in numbers:
        start = time.thread_time()
        texts = tuple(words((number, call), _WORDS) for call in range(_CALLS))
        spent[0] += time.thread_time() - start
        await machine.start(RunOptions(seed=number), sinks).call("thrice", (texts,))
