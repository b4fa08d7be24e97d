"""`python -m tests.differential [--full] [--seeds FROM-TO] [--show SEED]`: random programs in all ways, a wrong one made small.

Without `--full` each program takes the one way that the tests give it.  Ends with 1 where a program showed a difference.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from lmc.diagnostics import LmcError
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
    given = parser.parse_args()
    if given.show is not None:
        print(random_program(given.show), end="")
        return
    start, _, end = given.seeds.partition("-")
    seeds = range(int(start), int(end or int(start) + 1))
    sys.exit(1 if asyncio.run(check_seeds(seeds, full=given.full)) else 0)


if __name__ == "__main__":
    main()
