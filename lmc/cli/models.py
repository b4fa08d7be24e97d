"""`lmc models`: what is there; `lmc models pull NAME`: fetch it."""

from __future__ import annotations

import sys

import click

from lmc.cli.exits import OK


@click.group("models", invoke_without_command=True)
@click.pass_context
def models(context: click.Context) -> int:
    """List or fetch models."""
    return OK if context.invoked_subcommand else list_models()


@models.command("list")
def list_command() -> int:
    """List the models that are known, and where they are."""
    return list_models()


@models.command("pull")
@click.argument("name", default="default")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
def pull(name: str, quiet: bool) -> int:
    """Fetch a model, or verify it where it is there.  NAME: a short name or a hub id; `default` if left out."""
    from lmc.embed import cache_folder
    from lmc.runtime.model import registry
    from lmc.runtime.model.progress import ProgressBar, silent

    bar = ProgressBar(sys.stderr)
    try:
        folder = registry.pull(name, cache_folder(), silent if quiet else bar)
    finally:
        bar.close()
    click.echo(str(folder))
    return OK


def list_models() -> int:
    from lmc.embed import cache_folder
    from lmc.runtime.model import registry

    for entry in registry.list_models(cache_folder()):
        where = f"{entry.folder}  {entry.size / 1e6:,.0f} MB" if entry.folder else f"not fetched; lmc models pull {entry.name}"
        click.echo(f"{entry.name}  {entry.about}\n    {where}")
    return OK
