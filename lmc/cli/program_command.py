"""Commands whose options are a program's parameters: `lmc run`, `lmc render`.

    lmc run judge.lmp:judge --essay @essay.txt --dry
    \\_____/ \\_____________/ \\________________/ \\___/
    name    file, function   a parameter         an option of lmc

The parameters are known once the program is compiled.  Where one has the name of an option of `lmc`, the name is the
parameter's and the option is spelled `--lmc-NAME`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lmc.cli.exits import OK
from lmc.cli.remote_options import target_of
from lmc.diagnostics import Diagnostic, UsageError
from lmc.levels import DEFAULT_LEVEL, LEVELS
from lmc.types import spell_type

if TYPE_CHECKING:
    from lmc.backend.program import FunctionCode, ParameterInfo, Program

_USAGE = "FILE[:FUNCTION] [--PARAMETER VALUE]... [OPTIONS]"
# In front of the names of what belongs to the program, so that no option of ours is mixed up with it.
_PREFIX = "argument_"


@dataclass(frozen=True, slots=True)
class ProgramCommand:
    """name: `run`; help: what it does; options: makes its own options afresh; start: does it, with the program, the function, the
    texts of the arguments that are given, and the options."""

    name: str
    help: str
    options: Callable[[], list[click.Parameter]]
    start: Callable[[Program, FunctionCode, dict[ParameterInfo, str], dict[str, Any]], int]

    def run(self, words: tuple[str, ...]) -> int:
        """Compile the program that the words name, and start it with the rest of them."""
        split = split_file(words, self.options())
        if split is None:
            return self._without_file(words)
        file, rest = split
        program, code = _load(*file_and_entry(file), rest)
        try:
            return self._command(program, code).main(rest, prog_name=f"lmc {self.name} {file}", standalone_mode=False) or OK
        except click.NoSuchOption as error:
            names = ", ".join(f"--{p.name}" for p in code.params) or "none"
            error.message += f"\nParameters of `{code.name}`: {names}. See also `lmc {self.name} {file} --help`."
            raise

    def _without_file(self, words: tuple[str, ...]) -> int:
        command = click.Command(self.name, params=self.options(), help=self.help, options_metavar=_USAGE)
        if "--help" in words or "-h" in words:
            click.echo(command.get_help(click.Context(command, info_name=f"lmc {self.name}")))
            return OK
        message = f"`lmc {self.name}` needs the file of a program"
        raise UsageError(Diagnostic("E0851", message, None, help=f"lmc {self.name} {_USAGE}"))

    def _command(self, program: Program, code: FunctionCode) -> click.Command:
        """The command of one function: its parameters, then the options of `lmc`."""
        taken = {f"--{spelling}" for p in code.params for spelling in _spellings(p)}
        options = self.options()
        for option in options:
            option.opts = [f"--lmc-{name[2:]}" if name in taken else name for name in option.opts]

        def call(**given: Any) -> int:
            arguments = {p: given.pop(f"{_PREFIX}{i}") for i, p in enumerate(code.params)}
            return self.start(program, code, {p: text for p, text in arguments.items() if text is not None}, given)

        params = [_parameter_option(i, p) for i, p in enumerate(code.params)]
        text = f"{code.doc}\n\n" if code.doc else ""
        from lmc.runtime.arguments import signature_text

        return click.Command(self.name, params=[*params, *options], callback=call, help=f"{text}\b\n{signature_text(code)}",
                             context_settings={"help_option_names": ["--help", "-h"] if "--help" not in taken else ["-h"]})


def split_file(words: tuple[str, ...], options: list[click.Parameter]) -> tuple[str, list[str]] | None:
    """The first word that is no option or value of one, and the words without it."""
    flags = {name for o in options if isinstance(o, click.Option) and o.is_flag for name in o.opts} | {"--help", "-h"}
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


def _level(words: list[str]) -> int:
    given = [b if a == "-O" else a[2:] for a, b in zip(words, [*words[1:], ""]) if a[:2] == "-O"]
    # What is no level is refused when the options are read.
    return next((int(level) for level in reversed(given) if level in map(str, LEVELS)), DEFAULT_LEVEL)


def _load(path: Path, entry: str | None, words: list[str]) -> tuple[Program, FunctionCode]:
    from lmc.embed import load_program
    from lmc.runtime.arguments import find_entry

    # A value that is no folder is an argument, or refused when the options are read.
    roots = tuple(filter(os.path.isdir, _values(words, "--root", "--lmc-root")))
    moved: list[str] = []
    reordered = not {"--reorder", "--lmc-reorder"}.isdisjoint(words)
    options = {"level": _level(words), "target": target_of(_values(words, "--backend", "--lmc-backend"))}
    program = load_program(path, **options, roots=roots, tell_moved=moved.append if reordered else None)
    code = find_entry(program, entry)
    spelled = {name for p in code.params for name in _spellings(p)}
    if roots and "root" in spelled or reordered and "reorder" in spelled:
        # It was an argument: it gives no rights, and moves nothing.
        moved.clear()
        reordered = "--lmc-reorder" in words or reordered and "reorder" not in spelled
        roots = _values(words, "--lmc-root") if "root" in spelled else roots
        program = load_program(path, **options, roots=roots, tell_moved=moved.append if reordered else None)
        code = find_entry(program, entry)
    for text in moved:
        click.echo(text, err=True)
    return program, code


def _values(words: list[str], *names: str) -> tuple[str, ...]:
    """What the words give for an option, before it is known which words are options."""
    apart = [value for name, value in zip(words, words[1:]) if name in names]
    return tuple(apart + [word.partition("=")[2] for word in words if "=" in word and word.partition("=")[0] in names])


def _parameter_option(index: int, parameter: ParameterInfo) -> click.Option:
    needed = "required" if parameter.default is None else f"default: {parameter.default}"
    names = [*(f"--{s}" for s in _spellings(parameter)), f"{_PREFIX}{index}"]
    return click.Option(names, metavar="VALUE", type=click.UNPROCESSED, help=f"{spell_type(parameter.type)}; {needed}")


def _spellings(parameter: ParameterInfo) -> Iterator[str]:
    yield parameter.name
    if "_" in parameter.name:
        yield parameter.name.replace("_", "-")
