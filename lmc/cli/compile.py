"""`lmc compile f.lmp`: an artifact that `lmc run` runs, or one of the forms on the way to it.

    lmc compile judge.lmp -o judge.lmpc
    lmc compile judge.lmp --emit-ir
    lmc compile judge.lmp --emit=ast|ir|program|plan|fsm|dot
    lmc compile judge.lmp --emit-ir --print-after=changed --time-passes
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lmc.cli.exits import OK
from lmc.cli.roots import with_roots
from lmc.diagnostics import Diagnostic, UsageError, render_all
from lmc.levels import DEFAULT_LEVEL, LEVELS

if TYPE_CHECKING:
    from lmc.backend.program import Program


@with_roots
@click.command("compile")
@click.argument("file", type=click.Path())
@click.option("--emit", type=click.Choice(["ast", "ir", "program", "plan", "fsm", "dot"]),
              help="Print this form instead of writing an artifact; plan: the calls of each function, whatever its arguments; "
                   "fsm and dot: the automata of its constraints.")
@click.option("--emit-ir", is_flag=True, help="The same as --emit=ir.")
@click.option("-O", "level", type=click.Choice([*map(str, LEVELS)]), default=str(DEFAULT_LEVEL),
              help="0: as written; 1: each function by itself; 2: all optimisations, the default.")
@click.option("--target", type=click.Choice(["local", "api"]), default="local",
              help="Whose passes: those for our engine, or for an API. Default: local.")
@click.option("--passes", metavar="A,B", help="Run these passes instead of those of -O.")
@click.option("--reorder", is_flag=True, help="Move lines of a prompt that do not vary before those that do, and say which.")
@click.option("--print-after", metavar="PASS", help="Print the IR after this pass, after `all`, or after each that `changed` it.")
@click.option("--time-passes", is_flag=True, help="Print how long each pass took.")
@click.option("--stats", is_flag=True, help="Print how many ops each pass left.")
@click.option("--model", metavar="NAME", help="Whose tokens --emit=plan counts. Default: the program's, or `default`.")
@click.option("--dry", is_flag=True, help="Count the tokens of the stand-in model in --emit=plan; it needs no files.")
@click.option("-o", "--output", type=click.Path(dir_okay=False),
              help="Where it goes. Default: the artifact beside FILE, forms to standard output.")
def compile_command(file: str, roots: tuple[str, ...], emit: str | None, emit_ir: bool, level: str, target: str,
                    passes: str | None, reorder: bool, print_after: str | None, time_passes: bool, stats: bool,
                    model: str | None, dry: bool, output: str | None) -> int:
    """Compile a program to an artifact (.lmpc), or print one of its forms."""
    from lmc.cli.pass_log import PassLog, chosen_passes
    from lmc.compiler import compile_file

    if emit == "ast" and not emit_ir:
        _write_text(_ast(file), output)
        return OK
    log = PassLog(print_after, timed=time_passes, counted=stats)
    compiled = compile_file(file, level=int(level), target=target, roots=roots, passes=chosen_passes(passes),
                            reordered=reorder, observe=log.note)
    log.show()
    if told := (*compiled.warnings, *compiled.moved):
        click.echo(render_all(told, compiled.checked.sources), err=True)
    if emit_ir or emit == "ir":
        from lmc.ir.printer import print_module

        _write_text(print_module(compiled.module), output)
    elif emit in ("fsm", "dot"):
        from lmc.backend.automaton_text import draw_automata, format_automata

        _write_text((format_automata if emit == "fsm" else draw_automata)(compiled.program), output)
    elif emit == "plan":
        _write_text(_plans(compiled.program, {"model": model, "dry": dry}), output)
    elif emit == "program":
        from lmc.backend.program_text import format_program

        _write_text(format_program(compiled.program), output)
    else:
        from lmc.backend.serialize import write_program

        _write_artifact(write_program(compiled.program), Path(output) if output else Path(file).with_suffix(".lmpc"))
    return OK


def _plans(program: Program, given: dict[str, Any]) -> str:
    """The plan of each public function, with arguments that nobody knows yet."""
    from lmc.cli.plan import plan_function

    return "\n\n".join(plan_function(program, name, None, given).text() for name in program.entries)


def _ast(file: str) -> str:
    """The tree of the one file, errors in it reported."""
    from lmc.diagnostics import CompileError
    from lmc.parser.ast_text import format_tree
    from lmc.parser.parse import parse_file, read_source

    text = read_source(file)
    parsed = parse_file(file, text)
    if parsed.diagnostics:
        raise CompileError(parsed.diagnostics, {file: text})
    return format_tree(parsed.file)


def _write_text(text: str, output: str | None) -> None:
    text = text if text.endswith("\n") else text + "\n"
    if output is None or output == "-":
        sys.stdout.write(text)
    else:
        _write(text.encode("utf-8", "backslashreplace"), Path(output))


def _write_artifact(data: bytes, path: Path) -> None:
    _write(data, path)
    click.echo(f"wrote {path} ({len(data):,} bytes)", err=True)


def _write(data: bytes, path: Path) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        message = f"`{path}` cannot be written: {error.strerror}"
        raise UsageError(Diagnostic("E0853", message, None, help="say where with `-o`")) from None
