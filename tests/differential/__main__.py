"""`python -m tests.differential [--full] [--seeds FROM-TO] [--show SEED]`: random programs in all ways, a wrong one made small.

Without `--full` each program takes the one way that the tests give it.  Ends with 1 where a program showed a difference.
`--examples` runs the example programs in place of random ones, in all ways, on the stand-in model and on the default model in
deterministic float32.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from lmc.diagnostics import LmcError
from lmc.embed import cache_folder
from lmc.runtime.model.registry import DEFAULT_MODEL, resolve_model
from tests.differential.examples import CASES, example_faults, real_session_of, stand_in
from tests.differential.programs import random_program
from tests.differential.shrink import shrunk
from tests.differential.ways import ALL, Way, faults, way_of


async def check_seeds(seeds: range, *, full: bool) -> int:
    """How many of the programs show a difference; each of these is printed, made small."""
    wrong = 0
    for seed in seeds:
        text, ways = random_program(seed), ALL if full else (way_of(seed),)
        found = await faults(text, ways)
        if found:
            wrong += 1
            print(f"seed {seed}:", *found, sep="\n  ")
            print(await small(text, ways), flush=True)
    print(f"{len(seeds)} programs, {wrong} with differences")
    return wrong


async def check_examples() -> int:
    """How many of the examples show a difference on the stand-in model or on the default model."""
    wrong = 0
    for model, session_of in (("stand-in", stand_in), ("default", real_session_of(resolve_model(DEFAULT_MODEL, cache_folder())))):
        for name in CASES:
            found = await example_faults(name, ALL, session_of)
            wrong += bool(found)
            print(f"{name} on the {model} model: {len(ALL)} ways, {len(found)} differences", *found, sep="\n  ", flush=True)
    return wrong


async def small(text: str, ways: tuple[Way, ...]) -> str:
    """A small program that shows a difference in the first of the ways in which this one does."""
    way = [w for w in ways if await faults(text, (w,))][0]

    async def still_wrong(smaller: str) -> bool:
        try:
            return "\ndef main(topic: str, items: list[str]) -> str:\n" in smaller and bool(await faults(smaller, (way,)))
        except LmcError:
            return False

    return f"--- {way} ---\n" + await shrunk(text, still_wrong)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__.split("\n")[0])
    parser.add_argument("--full", action="store_true", help="every program in every way")
    parser.add_argument("--seeds", default="0-300", help="FROM-TO, the end not included")
    parser.add_argument("--show", type=int, metavar="SEED", help="print the program of a seed and end")
    parser.add_argument("--examples", action="store_true", help="the example programs")
    given = parser.parse_args()
    if given.examples:
        sys.exit(1 if asyncio.run(check_examples()) else 0)
    if given.show is not None:
        print(random_program(given.show), end="")
        return
    start, _, end = given.seeds.partition("-")
    seeds = range(int(start), int(end or int(start) + 1))
    sys.exit(1 if asyncio.run(check_seeds(seeds, full=given.full)) else 0)


if __name__ == "__main__":
    main()
