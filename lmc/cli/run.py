"""`lmc run f.lmp[:entry] --arg value`: one run, its result as JSON on standard output.

    lmc run judge.lmp --essay @essay.txt
    lmc run judge.lmp --help                         the parameters of `judge`
    lmc run judge.lmp --report numbers.json          what each call read, found in the cache and wrote
    lmc run judge.lmp --batch in.jsonl -o out.jsonl  many runs

The program's parameters are options of the command (`program_command.py`).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from lmc.cli.exits import OK
from lmc.cli.opening import model_options, opened_machine, run_options
from lmc.cli.output import say_report, say_time, write_report, write_result
from lmc.cli.program_command import ProgramCommand
from lmc.cli.roots import root_option
from lmc.cli.signals import run_until_interrupted
from lmc.diagnostics import Diagnostic, UsageError
from lmc.types import NoneT

if TYPE_CHECKING:
    from lmc.backend.program import FunctionCode, ParameterInfo, Program

_HELP = "Run a function of a program; its result is JSON on standard output."


@click.command("run", add_help_option=False, short_help="Run a program.", help=_HELP,
               context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def run(words: tuple[str, ...]) -> int:
    return ProgramCommand("run", _HELP, _options, _start).run(words)


def _options() -> list[click.Parameter]:
    return [
        root_option(),
        *model_options(),
        click.Option(["--reorder"], is_flag=True,
                     help="Move lines of a prompt that do not vary before those that do, and say which."),
        click.Option(["--stream"], is_flag=True, help="Show generated text as it comes."),
        click.Option(["--batch"], type=click.Path(dir_okay=False), metavar="IN.jsonl",
                     help="One run for each line, a JSON object of arguments; `-` is standard input."),
        click.Option(["--report"], type=click.Path(dir_okay=False), metavar="FILE.json",
                     help="Write the numbers of the run, call by call, as JSON."),
        click.Option(["--stats"], is_flag=True, help="Also say where the engine's time went, on standard error."),
        click.Option(["-o", "--output"], type=click.Path(dir_okay=False), metavar="OUT.jsonl",
                     help="Where results go. Default: standard output."),
    ]


def _start(program: Program, code: FunctionCode, texts: dict[ParameterInfo, str], given: dict[str, Any]) -> int:
    from lmc.cli.text_arguments import read_argument
    from lmc.runtime.host_types import holds_context

    if holds_context(code.result):
        raise UsageError(Diagnostic("E0852", f"`{code.name}` returns a context, which has no JSON", code.span,
                                    help="run a function that calls it"), program.sources)
    arguments = {p.name: read_argument(p, text) for p, text in texts.items()}
    if given["batch"] is not None:
        if given["report"] is not None:
            raise UsageError(Diagnostic("E0851", "`--report` is for one run, and `--batch` makes many", None,
                                        help="run one row alone: its numbers are those of the row in the batch, but for the cache"))
        from lmc.cli.batch import run_batch

        return run_until_interrupted(run_batch(program, code, arguments, given))
    return run_until_interrupted(_run_once(program, code, arguments, given))


async def _run_once(program: Program, code: FunctionCode, arguments: dict[str, Any], given: dict[str, Any]) -> int:
    from lmc.cli.terminal import Terminal
    from lmc.runtime.arguments import bind_arguments
    from lmc.runtime.host_types import HostTypes
    from lmc.runtime.instance import Sinks

    options = run_options(given)
    args = bind_arguments(code, (), arguments, HostTypes(program.types))
    silent = isinstance(code.result, NoneT)
    terminal = Terminal(sys.stdout if silent else sys.stderr)
    async with opened_machine(program, given) as machine:
        run = machine.start(options, Sinks(terminal.print, terminal.stream, terminal.ask))
        try:
            value = await run.call(code.name, args)
        finally:
            terminal.end_line()
            if not given["quiet"]:
                say_report(run.report)
            if given["stats"]:
                say_time(machine.bound.session)
            if given["report"] is not None:
                write_report(run.report, given["report"])
    if not silent:
        write_result(value, code, given["output"])
    return OK
