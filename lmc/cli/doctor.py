"""`lmc doctor`: what a run would find on this machine, and what is wrong with it.

Exit codes: 0 all is there, or what is missing is fetched or made up for; 1 a run would fail; 2 a wrong argument.
"""

from __future__ import annotations

import json

import click

from lmc.cli.exits import OK, WRONG
from lmc.diagnostics import render


@click.command("doctor")
@click.option("--model", default="default", metavar="NAME", show_default=True, help="Short name, folder, GGUF file or hub id.")
@click.option("--dtype", type=click.Choice(["float32", "bfloat16"]), default="float32", show_default=True)
@click.option("--kernels", default="auto", metavar="KIND", show_default=True, help="auto, native, native:LEVEL, triton or torch.")
@click.option("--pool-tokens", type=click.IntRange(2), metavar="N", help="As of `lmc run`.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def doctor(model: str, dtype: str, kernels: str, pool_tokens: int | None, form: str) -> int:
    """Show which model, kernels, compiler and memory a run would use."""
    from lmc.embed import cache_folder
    from lmc.runtime.doctor import examine

    found = examine(model=model, cache=cache_folder(), dtype=dtype, kernels=kernels, pool_tokens=pool_tokens)
    if form == "json":
        click.echo(json.dumps({**dict(found.facts), "faults": [d.code for d in found.faults],
                               "warnings": [d.code for d in found.warnings]}, indent=2))
    else:
        for line in found.lines():
            click.echo(line)
    for diagnostic in (*found.faults, *found.warnings):
        click.echo(render(diagnostic, None), err=True)
    return WRONG if found.faults else OK
