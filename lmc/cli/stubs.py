"""`lmc stubs f.lmp`: the program's types as a Python stub, for editors and `mypy`.

    lmc stubs judge.lmp -o judge_lmp.pyi
    m = cast("judge_lmp.Module", lmc.load("judge.lmp"))      # `import judge_lmp` under TYPE_CHECKING
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from lmc.cli.exits import OK
from lmc.cli.roots import with_roots
from lmc.diagnostics import Diagnostic, UsageError


@with_roots
@click.command("stubs")
@click.argument("file", type=click.Path())
@click.option("-o", "--output", type=click.Path(dir_okay=False), metavar="OUT.pyi", help="Default: standard output.")
def stubs(file: str, roots: tuple[str, ...], output: str | None) -> int:
    """Write the Python types of a program, for type checkers."""
    from lmc.backend.python_stub import format_stub
    from lmc.embed import load_program

    text = format_stub(load_program(Path(file), roots=roots))
    if output is None or output == "-":
        sys.stdout.write(text)
        return OK
    try:
        Path(output).write_text(text, encoding="utf-8")
    except OSError as error:
        message = f"`{output}` cannot be written: {error.strerror}"
        raise UsageError(Diagnostic("E0853", message, None, help="say where with `-o`")) from None
    click.echo(f"wrote {output}", err=True)
    return OK
