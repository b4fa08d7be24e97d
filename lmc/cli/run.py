"""`lmc run f.lmp[:entry] --arg value`: one run, its result as JSON on standard output.

    lmc run judge.lmp --essay @essay.txt
    lmc run judge.lmp --help                         the parameters of `judge`
    lmc run judge.lmp --batch in.jsonl -o out.jsonl  many runs

The program's parameters are options of the command, known once the program is compiled.  Where a parameter has the name of an
option of `lmc`, the name is the parameter's and the option is spelled `--lmc-NAME`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lmc.cli.exits import OK
from lmc.cli.opening import model_options, opened_machine, run_options
from lmc.cli.output import say_report, write_result
from lmc.cli.signals import run_until_interrupted
from lmc.diagnostics import Diagnostic, UsageError
from lmc.types import NoneT, spell_type

if TYPE_CHECKING:
    from lmc.backend.program import FunctionCode, ParameterInfo, Program

_USAGE = "FILE[:FUNCTION] [--PARAMETER VALUE]... [OPTIONS]"
# In front of the names of what belongs to the program, so that no option of ours is mixed up with it.
_PREFIX = "argument_"


@click.command("run", add_help_option=False, short_help="Run a program.",
               context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def run(words: tuple[str, ...]) -> int:
    """Run a function of a program; its result is JSON on standard output."""
    split = split_file(words)
    if split is None:
        return _without_file(words)
    file, rest = split
    from lmc.embed import load_program
    from lmc.runtime.arguments import find_entry

    path, entry = file_and_entry(file)
    program = load_program(path, level=_level(rest))
    code = find_entry(program, entry)
    command = _command(program, code, file)
    try:
        return command.main(rest, prog_name=f"lmc run {file}", standalone_mode=False) or OK
    except click.NoSuchOption as error:
        names = ", ".join(f"--{p.name}" for p in code.params) or "none"
        error.message += f"\nParameters of `{code.name}`: {names}. See also `lmc run {file} --help`."
        raise


def split_file(words: tuple[str, ...]) -> tuple[str, list[str]] | None:
    """The first word that is no option or value of one, and the words without it."""
    flags = {name for o in _options() if isinstance(o, click.Option) and o.is_flag for name in o.opts} | {"--help", "-h"}
    place = 0
    while place < len(words):
        word = words[place]
        if not word.startswith("-"):
            return word, [*words[:place], *words[place + 1:]]
        alone = word in flags or "=" in word or word.startswith("-O") and len(word) > 2
        place += 1 if alone else 2
    return None


def file_and_entry(word: str) -> tuple[Path, str | None]:
    """`f.lmp:judge` -> the file and the function."""
    file, colon, entry = word.rpartition(":")
    return (Path(file), entry) if colon and file and not Path(word).exists() else (Path(word), None)


def _without_file(words: tuple[str, ...]) -> int:
    command = click.Command("run", params=_options(), help=run.help, options_metavar=_USAGE)
    if "--help" in words or "-h" in words:
        click.echo(command.get_help(click.Context(command, info_name="lmc run")))
        return OK
    raise UsageError(Diagnostic("E0851", "`lmc run` needs the file of a program", None, help=f"lmc run {_USAGE}"))


def _options() -> list[click.Parameter]:
    return [
        *model_options(),
        click.Option(["--stream"], is_flag=True, help="Show generated text as it comes."),
        click.Option(["--batch"], type=click.Path(dir_okay=False), metavar="IN.jsonl",
                     help="One run for each line, a JSON object of arguments; `-` is standard input."),
        click.Option(["-o", "--output"], type=click.Path(dir_okay=False), metavar="OUT.jsonl",
                     help="Where results go. Default: standard output."),
    ]


def _level(words: list[str]) -> int:
    return 0 if "-O0" in words or ("-O", "0") in zip(words, words[1:]) else 1


def _command(program: Program, code: FunctionCode, file: str) -> click.Command:
    """The command of one function: its parameters, then the options of `lmc`."""
    taken = {f"--{spelling}" for p in code.params for spelling in _spellings(p)}
    options = _options()
    for option in options:
        option.opts = [f"--lmc-{name[2:]}" if name in taken else name for name in option.opts]

    def call(**given: Any) -> int:
        arguments = {p: given.pop(f"{_PREFIX}{i}") for i, p in enumerate(code.params)}
        return _start(program, code, {p: text for p, text in arguments.items() if text is not None}, given)

    params = [_parameter_option(i, p) for i, p in enumerate(code.params)]
    text = f"{code.doc}\n\n" if code.doc else ""
    from lmc.runtime.arguments import signature_text

    return click.Command("run", params=[*params, *options], callback=call, help=f"{text}\b\n{signature_text(code)}",
                         context_settings={"help_option_names": ["--help", "-h"] if "--help" not in taken else ["-h"]})


def _parameter_option(index: int, parameter: ParameterInfo) -> click.Option:
    needed = "required" if parameter.default is None else f"default: {parameter.default}"
    names = [*(f"--{s}" for s in _spellings(parameter)), f"{_PREFIX}{index}"]
    return click.Option(names, metavar="VALUE", type=click.UNPROCESSED, help=f"{spell_type(parameter.type)}; {needed}")


def _spellings(parameter: ParameterInfo) -> Iterator[str]:
    yield parameter.name
    if "_" in parameter.name:
        yield parameter.name.replace("_", "-")


def _start(program: Program, code: FunctionCode, texts: dict[ParameterInfo, str], given: dict[str, Any]) -> int:
    from lmc.cli.text_arguments import read_argument
    from lmc.runtime.host_types import holds_context

    if holds_context(code.result):
        raise UsageError(Diagnostic("E0852", f"`{code.name}` returns a context, which has no JSON", code.span,
                                    help="run a function that calls it"), program.sources)
    arguments = {p.name: read_argument(p, text) for p, text in texts.items()}
    if given["batch"] is not None:
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
    if not silent:
        write_result(value, code, given["output"])
    return OK
