"""`lmc bench`: measurements of the compiler and the engine, each a table on standard output."""

from __future__ import annotations

import click

from lmc.cli.bench_regex import regex_table
from lmc.cli.exits import OK


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
