"""`lmc run --batch in.jsonl -o out.jsonl`: one line in, one line out, in order.

    {"review": "Loved it."}      ->   "positive"
    {"review": 3}                ->   {"error": {"kind": "usage", "message": "…", "where": ""}, "row": 2}

Arguments on the command line hold for every row that does not give its own.  Rows count from 1, as lines do.  The exit code is 3
if a row failed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TextIO

import click

from lmc.cli.exits import FAILED, INTERNAL, OK
from lmc.cli.opening import opened_machine, run_options
from lmc.cli.output import say_report
from lmc.cli.terminal import Terminal
from lmc.diagnostics import Diagnostic, RunError, UsageError
from lmc.runtime.instance import Sinks
from lmc.runtime.report import Report
from lmc.values import to_json

if TYPE_CHECKING:
    from lmc.backend.program import FunctionCode, Program
    from lmc.runtime.rows import RowResult


async def run_batch(program: Program, code: FunctionCode, shared: dict[str, Any], given: dict[str, Any]) -> int:
    """Run all rows; gives the exit code."""
    options = run_options(given)
    terminal = Terminal(sys.stderr)
    sinks = Sinks(terminal.print, terminal.stream)
    lines = _read_lines(given["batch"])
    with _output(given["output"]) as out, _progress(len(lines), given["quiet"]) as advance:
        async with opened_machine(program, given) as machine:
            from lmc.runtime.rows import run_rows

            total, failed, broken, start = Report(), 0, 0, time.monotonic()
            async for row in run_rows(machine, code, _rows(lines, shared), options, sinks, on_end=advance):
                out.write(_line(row, lines[row.index][0], code) + "\n")
                out.flush()
                total = total.beside(row.report)
                failed += row.error is not None
                broken += isinstance(row.error, RunError) and row.error.kind == "internal"
    if not given["quiet"]:
        if failed:
            click.echo(f"{failed} of {len(lines)} rows failed", err=True)
        say_report(replace(total, seconds=time.monotonic() - start))
    return INTERNAL if broken else FAILED if failed else OK


def _read_lines(path: str) -> list[tuple[int, str]]:
    """The lines that are not blank, with their numbers."""
    try:
        text = sys.stdin.read() if path == "-" else open(path, encoding="utf-8-sig").read()
    except UnicodeDecodeError as error:
        raise UsageError(Diagnostic("E0853", f"`{path}` is no UTF-8 text: {error.reason} at byte {error.start}", None)) from None
    except OSError as error:
        raise UsageError(Diagnostic("E0853", f"`{path}` cannot be read: {error.strerror}", None)) from None
    # Only "\n" ends a line of JSON: others may stand in its strings.
    return [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]


def _rows(lines: list[tuple[int, str]], shared: dict[str, Any]) -> Iterator[Any]:
    """Arguments by name, or the error of a line that holds none."""
    for _, line in lines:
        try:
            row = json.loads(line)
        except ValueError as error:
            yield UsageError(Diagnostic("E0851", f"the line is no JSON: {error}", None))
            continue
        if isinstance(row, dict):
            yield {**shared, **row}
        else:
            yield UsageError(Diagnostic("E0851", "the line is no JSON object of arguments", None, help='such as {"review": "…"}'))


def _line(row: RowResult, number: int, code: FunctionCode) -> str:
    if row.error is None:
        return to_json(row.value, code.result)
    first = row.error.diagnostics[0]
    kind = row.error.kind if isinstance(row.error, RunError) else "usage"
    messages = "; ".join(d.message for d in row.error.diagnostics)
    error = {"kind": kind, "code": first.code, "message": messages, "where": str(first.span or "")}
    if isinstance(row.error, RunError) and row.error.raw is not None:
        error["raw"] = row.error.raw
    return json.dumps({"error": error, "row": number}, ensure_ascii=False)


@contextmanager
def _output(path: str | None) -> Iterator[TextIO]:
    if path is None or path == "-":
        yield sys.stdout
        return
    try:
        out = open(path, "w", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise UsageError(Diagnostic("E0853", f"`{path}` cannot be written: {error.strerror}", None)) from None
    with out:
        yield out


@contextmanager
def _progress(rows: int, quiet: bool) -> Iterator[Any]:
    """A bar on a terminal; elsewhere nothing."""
    if quiet or not sys.stderr.isatty():
        yield lambda: None
        return
    with click.progressbar(length=rows, label="rows", file=sys.stderr, show_pos=True) as bar:
        yield lambda: bar.update(1)
