"""`lmc fmt [FILES or folders]`: programs in the one style, rewritten in place.

    lmc fmt                 all `.lmp` files below this folder
    lmc fmt a.lmp --diff    show what would change, write nothing
    lmc fmt --check lib     exit 1 if a file would change, and list it
    lmc fmt - < a.lmp       from standard input to standard output

A file is replaced as a whole or not at all.  The style is `lmc.parser.format`'s.
"""

from __future__ import annotations

import difflib
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from lmc.cli.exits import OK, WRONG
from lmc.diagnostics import CompileError, Diagnostic, render_all

_SKIPPED = frozenset({"node_modules", "__pycache__", "venv"})
"""Folders that are never entered, beside those whose name begins with a dot."""


@click.command("fmt")
@click.argument("paths", metavar="[FILES or folders]", nargs=-1, type=click.Path())
@click.option("--check", is_flag=True, help="Write nothing; list the files that would change, and exit 1 if there are any.")
@click.option("--diff", is_flag=True, help="Write nothing; show what would change as a unified diff.")
@click.option("--quiet", "-q", is_flag=True, help="Diagnostics only.")
def fmt(paths: tuple[str, ...], check: bool, diff: bool, quiet: bool) -> int:
    """Format programs in place; `-` is standard input to standard output."""
    changed = failed = count = 0
    for path in _files(paths or (".",)):
        count += 1
        try:
            source = _read(path)
            if not check and not diff:
                _write(source)
        except CompileError as error:
            click.echo(render_all(error.diagnostics, error.sources), err=True)
            failed += 1
            continue
        changed += source.changed
        if diff:
            click.echo(_diff(source), nl=False)
        if check and source.changed:
            click.echo(source.name, err=diff)
    if not quiet and tuple(paths) != ("-",):
        click.echo(_summary(changed, failed, count, would=check or diff), err=True)
    return WRONG if failed or check and changed else OK


@dataclass(frozen=True, slots=True)
class _Source:
    """A file (None: standard input), what it holds, and what it should hold."""

    path: Path | None
    before: bytes
    after: bytes

    @property
    def changed(self) -> bool:
        return self.before != self.after

    @property
    def name(self) -> str:
        return "<stdin>" if self.path is None else str(self.path)


def _files(paths: tuple[str, ...]) -> Iterator[Path | None]:
    """The files to format, each once; None is standard input."""
    seen: set[Path | None] = set()
    for name in paths:
        path = Path(name)
        found = [None] if name == "-" else sorted(_below(path)) if path.is_dir() else [path]
        for file in found:
            if file not in seen:
                seen.add(file)
                yield file


def _below(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder, onerror=_unreadable):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _SKIPPED]
        for name in files:
            if name.endswith(".lmp"):
                yield Path(parent) / name


def _unreadable(error: OSError) -> None:
    raise CompileError(Diagnostic("E0001", f"cannot read the folder `{error.filename}`: {error.strerror}", None,
                                  help="check its permissions, or name the files to format"))


def _read(path: Path | None) -> _Source:
    """Read and format; raises `CompileError` with all syntax errors."""
    from lmc.parser.format import format_source
    from lmc.parser.read import decode_source, read_bytes

    name = "<stdin>" if path is None else str(path)
    data = sys.stdin.buffer.read() if path is None else read_bytes(path)
    formatted = format_source(name, decode_source(name, data))
    if formatted.text is None:
        raise CompileError(formatted.diagnostics, {name: formatted.source})
    return _Source(path, data, formatted.text.encode("utf-8"))


def _write(source: _Source) -> None:
    if source.path is None:
        click.echo(source.after, nl=False)
    elif source.changed:
        try:
            _replace(source.path.resolve(), source.after)
        except OSError as error:
            raise CompileError(Diagnostic("E0001", f"cannot write `{source.path}`: {error.strerror or error}", None,
                                          help="check the permissions of the file and its folder")) from error


def _replace(path: Path, data: bytes) -> None:
    """Write a neighbour and move it over `path`, so that no moment shows half a file."""
    handle, neighbour = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(neighbour, path.stat().st_mode & 0o7777)
        os.replace(neighbour, path)
    except BaseException:
        os.unlink(neighbour)
        raise


def _diff(source: _Source) -> str:
    before, after = (data.decode("utf-8").split("\n") for data in (source.before, source.after))
    ends = "\\ No newline at end of file"
    for lines in (before, after):
        # What follows the last line break is no line; where it is not empty, the last line has no break.
        if not lines[-1]:
            lines.pop()
        else:
            lines[-1] += f"\n{ends}"
    return "".join(f"{line}\n" for line in difflib.unified_diff(before, after, source.name, source.name, lineterm=""))


def _summary(changed: int, failed: int, count: int, *, would: bool) -> str:
    def files(number: int) -> str:
        return f"{number} file{'' if number == 1 else 's'}"

    parts = [f"{files(changed)} {'would change' if would else 'changed'}" if changed else "",
             f"{files(failed)} with errors left alone" if failed else "",
             f"{files(count - changed - failed)} as {'they' if count - changed - failed != 1 else 'it'} should be"
             if count > changed + failed or not count else ""]
    return ", ".join(part for part in parts if part)
