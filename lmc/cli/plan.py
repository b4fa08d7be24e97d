"""`lmc plan f.lmp[:entry] --arg value`: the calls that a run will make, before anything runs and without weights.

    lmc plan judge.lmp --essay @essay.txt                 a page to read (docs/plan.md)
    lmc plan judge.lmp --essay hi --format json           the same for other programs
    lmc plan judge.lmp --essay hi --calls                 each call on its own line, branches and rounds not put together

No model is asked, no extern called, no line of input read.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from lmc.cli.exits import OK
from lmc.cli.opening import model_options, run_options
from lmc.cli.program_command import ProgramCommand
from lmc.cli.remote_options import server_of
from lmc.cli.roots import root_option

if TYPE_CHECKING:
    from lmc.backend.program import FunctionCode, ParameterInfo, Program
    from lmc.runtime.forecast.forecast import Forecast

_HELP = "Show which calls of the model a function will make, before it runs."
# What has no meaning where nothing is computed.
_OF_WEIGHTS = ("kernels", "deterministic", "jump", "policy", "without")


@click.command("plan", add_help_option=False, short_help="Show the calls of a run before it runs.", help=_HELP,
               context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def plan(words: tuple[str, ...]) -> int:
    return ProgramCommand("plan", _HELP, _options, _start).run(words)


def plan_function(program: Program, name: str, args: tuple[Any, ...] | None, given: dict[str, Any]) -> Forecast:
    """The forecast of a function; without `args` its parameters are not known.  `given`: options as of `model_options`."""
    from lmc.embed import cache_folder
    from lmc.runtime.forecast.forecast import foresee
    from lmc.runtime.forecast.opening import open_remote_target, open_target
    from lmc.runtime.model.progress import ProgressBar, silent

    model = given["model"] or program.config.get("model", "default")
    server = server_of(program, given) if "backend" in given else None
    if server is not None:
        foreseer, target = open_remote_target(program, server, model)
        return foresee(program, foreseer, name, args, run_options(given), target)
    bar = ProgressBar(sys.stderr)
    try:
        foreseer, target = open_target(model, cache_folder(), dry=given["dry"], dtype=given.get("dtype", "float32"),
                                       pool_tokens=given.get("pool_tokens"), pool_bytes=given.get("pool_bytes"),
                                       progress=silent if given.get("quiet") else bar)
    finally:
        bar.close()
    return foresee(program, foreseer, name, args, run_options(given), target)


def _options() -> list[click.Parameter]:
    return [
        root_option(),
        *(option for option in model_options() if option.name not in _OF_WEIGHTS),
        click.Option(["--format", "form"], type=click.Choice(["text", "json"]), default="text", help="Default: text."),
        click.Option(["--calls"], is_flag=True, help="Each call on its own: branches and rounds are not put together."),
    ]


def _start(program: Program, code: FunctionCode, texts: dict[ParameterInfo, str], given: dict[str, Any]) -> int:
    from lmc.cli.text_arguments import read_argument
    from lmc.runtime.arguments import bind_arguments
    from lmc.runtime.host_types import HostTypes

    args = bind_arguments(code, (), {p.name: read_argument(p, text) for p, text in texts.items()}, HostTypes(program.types))
    forecast = plan_function(program, code.name, args, given)
    if given["form"] == "json":
        click.echo(json.dumps(forecast.data(calls=given["calls"]), ensure_ascii=False, indent=2))
    else:
        click.echo(forecast.text(calls=given["calls"]))
    if forecast.error is not None:
        raise forecast.error
    return OK
