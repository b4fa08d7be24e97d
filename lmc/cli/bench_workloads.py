"""`lmc bench workloads`: the workloads of SGLang's paper, each a program of `examples/workloads`, with what each one costs.

    $ lmc bench workloads --only mmlu --only llm_judge --dry

The table and what its columns mean are in docs/workloads.md.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import click

from lmc.cli.bench_json import repository
from lmc.cli.exits import FAILED, OK
from lmc.cli.workloads.contender import Contender
from lmc.cli.workloads.data import Data
from lmc.cli.workloads.own_run import Lmc
from lmc.cli.workloads.results import HEAD, lines, write_results
from lmc.cli.workloads.table import NAMES, WORKLOADS, Row, Workload
from lmc.diagnostics import Diagnostic, UsageError


@click.command("workloads")
@click.option("--only", "names", multiple=True, type=click.Choice(NAMES), help="May be repeated. Default: all.")
@click.option("--scale", type=click.Choice(("quick", "full")), default="quick", show_default=True,
              help="A few rows of each, or as many as the paper's scripts have, as far as the data go.")
@click.option("--rows", "count", type=click.IntRange(1), metavar="N", help="That many rows of each instead.")
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
              help="The shared test data. Default: the sample beside the programs.")
@click.option("--programs", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
              help="Default: examples/workloads in the repository.")
@click.option("--model", default="default", metavar="NAME", show_default=True, help="Short name, folder or hub id.")
@click.option("--dry", is_flag=True, help="The stand-in model.")
@click.option("--dtype", type=click.Choice(("float32", "bfloat16")), default="float32", show_default=True)
@click.option("--kernels", default="auto", metavar="KIND", show_default=True, help="auto, native, native:LEVEL or torch.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="All numbers and results as JSON.")
def workloads_command(names: tuple[str, ...], scale: str, count: int | None, data: Path | None, programs: Path | None, model: str,
                      dry: bool, dtype: str, kernels: str, out: Path | None) -> int:
    """The workloads of SGLang's paper as programs: seconds, tokens, cache and memory."""
    from lmc.embed import cache_folder

    programs = programs or repository() / "examples" / "workloads"
    source = Data(data or programs / "sample")
    settings = {"model": model, "cache": cache_folder(), "dry": dry, "dtype": dtype, "kernels": kernels}
    contender: Contender = Lmc(programs, settings)
    outcomes = []
    click.echo(HEAD)
    for workload in (workload for workload in WORKLOADS if workload.name in (names or NAMES)):
        rows = _rows(workload, source, count or (workload.full if scale == "full" else workload.quick))
        outcomes.append(contender.run(workload, rows, source))
        for line in lines(outcomes[-1]):
            click.echo(line)
    contender.close()
    if out is not None:
        setting = {"model": "the stand-in model" if dry else model, "dtype": dtype, "kernels": kernels, "data": str(source.folder)}
        write_results(out, outcomes, setting)
    return FAILED if any(outcome.failed for outcome in outcomes) else OK


def _rows(workload: Workload, data: Data, most: int) -> list[Row]:
    try:
        return list(islice(workload.rows(data), most))
    except KeyError as missing:
        message = f"the data of `{workload.name}` in `{data.folder}` have no `{missing.args[0]}`"
        raise UsageError(Diagnostic("E0853", message, None, help="docs/workloads.md lists the files and their fields")) from None
