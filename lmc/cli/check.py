"""`lmc check f.lmp …`: everything that is wrong with some programs, at once, with no model."""

from __future__ import annotations

import click

from lmc.cli.exits import OK, WRONG
from lmc.cli.roots import with_roots
from lmc.diagnostics import CompileError, Diagnostic, Severity, render_all


@with_roots
@click.command("check")
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("--format", "form", type=click.Choice(["text", "json", "sarif"]), default="text", show_default=True,
              help="For people on standard error; as JSON lines or SARIF 2.1.0 on standard output.")
@click.option("--quiet", "-q", is_flag=True, help="Diagnostics only, no count.")
def check(files: tuple[str, ...], roots: tuple[str, ...], form: str, quiet: bool) -> int:
    """Check programs; exit 1 if one has errors."""
    found: dict[tuple[object, ...], Diagnostic] = {}
    sources: dict[str, str] = {}
    for file in files:
        diagnostics, texts = _check_file(file, roots)
        sources.update(texts)
        # A file that two programs import is reported once.
        found.update({(d.code, d.span, d.message): d for d in diagnostics})
    _show(list(found.values()), sources, form)
    errors = sum(d.severity is Severity.ERROR for d in found.values())
    if form == "text" and not quiet:
        click.echo(("\n" if found else "") + _count(errors, len(found) - errors, len(files)), err=True)
    return WRONG if errors else OK


def _show(diagnostics: list[Diagnostic], sources: dict[str, str], form: str) -> None:
    if form == "text":
        if diagnostics:
            click.echo(render_all(diagnostics, sources), err=True)
        return
    from lmc.diagnostic_formats import as_json_lines, as_sarif

    if form == "json":
        click.echo(as_json_lines(diagnostics), nl=False)
    else:
        from importlib.metadata import version

        click.echo(as_sarif(diagnostics, version("lmc")), nl=False)


def _check_file(file: str, roots: tuple[str, ...]) -> tuple[tuple[Diagnostic, ...], dict[str, str]]:
    # Not through `lmc.compiler`: what lowers and emits takes longer to import than a file takes to check.
    from lmc.parser.check import check as check_program

    try:
        checked = check_program(file, roots=roots)
    except CompileError as error:
        return error.diagnostics, error.sources
    return checked.diagnostics, checked.sources


def _count(errors: int, warnings: int, files: int) -> str:
    def number(count: int, what: str) -> str:
        return f"{count} {what}{'' if count == 1 else 's'}"

    return f"{number(errors, 'error')}, {number(warnings, 'warning')} in {number(files, 'file')}"
