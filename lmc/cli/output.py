"""The end of a run: its result on standard output, its numbers on standard error."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lmc.diagnostics import Diagnostic, UsageError

if TYPE_CHECKING:
    from lmc.backend.program import FunctionCode
    from lmc.runtime.answers import Answers
    from lmc.runtime.report import Report


def write_result(value: Any, code: FunctionCode, output: str | None) -> None:
    """The result as indented JSON, to a file or to standard output."""
    from lmc.values import to_data

    text = json.dumps(to_data(value, code.result), ensure_ascii=False, indent=2) + "\n"
    if output is None or output == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        Path(output).write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        # The run was paid for: show it rather than lose it.
        sys.stdout.write(text)
        message = f"`{output}` cannot be written: {error.strerror}"
        raise UsageError(Diagnostic("E0853", message, None, help="the result is above")) from None


def write_report(report: Report, path: str) -> None:
    """All numbers of the run as JSON, to a file.  Raises `UsageError` where it cannot be written."""
    from lmc.runtime.report import report_data

    try:
        Path(path).write_text(json.dumps(report_data(report), indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        message = f"`{path}` cannot be written: {error.strerror}"
        raise UsageError(Diagnostic("E0853", message, None, help="say where with `--report FILE.json`")) from None


def say_time(session: Answers) -> None:
    """Where the engine's time went, on standard error; of a model over the network there is none."""
    from lmc.runtime.session import Session
    from lmc.runtime.time_shares import shares_line

    if isinstance(session, Session):
        stats = session.stats
        click.echo(f"{shares_line(stats.time)} · {stats.steps:,} passes, {stats.computed:,} tokens computed", err=True)


def say_report(report: Report) -> None:
    """Warnings and the summary, on standard error."""
    from lmc.runtime.report import summary_line

    for warning in report.warnings:
        click.echo(f"warning: {warning}", err=True)
    click.echo(summary_line(report), err=True)
