"""`lmc render f.lmp[:entry] --arg value`: the prompt of each call up to the first point that needs the model, without weights.

    lmc render judge.lmp --essay @essay.txt            prompts as text, reopened text between ⟦ and ⟧
    lmc render judge.lmp --essay hi --tokens           token ids, control tokens as [1 <|im_start|>]
    lmc render judge.lmp --essay hi --format json      both, for other programs
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from lmc.cli.exits import OK
from lmc.cli.opening import extern_functions, model_options, run_options
from lmc.cli.program_command import ProgramCommand
from lmc.cli.remote_options import REMOTE
from lmc.cli.roots import root_option
from lmc.diagnostics import render_all

if TYPE_CHECKING:
    from lmc.backend.program import FunctionCode, ParameterInfo, Program
    from lmc.runtime.render import ShownRequests
    from lmc.runtime.rendering import Rendering

_HELP = "Show the prompts of a function up to where it needs the model."
# What has no meaning where nothing is computed.
_OF_WEIGHTS = ("dtype", "kernels", "deterministic", "pool_tokens", "pool_bytes", "jump", "policy", "without", *REMOTE)


@click.command("render", add_help_option=False, short_help="Show prompts.", help=_HELP,
               context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def render(words: tuple[str, ...]) -> int:
    return ProgramCommand("render", _HELP, _options, _start).run(words)


def _options() -> list[click.Parameter]:
    return [
        root_option(),
        *(option for option in model_options() if option.name not in _OF_WEIGHTS),
        click.Option(["--tokens"], is_flag=True, help="Token ids instead of text."),
        click.Option(["--format", "form"], type=click.Choice(["text", "json"]), default="text", help="Default: text."),
    ]


def _start(program: Program, code: FunctionCode, texts: dict[ParameterInfo, str], given: dict[str, Any]) -> int:
    from lmc.cli.text_arguments import read_argument
    from lmc.runtime.arguments import bind_arguments
    from lmc.runtime.host import bind_given_externs
    from lmc.runtime.host_types import HostTypes
    from lmc.runtime.instance import Sinks
    from lmc.runtime.render import render_calls

    options = run_options(given)
    args = bind_arguments(code, (), {p.name: read_argument(p, text) for p, text in texts.items()}, HostTypes(program.types))
    externs = bind_given_externs(program, extern_functions(given))
    shown = _stand_in(program, given)
    sinks = Sinks(lambda text: click.echo(text, err=True), lambda path, text: None)
    rendering = render_calls(program, shown, externs, code.name, args, options, sinks)
    _write(rendering, given)
    if not given["quiet"]:
        _say_stops(rendering, program, code)
    if rendering.error is not None:
        raise rendering.error
    return OK


def _stand_in(program: Program, given: dict[str, Any]) -> ShownRequests:
    from lmc.embed import cache_folder
    from lmc.runtime.model.progress import ProgressBar, silent
    from lmc.runtime.open_tokenizer import open_tokenizer
    from lmc.runtime.render import ShownRequests

    name = given["model"] or program.config.get("model", "default")
    bar = ProgressBar(sys.stderr)
    try:
        tokenizer, template = open_tokenizer(name, cache_folder(), dry=given["dry"], progress=silent if given["quiet"] else bar)
    finally:
        bar.close()
    return ShownRequests(tokenizer, template, "the stand-in model" if given["dry"] else name)


def _write(rendering: Rendering, given: dict[str, Any]) -> None:
    if given["form"] == "json":
        click.echo(json.dumps(rendering.data(), ensure_ascii=False, indent=2))
    elif rendering.calls:
        click.echo(rendering.text(tokens=given["tokens"]))


def _say_stops(rendering: Rendering, program: Program, code: FunctionCode) -> None:
    for stop in rendering.stops:
        click.echo(render_all([stop], program.sources), err=True)
    if rendering.returned:
        click.echo(f"`{code.name}` returns without asking the model", err=True)
