"""`python -m tests.runtime.soak [--minutes 20] [--seed N]`: random programs on one small engine for long, and nothing may be left.

    round    sixteen runs of random programs side by side: some are cancelled, some models' passes fail, everything is evicted
    step     after some steps every slot has one owner (`check_invariants`)
    after    no request, no instance and no slot is in use; memory as after the first rounds

Ends with 1 where a promise was broken.  `test_soak.py` runs a minute of it.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from lmc.backend.program import Program
from lmc.diagnostics import LmcError, RunError
from lmc.passes import passes_of
from lmc.runtime.arguments import bind_arguments
from lmc.runtime.engine import Engine
from lmc.runtime.host import bind_externs
from lmc.runtime.instance import Instance, RunOptions, Sinks
from lmc.runtime.machine import Machine
from lmc.runtime.session import Session
from lmc.runtime.underway import Request
from tests.differential.programs import random_program
from tests.differential.runs import ARGUMENTS, BUDGETS, EXTERNS, TEMPLATE, TOKENS, compiled, lowered
from tests.runtime.test_random_driver import FaultyModel, check_invariants

#: Programs that are run again and again, and runs side by side.
PROGRAMS, SIDE_BY_SIDE = 40, 16
#: Less than all runs of a round want, so that they retract and evict one another; a little more than the longest prompt may have.
POSITIONS, SLOTS = 1024, 1200
#: The books are looked through after each so many steps: it takes longer than a step.
_LOOK = 16
#: What memory may grow by from the middle of the first half to the end: the allocator's own ups and downs.
_GROWTH_BYTES = 32 << 20


@dataclass
class Soaked:
    """rounds; ends: runs by how they ended; steps, retractions: of the engine; resident: bytes after each round; left: what was not
    given back, by name; looked: how often the books were looked through."""

    rounds: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    retractions: int = 0
    resident: list[int] = field(default_factory=list)
    left: dict[str, int] = field(default_factory=dict)
    looked: int = 0

    @property
    def growth(self) -> int:
        """Bytes from the second quarter to the last, each by its least."""
        quarter = max(len(self.resident) // 4, 1)
        return min(self.resident[-quarter:]) - min(self.resident[quarter : 2 * quarter] or self.resident)

    @property
    def faults(self) -> list[str]:
        found = [f"{count} {name} left" for name, count in self.left.items() if count]
        if self.ends["internal"]:
            found.append(f"{self.ends['internal']} runs ended by a fault inside lmc")
        if self.growth > _GROWTH_BYTES:
            found.append(f"memory grew by {self.growth / 2**20:.0f} MiB")
        return found


class _CheckedEngine:
    """Has the books looked through in the engine's own thread, between two steps."""

    def __init__(self, engine: Engine, soaked: Soaked):
        self.step_of_engine, self.engine, self.soaked, self.count = engine.step, engine, soaked, 0
        engine.step = self.step

    def step(self):
        events = self.step_of_engine()
        self.count += 1
        if self.count % _LOOK == 0:
            check_invariants(self.engine)
            self.soaked.looked += 1
        return events


async def soak(seconds: float, seed: int) -> Soaked:
    """Run rounds for so many seconds, the last one to its end."""
    rng, soaked = random.Random(seed), Soaked()
    programs = [compiled(lowered(random_program(seed * 1000 + n)), passes_of(rng.choice([0, 1, 2]))) for n in range(PROGRAMS)]
    # What others of this process hold is theirs.
    before = _objects()
    model = FaultyModel(random.Random(seed), TOKENS, max_positions=POSITIONS, rate=0.3)
    session = Session(model, TOKENS, TEMPLATE, slots=SLOTS)
    engine = session._engine._engine
    _CheckedEngine(engine, soaked)
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            kinds = await asyncio.gather(*(_one_run(rng.choice(programs), session, rng) for _ in range(SIDE_BY_SIDE)))
            soaked.rounds += 1
            soaked.ends.update(kinds)
            soaked.resident.append(_resident_bytes())
        await _idle(engine)
        stats = engine.stats
        soaked.steps, soaked.retractions = stats.steps, stats.retractions
        check_invariants(engine)
        soaked.left = {"slots": stats.used_slots, "waiters": len(session._waiters), "living contexts": len(engine._live._kept)}
        soaked.left |= {name: max(count - before[name], 0) for name, count in _objects().items()}
    finally:
        session.close()
    return soaked


async def _one_run(program: Program, session: Session, rng: random.Random) -> str:
    """How the run ended: "value", "cancelled" from outside, or the kind of its error."""
    try:
        externs = bind_externs(program, EXTERNS)
        machine = Machine(program, session, externs)
    except RunError as error:
        return error.kind
    except LmcError:
        return "refused"  # by the model's vocabulary, when it is bound
    run = machine.start(RunOptions(seed=rng.randrange(100), budgets=BUDGETS), Sinks(lambda text: None, lambda path, text: None))
    task = asyncio.create_task(run.call("main", bind_arguments(program.functions["main"], ARGUMENTS, {}, externs.types)))
    if rng.random() < 0.25:
        await asyncio.sleep(rng.random() * 0.05)
        task.cancel()
        task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return "cancelled"
    except RunError as error:
        return error.kind
    return "value"


async def _idle(engine: Engine) -> None:
    """Wait until the engine has carried out what it was told last."""
    gc.collect()  # leases end with their contexts
    for _ in range(200):
        await asyncio.sleep(0.01)
        if not engine.busy and not engine._live._kept:
            return


def _objects() -> dict[str, int]:
    """Requests and instances that something still holds."""
    gc.collect()
    kinds = Counter(type(thing) for thing in gc.get_objects())
    return {"requests": kinds[Request], "instances": kinds[Instance]}


def _resident_bytes() -> int:
    """Of this process; 0 where the system does not say."""
    pages = Path("/proc/self/statm")
    return int(pages.read_text().split()[1]) * 4096 if pages.exists() else 0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.runtime.soak", description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    soaked = asyncio.run(soak(60 * given.minutes, given.seed))
    print(f"{soaked.rounds:,} rounds, {soaked.steps:,} steps, {soaked.retractions:,} retractions, books looked through {soaked.looked:,} times")
    print("runs: " + ", ".join(f"{count:,} {kind}" for kind, count in soaked.ends.most_common()))
    print(f"memory {soaked.resident[0] / 2**20:.0f} MiB at first, {soaked.resident[-1] / 2**20:.0f} at the end")
    print(*soaked.faults or ["nothing left"], sep="\n")
    sys.exit(1 if soaked.faults else 0)


if __name__ == "__main__":
    main()
