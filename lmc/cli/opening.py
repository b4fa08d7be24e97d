"""From the options of a command to a machine: the model flags that `run` and `test` share, and who loads what.

    --model NAME --dtype float32 --pool-tokens N --dry --deterministic --extern tools.py --seed N --temperature …
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lmc.cli.remote_options import remote_options, server_of
from lmc.levels import DEFAULT_LEVEL, LEVELS

if TYPE_CHECKING:
    from lmc.backend.program import Program
    from lmc.runtime.instance import RunOptions
    from lmc.runtime.machine import Machine
    from lmc.runtime.open_session import Opened
    from lmc.runtime.remote.settings import RemoteSettings

_SAMPLING = ("temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty", "repetition_penalty")


def model_options() -> list[click.Parameter]:
    """Fresh options: which model, which host functions, and how it samples."""
    number = {"type": float, "metavar": "X"}
    return [
        click.Option(["--model"], metavar="NAME", help="Short name, folder, GGUF file or hub id. Default: the program's, or `default`."),
        click.Option(["--dtype"], type=click.Choice(["float32", "bfloat16"]), default="float32", help="Default: float32."),
        click.Option(["--kernels"], default="auto", metavar="KIND",
                     help="What computes: auto, native, native:LEVEL, triton or torch. Default: auto, the fastest that can run here."),
        click.Option(["--dry"], is_flag=True, help="Answer from a stand-in model that needs no files."),
        click.Option(["--deterministic"], is_flag=True, help="The same bits whatever else runs."),
        click.Option(["--pool-tokens"], type=click.IntRange(2), metavar="N",
                     help="Size of the key-value pool. Default: a quarter of the free memory."),
        click.Option(["--pool-bytes"], metavar="SIZE", help="The same in memory, such as 512MiB or 2GiB."),
        click.Option(["--jump"], type=click.Choice(["exact", "canonical", "off"]), default="exact",
                     help="How forced text is written: exact and off give the same text. Default: exact."),
        click.Option(["--policy"], type=click.Choice(["lpm", "dfs", "fcfs", "random"]), default="lpm",
                     help="The order in which requests start. Default: lpm, longest cached prefix first."),
        click.Option(["--without"], multiple=True, type=click.Choice(["cache", "tree", "parallelism", "fork-hints", "narrow-head"]),
                     help="Leave a part out, to see what it brings; may be repeated. The result is the same."),
        click.Option(["--extern"], multiple=True, metavar="FILE.py", help="Python file with externs; may be repeated."),
        click.Option(["--seed"], type=click.IntRange(0, 2**64 - 1), metavar="N", help="Program seed. Default: drawn at random."),
        click.Option(["--temperature"], **number, help="For every gen that does not give its own, as the following."),
        click.Option(["--top-p"], **number),
        click.Option(["--top-k"], type=int, metavar="N"),
        click.Option(["--min-p"], **number),
        click.Option(["--frequency-penalty"], **number),
        click.Option(["--presence-penalty"], **number),
        click.Option(["--repetition-penalty"], **number),
        click.Option(["--max-calls"], type=click.IntRange(1), metavar="N", help="Model calls per run. Default: 1,000."),
        click.Option(["--max-tokens"], type=click.IntRange(1), metavar="N", help="Generated tokens per run. Default: 200,000."),
        click.Option(["-O", "level"], type=click.Choice([*map(str, LEVELS)]), default=str(DEFAULT_LEVEL),
                     help="0: as written; 1: each function by itself; 2: all optimisations, the default."),
        click.Option(["--quiet", "-q"], is_flag=True, help="No summary, no progress."),
        *remote_options(),
    ]


def run_options(given: Mapping[str, Any]) -> RunOptions:
    """The options of a run, checked.  Raises `UsageError`."""
    from lmc.runtime.instance import Budgets, RunOptions
    from lmc.runtime.options import check_overrides

    overrides = {name: given[name] for name in _SAMPLING if given.get(name) is not None}
    if given.get("stream"):
        overrides["stream"] = True
    budgets = {k: given[f"max_{k}"] for k in ("calls", "tokens") if given.get(f"max_{k}") is not None}
    return RunOptions(seed=given.get("seed"), overrides=check_overrides(overrides), budgets=Budgets(**budgets),
                      parallel="parallelism" not in given.get("without", ()))


@asynccontextmanager
async def opened_machine(program: Program, given: Mapping[str, Any]) -> AsyncIterator[Machine]:
    """The program on its model and its externs."""
    from lmc.runtime.daemon_call import call_in_daemon
    from lmc.runtime.host import bind_externs

    externs = bind_externs(program, extern_functions(given))
    async with opened_session(program, given) as session:
        from lmc.runtime.machine import Machine

        yield await call_in_daemon(Machine, program, session, externs)


def extern_functions(given: Mapping[str, Any]) -> dict[str, Any]:
    """What the files of `--extern` define."""
    from lmc.runtime.host import load_extern_file

    functions: dict[str, Any] = {}
    for file in given["extern"]:
        functions.update(load_extern_file(Path(file)))
    return functions


@asynccontextmanager
async def opened_session(program: Program, given: Mapping[str, Any]) -> AsyncIterator[Opened]:
    """The program's model, in this process or behind a server."""
    model = given["model"] or program.config.get("model", "default")
    async with opened_model(model, given, server_of(program, given)) as session:
        yield session


@asynccontextmanager
async def opened_model(model: str, given: Mapping[str, Any], remote: RemoteSettings | None = None) -> AsyncIterator[Opened]:
    """A model; it is loaded in a thread, so that Ctrl-C is heard meanwhile."""
    from lmc.embed import cache_folder
    from lmc.runtime.daemon_call import call_in_daemon

    session = await call_in_daemon(_open, {
        "model": model, "cache": cache_folder(), "dry": given["dry"],
        "dtype": given["dtype"], "kernels": given["kernels"], "deterministic": given["deterministic"], "pool_tokens": given["pool_tokens"],
        "pool_bytes": given["pool_bytes"], "jump": given["jump"], "policy": given["policy"], "without": given["without"],
        "remote": remote,
    }, given["quiet"])
    try:
        yield session
    finally:
        await session.disconnect()
        session.close()


def _open(settings: dict[str, Any], quiet: bool) -> Any:
    # The first import of torch takes a second or more: it belongs into this thread.
    from lmc.runtime.model.progress import ProgressBar, silent
    from lmc.runtime.open_session import open_session

    if quiet:
        return open_session(**settings, progress=silent)
    bar = ProgressBar(sys.stderr)
    try:
        return open_session(**settings, progress=bar, say=lambda text: print(text, file=sys.stderr))
    finally:
        bar.close()
