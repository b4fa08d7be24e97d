"""`lmc compile f.lmp`: an artifact that `lmc run` runs, or one of the forms on the way to it.

    lmc compile judge.lmp -o judge.lmpc
    lmc compile judge.lmp --emit-ir
    lmc compile judge.lmp --emit=ast|ir|program
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import click

from lmc.cli.exits import OK
from lmc.diagnostics import Diagnostic, Span, UsageError, render_all


@click.command("compile")
@click.argument("file", type=click.Path())
@click.option("--emit", type=click.Choice(["ast", "ir", "program"]), help="Print this form instead of writing an artifact.")
@click.option("--emit-ir", is_flag=True, help="The same as --emit=ir.")
@click.option("-O", "level", type=click.Choice(["0", "1"]), default="1", help="0: as written, 1: optimised. Default: 1.")
@click.option("-o", "--output", type=click.Path(dir_okay=False),
              help="Where it goes. Default: the artifact beside FILE, forms to standard output.")
def compile_command(file: str, emit: str | None, emit_ir: bool, level: str, output: str | None) -> int:
    """Compile a program to an artifact (.lmpc), or print one of its forms."""
    from lmc.compiler import compile_file

    if emit == "ast" and not emit_ir:
        _write_text(_ast(file), output)
        return OK
    compiled = compile_file(file, level=int(level))
    if compiled.warnings:
        click.echo(render_all(compiled.warnings, compiled.checked.sources), err=True)
    if emit_ir or emit == "ir":
        from lmc.ir.printer import print_module

        _write_text(print_module(compiled.module), output)
    elif emit == "program":
        from lmc.backend.program_text import format_program

        _write_text(format_program(compiled.program), output)
    else:
        from lmc.backend.serialize import write_program

        _write_artifact(write_program(compiled.program), Path(output) if output else Path(file).with_suffix(".lmpc"))
    return OK


def _ast(file: str) -> str:
    """The tree of the one file, errors in it reported."""
    from lmc.diagnostics import CompileError
    from lmc.parser.parse import parse_file, read_source

    text = read_source(file)
    parsed = parse_file(file, text)
    if parsed.diagnostics:
        raise CompileError(parsed.diagnostics, {file: text})
    return "\n".join(_tree(parsed.file, "", ""))


def _tree(value: Any, name: str, margin: str) -> Iterator[str]:
    """One line for each node and leaf, fields by name, spans left out."""
    label = f"{name}: " if name else ""
    if dataclasses.is_dataclass(value) and not isinstance(value, Span):
        yield f"{margin}{label}{type(value).__name__}"
        for field in dataclasses.fields(value):
            inner = getattr(value, field.name)
            if not isinstance(inner, Span):
                yield from _tree(inner, field.name, margin + "  ")
    elif isinstance(value, tuple) and value:
        yield f"{margin}{label}"
        for inner in value:
            yield from _tree(inner, "-", margin + "  ")
    else:
        yield f"{margin}{label}{value.value if isinstance(value, Enum) else repr(value)}"


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
