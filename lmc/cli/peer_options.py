"""Options that the commands share which set other engines beside ours: where those are, and which model all of them run.

    @click.command("peers")
    @peer_options(dtype="bfloat16")
    def peers_command(environments, model, dry, dtype, kernels, threads, …): …
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from lmc.cli.bench_json import repository

if TYPE_CHECKING:
    from lmc.cli.peers.known import Installed

_Command = TypeVar("_Command", bound=Callable)


def peer_options(*, dtype: str) -> Callable[[_Command], _Command]:
    """dtype: the precision class where none is asked for"""
    options = (
        click.option("--environments", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
                     help="What `make bench-peers` made. Default: .bench-peers in the repository."),
        click.option("--model", default="default", metavar="NAME", show_default=True, help="Short name, folder or hub id."),
        click.option("--dry", is_flag=True, help="The stand-in model, without peers."),
        click.option("--dtype", type=click.Choice(("float32", "bfloat16")), default=dtype, show_default=True),
        click.option("--kernels", default="auto", metavar="KIND", show_default=True, help="auto, native, native:LEVEL or torch."),
        click.option("--threads", type=click.IntRange(1), metavar="N", help="Of peers. Default: the processors that this process may use."),
    )

    def decorate(command: _Command) -> _Command:
        # Options are shown in the order in which they stand above a command, the last of which comes to it first.
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def installed_peers(environments: Path | None) -> Installed:
    """environments: what `--environments` says"""
    # Every command reads this file, and few need what runs processes.
    from lmc.cli.peers.known import Installed

    return Installed(environments or repository() / ".bench-peers", repository() / "benchmarks" / "peers")
