"""`lmc bench tree`: the part of an engine's time that its prefix tree takes, on conversations of several turns.

    nodes      engine       tree        bar
       96     31.20 s     0.014 %     0.3 %
   10,212     31.65 s     0.017 %     1.0 %

The same conversations on a fresh engine, and on one whose tree has ten thousand nodes more.  Wall-clock time of the engine's thread, all
in which it waits for requests left out.  The default model is small: a larger one leaves a smaller part for the tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from lmc.cli.ablation_programs import PROGRAMS
from lmc.cli.exits import OK

if TYPE_CHECKING:
    from lmc.runtime.session import Session
    from lmc.runtime.time_shares import TimeShares

#: Nodes of the larger tree, and the percents of the time that either tree may take.
NODES = 10_000
BARS = (0.3, 1.0)
# Two tokens make a node each where the first is shared; so many requests at a time.
_FIRSTS, _AT_ONCE = 100, 500


@click.command("tree")
@click.option("--model", default="default", metavar="NAME", show_default=True, help="Short name, folder or hub id.")
@click.option("--dry", is_flag=True, help="The stand-in model.")
@click.option("--conversations", type=click.IntRange(1), default=16, show_default=True, help="Of four turns each, side by side.")
@click.option("--pool-tokens", type=click.IntRange(1024), default=20480, show_default=True, metavar="N", help="Size of the key-value pool.")
def tree_command(model: str, dry: bool, conversations: int, pool_tokens: int) -> int:
    """The part of the time that the prefix tree takes: as it is, and with ten thousand nodes."""
    from lmc.embed import cache_folder

    for line in tree_lines({"model": model, "dry": dry, "cache": cache_folder(), "pool_tokens": pool_tokens}, conversations):
        click.echo(line)
    return OK


def tree_lines(settings: dict[str, Any], conversations: int, nodes: int = NODES) -> Iterator[str]:
    """The table.  settings: which model, as for `open_session`; the pool must hold the conversations and a slot for each node."""
    yield f"{'nodes':>7}{'engine':>12}{'tree':>11}{'bar':>11}"
    for before, bar in zip((0, nodes), BARS):
        found, time = measure_tree(settings, conversations, before)
        yield f"{found:>7,}{time.total:>10.2f} s{100 * time.tree / time.total:>9.3f} %{bar:>9.1f} %"


def measure_tree(settings: dict[str, Any], conversations: int, nodes: int) -> tuple[int, TimeShares]:
    """The nodes at the end, and the time of the conversations alone, on an engine whose tree had `nodes` before them."""
    # It takes long to import, and every command reads this file.
    import asyncio

    from lmc.runtime.open_session import open_session

    session = open_session(**settings)
    try:
        return asyncio.run(_run(session, conversations, nodes))
    finally:
        session.close()


async def _run(session: Session, conversations: int, nodes: int) -> tuple[int, TimeShares]:
    from lmc.compiler import compile_file
    from lmc.runtime.host import bind_externs
    from lmc.runtime.instance import RunOptions, Sinks
    from lmc.runtime.machine import Machine
    from lmc.runtime.rows import run_rows

    chat = PROGRAMS["chat"]
    program = compile_file("chat.lmp", level=2, read=lambda _: chat.text).program
    machine = Machine(program, session, bind_externs(program, {}))
    options, sinks = RunOptions(seed=1), Sinks(print, lambda path, text: None)

    async def talk(rows: range) -> None:
        async for row in run_rows(machine, program.functions[chat.function], map(chat.row, rows), options, sinks):
            if row.error is not None:
                raise row.error

    # Weights are read when something is first computed: not in the time that is told.
    await talk(range(conversations, conversations + 1))
    await _grow(session, nodes)
    before = session.stats.time
    await talk(range(conversations))
    after = session.stats
    return after.nodes, after.time - before


async def _grow(session: Session, nodes: int) -> None:
    """Put about so many nodes into the tree, of two tokens each way."""
    from lmc.runtime.request import ScoreRequest

    for start in range(0, nodes, _AT_ONCE):
        numbers = range(start, min(start + _AT_ONCE, nodes))
        await session.score([ScoreRequest((number % _FIRSTS, number // _FIRSTS, 0), 2) for number in numbers])
