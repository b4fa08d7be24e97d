"""`lmc bench peers`: the seven small workloads, by our engine, by our programs, and by the engines of `make bench-peers`.

    $ lmc bench peers --dtype bfloat16 --peers vllm,llama,transformers --out peers.json
    $ lmc bench peers --only W1 --only W4 --sets 1

The table and how it is measured are in docs/benchmarks.md.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lmc.cli.bench_json import repository
from lmc.cli.exits import OK
from lmc.cli.peer_options import installed_peers, peer_options
from lmc.diagnostics import Diagnostic, UsageError

if TYPE_CHECKING:
    from lmc.cli.peers.small_run import Contestant
    from lmc.cli.peers.small_turns import Score, Sets
    from lmc.runtime.roofline import Roofline

WORKLOADS = ("W1", "W2", "W3", "W4", "W5", "W6", "W7")
_CLIENTS = {"both": (True, False), "parallel": (True,), "sequential": (False,)}


@click.command("peers")
@click.option("--only", "names", multiple=True, type=click.Choice(WORKLOADS), help="May be repeated. Default: all.")
@click.option("--peers", "peers", metavar="NAME,…", help="Which engines. Default: all that are installed. `none`: ours alone.")
@click.option("--clients", type=click.Choice(tuple(_CLIENTS)), default="both", show_default=True,
              help="Whether peers are asked for all at once, or for one thing at a time inside a program.")
@click.option("--sets", "rounds", type=click.IntRange(1, 7), default=3, show_default=True, help="Rounds, each with data of its own.")
@click.option("--data", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Default: ../shared/data/peer_workloads.json beside the repository.")
@peer_options(dtype="bfloat16")
@click.option("--pool-bytes", default="2GiB", metavar="SIZE", show_default=True, help="Keys and values of each engine.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="All numbers as JSON.")
def peers_command(names: tuple[str, ...], peers: str | None, clients: str, rounds: int, data: Path | None, environments: Path | None,
                  model: str, dry: bool, dtype: str, kernels: str, threads: int | None, pool_bytes: str, out: Path | None) -> int:
    """Seven small workloads beside other engines, against the machine's roofline."""
    from lmc.cli.machine import machine_data, machine_line, processors
    from lmc.cli.peers.contestants import OwnEngine
    from lmc.cli.peers.exchange import PeerSetting
    from lmc.cli.peers.known import chosen_peers
    from lmc.cli.peers.peer_programs import peer_contestants
    from lmc.cli.peers.small_programs import OwnPrograms
    from lmc.cli.workloads.open_peers import opened_peers, read_spelling
    from lmc.cli.workloads.results import write_json
    from lmc.embed import cache_folder
    from lmc.runtime.pool_size import pool_size

    started = time.perf_counter()
    sets = read_sets(data or repository().parent / "shared" / "data" / "peer_workloads.json")
    settings = {"model": model, "cache": cache_folder(), "dry": dry, "dtype": dtype, "kernels": kernels,
                # Slots of the stand-in are a few bytes each.
                "pool_bytes": None if dry else pool_bytes}
    installed = installed_peers(environments)
    chosen = () if dry or peers == "none" else chosen_peers(peers, installed)
    own: list[Contestant] = [OwnEngine(settings), OwnPrograms(repository() / "examples" / "peers", settings)]
    click.echo(machine_line())
    if dry:
        scores, floors = _compare(own, names or WORKLOADS, sets, rounds, clients, None)
    else:
        spelling, folder = read_spelling(model, cache_folder())
        setting = PeerSetting(str(folder), dtype, threads or processors(), pool_size(size=pool_bytes).bytes)
        roof = _measured_roof(folder, dtype)
        with opened_peers(chosen, installed, setting, spelling, click.echo) as opened:
            scores, floors = _compare([*own, *peer_contestants(opened, spelling.tokenizer)], names or WORKLOADS, sets, rounds, clients, roof)
    click.echo(f"{time.perf_counter() - started:.0f} seconds in all; {_load()}")
    if out is not None:
        from lmc.cli.peers.small_table import scores_data

        write_json(out, {"machine": machine_data(), "model": model, "dtype": dtype, "kernels": kernels, "scores": scores_data(scores, floors)})
    return OK


def read_sets(path: Path) -> Sets:
    """The salted sets by name, at least two.  Raises `UsageError` where the file is missing or holds something else."""
    import json

    try:
        sets = json.loads(path.read_text(encoding="utf-8"))
        if len(sets) > 1 and all(set(WORKLOADS) <= set(salted) for salted in sets.values()):
            return sets
        message = f"`{path}` does not hold sets of W1 to W7"
    except OSError as error:
        message = f"`{path}` cannot be read: {error.strerror}"
    except (ValueError, TypeError, AttributeError) as error:
        message = f"`{path}` is not the data of the peers' workloads: {error}"
    raise UsageError(Diagnostic("E0853", message, None, help="give the file of the shared test data: --data FILE"))


def _compare(contestants: list[Contestant], names: tuple[str, ...], sets: Sets, rounds: int, clients: str,
             roof: Roofline | None) -> tuple[list[Score], dict[str, float | None]]:
    """Runs everything and prints it as it comes.  Gives the scores, and the least seconds of each workload."""
    from lmc.cli.peers.floor import floor_seconds
    from lmc.cli.peers.small_table import HEAD, bar_lines, lines, work_differs
    from lmc.cli.peers.small_turns import take_turns
    from lmc.cli.peers.small_workloads import SMALL_WORKLOADS
    from lmc.cli.workloads.refusals import Refusals

    own = contestants[0]
    everything: list[Score] = []
    floors: dict[str, float | None] = {}
    refusals = Refusals()
    click.echo(HEAD)
    for workload in (workload for workload in SMALL_WORKLOADS if workload.key in names):
        scores = take_turns(refusals.able(contestants, workload), workload, sets, rounds, _CLIENTS[clients], click.echo)
        first = next(iter(sets.values()))[workload.key]
        floors[workload.name] = None if roof is None else floor_seconds(roof, workload, first, own.fewest, scores[0].runs[0])
        for line in (*lines(scores, own.name, floors[workload.name], greedy=workload.greedy), *work_differs(scores, own.name)):
            click.echo(line)
        everything += scores
    for line in (*refusals.lines(), *bar_lines(everything, own.name, floors, own.precision)):
        click.echo(line)
    return everything, floors


def _measured_roof(folder: Path, dtype: str) -> Roofline:
    from lmc.cli.peers.floor import roofline_lines
    from lmc.runtime.roofline import measure_roofline

    roof = measure_roofline(folder, dtype)
    for line in roofline_lines(roof):
        click.echo(line)
    return roof


def _load() -> str:
    one, five, _ = os.getloadavg()
    return f"load of the machine {one:.1f} over the last minute, {five:.1f} over five"
