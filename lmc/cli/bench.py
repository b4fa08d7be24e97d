"""`lmc bench`: measurements of the compiler and the engine, each a table on standard output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lmc.cli.ablation_programs import PROGRAMS
from lmc.cli.bench_ablation import ABLATIONS, HEAD, Compared, compare
from lmc.cli.bench_json import OBJECTS, Bench, read_documents, repository
from lmc.cli.bench_masks import mask_table
from lmc.cli.bench_lifetimes import TRACES, lifetimes_table
from lmc.cli.bench_overhead import measure, overhead_lines
from lmc.cli.bench_peers import peers_command
from lmc.cli.bench_regex import regex_table
from lmc.cli.bench_tree import tree_command
from lmc.cli.bench_workloads import workloads_command
from lmc.cli.exits import OK
from lmc.cli.machine import machine_data
from lmc.cli.plots import ablation_figure, drawing_extra
from lmc.cli.workloads.results import write_json


@click.group("bench")
def bench() -> None:
    """Measure parts of lmc on this machine."""


@bench.command("regex")
@click.option("--repeat", type=click.IntRange(1, 100), default=3, show_default=True, help="Builds of each; the median counts.")
def regex_command(repeat: int) -> int:
    """How long automata take to build, beside the times of the design."""
    for line in regex_table(repeat):
        click.echo(line)
    return OK


@bench.command("masks")
@click.option("--model", default="default", metavar="NAME", show_default=True, help="Whose tokenizer: short name, folder or hub id.")
@click.option("--dry", is_flag=True, help="The stand-in model's tokenizer.")
@click.option("--peers", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
              help="What `make bench-peers` made. Default: .bench-peers in the repository.")
def masks_command(model: str, dry: bool, peers: Path | None) -> int:
    """What masks cost over twenty constraints, beside other engines."""
    from lmc.embed import cache_folder
    from lmc.runtime.open_tokenizer import open_tokenizer

    tokenizer, _ = open_tokenizer(model, cache_folder(), dry=dry)
    for line in mask_table(tokenizer, peers or repository() / ".bench-peers"):
        click.echo(line)
    return OK


@bench.command("lifetimes")
@click.option("--trace", "traces", multiple=True, type=click.Choice(TRACES), help="May be repeated. Default: all.")
def lifetimes_command(traces: tuple[str, ...]) -> int:
    """Prompt tokens found in the cache: plain LRU, what compiled programs say of their contexts, and an oracle."""
    for line in lifetimes_table(traces or TRACES):
        click.echo(line)
    return OK


@bench.command("ablation")
@click.option("--model", metavar="NAME", help="Short name, folder or hub id. Default: the stand-in model.")
@click.option("--program", "programs", multiple=True, type=click.Choice(tuple(PROGRAMS)), help="May be repeated. Default: all.")
@click.option("--rows", type=click.IntRange(1), default=16, show_default=True, help="Runs of each program, side by side.")
@click.option("--rounds", type=click.IntRange(1), default=1, show_default=True, help="Of which the median counts; all conditions take turns.")
@click.option("--pool-tokens", type=click.IntRange(1024), default=2048, show_default=True, metavar="N", help="Size of the key-value pool.")
@click.option("--dtype", type=click.Choice(("float32", "bfloat16")), default="float32", show_default=True)
@click.option("--kernels", default="auto", metavar="KIND", show_default=True, help="auto, native, native:LEVEL, triton or torch.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="All numbers as JSON.")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.png", help="The paper's figure of these numbers.")
def ablation_command(programs: tuple[str, ...], rows: int, rounds: int, out: Path | None, plot: Path | None, **settings: Any) -> int:
    """What the cache, its tree, the order of requests, jump-forward, passes and more bring, each left out in turn."""
    from lmc.embed import cache_folder

    if plot is not None:
        drawing_extra()
    model = settings.pop("model")
    opening = {**settings, "model": model or "", "dry": model is None, "cache": cache_folder()}
    measured: list[Compared] = []
    click.echo(HEAD)
    for name in programs or tuple(PROGRAMS):
        for compared in compare(name, opening, rows, rounds):
            click.echo(compared.line())
            measured.append(compared)
    setting = {"model": model or "the stand-in model", **settings, "conditions": list(ABLATIONS), "rounds": rounds}
    results = {"machine": machine_data(), **setting, "outcomes": [compared.data() for compared in measured]}
    if out is not None:
        write_json(out, results)
    if plot is not None:
        ablation_figure(results, plot)
    return OK


@bench.command("overhead")
@click.option("--instances", type=click.IntRange(1), default=10_000, show_default=True, help="Runs of the program, three calls each.")
@click.option("--batch", type=click.IntRange(1), default=64, show_default=True, help="Runs at a time.")
@click.option("--pool-tokens", type=click.IntRange(1024), default=1 << 18, show_default=True, metavar="N", help="Size of the key-value pool.")
def overhead_command(instances: int, batch: int, pool_tokens: int) -> int:
    """Processor time of machine and scheduler per token and per call, the model's excluded; memory at the most."""
    for line in overhead_lines(measure(instances, batch, pool_tokens), batch):
        click.echo(line)
    return OK


@bench.command("json")
@click.option("--model", default="default", metavar="NAME", show_default=True, help="Short name, folder or hub id.")
@click.option("--dry", is_flag=True, help="The stand-in model.")
@click.option("--kernels", default="auto", metavar="KIND", show_default=True, help="auto, native, native:LEVEL, triton or torch.")
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
              help="The shared test data. Default: ../shared/data beside the repository.")
@click.option("--only", "objects", multiple=True, type=click.Choice(OBJECTS), help="May be repeated. Default: all.")
@click.option("--documents", type=click.IntRange(1), default=40, show_default=True, metavar="N", help="Of each object.")
@click.option("--batch", "batches", multiple=True, type=click.IntRange(1), default=(1, 8, 32), show_default=True, metavar="N",
              help="Requests at a time; may be repeated.")
@click.option("--rounds", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="Turns of the three ways; medians are printed.")
def json_command(model: str, dry: bool, kernels: str, data: Path | None, objects: tuple[str, ...], documents: int,
                 batches: tuple[int, ...], rounds: int) -> int:
    """Typed objects with and without jump-forward: passes, seconds, and whether the tokens are the same."""
    wanted = read_documents(data, objects or OBJECTS, documents)
    for line in Bench(model, dry=dry, kernels=kernels).table(wanted, batches, rounds):
        click.echo(line)
    return OK


bench.add_command(tree_command)
bench.add_command(workloads_command)
bench.add_command(peers_command)
