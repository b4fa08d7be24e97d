"""`lmc test f.lmp`: run the `test` blocks of a program.

    ok    the votes give one of the answers   (12 calls, 3.1 s)
    FAIL  two plus two
          error[E0832]: assertion failed …

Tests run one after the other, so that what they print stands together.  Exit 4 if one fails.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lmc.cli.exits import OK, TEST_FAILED
from lmc.cli.opening import model_options, opened_machine, run_options
from lmc.cli.roots import root_option
from lmc.cli.signals import run_until_interrupted
from lmc.diagnostics import RunError

if TYPE_CHECKING:
    from lmc.backend.program import Program
    from lmc.runtime.machine import Machine


@click.command("test", params=[click.Argument(["file"], type=click.Path()), root_option(), *model_options()])
@click.option("--only", metavar="TEXT", help="Only the tests with this in their name.")
def test(file: str, only: str | None, **given: Any) -> int:
    """Run the tests of a program; exit 4 if one fails."""
    from lmc.embed import load_program

    program = load_program(Path(file), level=int(given["level"]), roots=given["roots"])
    names = [n for n in program.tests if only is None or only in n.removeprefix("test:")]
    if not names:
        click.echo("no tests", err=True)
        return OK
    return run_until_interrupted(_run_all(program, names, given))


async def _run_all(program: Program, names: list[str], given: dict[str, Any]) -> int:
    failed = 0
    async with opened_machine(program, given) as machine:
        for name in names:
            failed += not await _run_one(machine, name, given)
    click.echo(f"{len(names) - failed} passed, {failed} failed")
    return TEST_FAILED if failed else OK


async def _run_one(machine: Machine, name: str, given: dict[str, Any]) -> bool:
    from lmc.cli.terminal import Terminal
    from lmc.runtime.instance import Sinks

    terminal = Terminal(sys.stderr)
    run = machine.start(run_options(given), Sinks(terminal.print, terminal.stream))
    title = name.removeprefix("test:")
    try:
        await run.call(name, ())
    except RunError as error:
        terminal.end_line()
        click.echo(f"FAIL  {title}   (seed {run.report.seed})")
        click.echo("\n".join("      " + line if line else "" for line in str(error).splitlines()))
        return False
    terminal.end_line()
    click.echo(f"ok    {title}   ({run.report.calls} calls, {run.report.seconds:.1f} s)")
    return True
