"""`lmc bench workloads`: the workloads of SGLang's paper, each a program of `examples/workloads`, with what each one costs.

    $ lmc bench workloads --only mmlu --only llm_judge --dry
    $ lmc bench workloads --peers vllm,llama --dtype bfloat16 --plot workloads.png

The table and what its columns mean are in docs/workloads.md.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import click

from lmc.cli.bench_json import repository
from lmc.cli.exits import FAILED, OK
from lmc.cli.machine import processors
from lmc.cli.peer_options import installed_peers, peer_options
from lmc.cli.peers.exchange import PeerSetting
from lmc.cli.plots import drawing_extra, workloads_figure
from lmc.cli.workloads.contender import Contender, Outcome
from lmc.cli.workloads.data import Data
from lmc.cli.workloads.own_run import Lmc
from lmc.cli.workloads.peer_contender import Client, PeerContender
from lmc.cli.workloads.refusals import Refusals
from lmc.cli.workloads.results import HEAD, lines, results_data, write_json
from lmc.cli.workloads.rounds import median, take_turns
from lmc.cli.workloads.table import NAMES, QUICK_DOCUMENT, QUICK_TOKENS, WORKLOADS, Row, Workload, quick
from lmc.diagnostics import Diagnostic, UsageError

_CLIENTS = {"parallel": (Client.PARALLEL,), "sequential": (Client.SEQUENTIAL,), "both": (Client.PARALLEL, Client.SEQUENTIAL)}
_SHORTER = (f"quick: free texts end at {QUICK_TOKENS} tokens and documents at {QUICK_DOCUMENT:,} characters, for everybody; with `--scale full` "
            "they are as long as in the paper")


@click.command("workloads")
@click.option("--only", "names", multiple=True, type=click.Choice(NAMES), help="May be repeated. Default: all.")
@click.option("--scale", type=click.Choice(("quick", "full")), default="quick", show_default=True,
              help="A few rows of each, with shorter texts, or as many as the paper's scripts have, as far as the data go.")
@click.option("--rows", "count", type=click.IntRange(1), metavar="N", help="That many rows of each instead.")
@click.option("--rounds", type=click.IntRange(1), metavar="N", help="Of which the median counts. Default: 1, of `full` with peers 3.")
@click.option("--peers", metavar="NAME,…", help="Engines to take turns with, of those that `make bench-peers` has installed.")
@click.option("--clients", type=click.Choice(tuple(_CLIENTS)),
              help="Whether peers get all calls of a program that can be made at once, or one at a time, or both in turn. "
                   "Default: parallel, of `full` both.")
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
              help="The shared test data. Default: the sample beside the programs.")
@click.option("--programs", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
              help="Default: examples/workloads in the repository.")
@peer_options(dtype="float32")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="All numbers and results as JSON.")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.png", help="The paper's figure of these numbers.")
def workloads_command(**given: Any) -> int:
    """The workloads of SGLang's paper as programs: seconds, tokens, cache and memory, beside other engines."""
    if given["plot"] is not None:
        drawing_extra()
    programs = given["programs"] or repository() / "examples" / "workloads"
    data = Data(given["data"] or programs / "sample")
    with ExitStack() as held:
        full = given["scale"] == "full"
        bench = Bench(_contenders(given, programs, held), data, given["rounds"] or (3 if given["peers"] and full else 1))
        started = time.perf_counter()
        click.echo(HEAD)
        for workload in (workload for workload in WORKLOADS if workload.name in (given["names"] or NAMES)):
            bench.run(workload if full else quick(workload), given["count"] or (workload.full if full else workload.few))
        took = f"{time.perf_counter() - started:.0f} seconds in all" + ", the start of the peers not counted" * bool(given["peers"])
        for line in (*bench.refusals.lines(), *([] if full else [_SHORTER]), took):
            click.echo(line)
    setting = {"model": "the stand-in model" if given["dry"] else given["model"], "dtype": given["dtype"], "kernels": given["kernels"],
               "data": str(data.folder), "scale": given["scale"], "engines": bench.engines}
    results = results_data(bench.medians, bench.all, setting)
    if given["out"] is not None:
        write_json(given["out"], results)
    if given["plot"] is not None:
        workloads_figure(results, given["plot"])
    return FAILED if any(outcome.failed for outcome in bench.all) else OK


@dataclass(slots=True)
class Bench:
    """Who takes turns, ours first, and what came of it: `medians` of each workload, ours first, and `all` runs; and who did not."""

    contenders: Sequence[Contender]
    data: Data
    rounds: int
    refusals: Refusals = field(default_factory=Refusals)
    medians: list[Outcome] = field(default_factory=list)
    all: list[Outcome] = field(default_factory=list)

    @property
    def engines(self) -> dict[str, str]:
        return {contender.name: contender.engine for contender in self.contenders}

    def run(self, workload: Workload, most: int) -> None:
        """Prints the workload's lines."""
        able = self.refusals.able(self.contenders, workload)
        found = take_turns(able, workload, _rows(workload, self.data, most), self.data, self.rounds, click.echo)
        medians = [median(outcomes) for outcomes in found.values()]
        for line in lines(medians):
            click.echo(line)
        self.medians += medians
        self.all += [outcome for outcomes in found.values() for outcome in outcomes]


def _contenders(given: dict[str, Any], programs: Path, held: ExitStack) -> list[Contender]:
    """`held` ends the peers."""
    from lmc.embed import cache_folder

    settings = {"model": given["model"], "cache": cache_folder(), "dry": given["dry"], "dtype": given["dtype"], "kernels": given["kernels"]}
    own: list[Contender] = [Lmc(programs, settings)]
    if not given["peers"]:
        return own
    if given["dry"]:
        raise UsageError(Diagnostic("E0851", "peers need the files of a model, and the stand-in model has none", None,
                                    help="leave `--dry` or `--peers` out"))
    # Every command reads this file, and few need what runs processes.
    from lmc.cli.peers.known import chosen_peers
    from lmc.cli.workloads.open_peers import opened_peers, read_spelling

    installed = installed_peers(given["environments"])
    names = chosen_peers(given["peers"], installed)
    spelling, folder = read_spelling(given["model"], settings["cache"])
    setting = PeerSetting(str(folder), given["dtype"], given["threads"] or processors())
    peers = held.enter_context(opened_peers(names, installed, setting, spelling, click.echo))
    clients = _CLIENTS[given["clients"] or ("both" if given["scale"] == "full" else "parallel")]
    return own + [PeerContender(peer, client, programs, spelling) for peer in peers for client in clients]


def _rows(workload: Workload, data: Data, most: int) -> list[Row]:
    try:
        return list(islice(workload.rows(data), most))
    except KeyError as missing:
        message = f"the data of `{workload.name}` in `{data.folder}` have no `{missing.args[0]}`"
        raise UsageError(Diagnostic("E0853", message, None, help="docs/workloads.md lists the files and their fields")) from None
