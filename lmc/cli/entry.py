"""`lmc`: its commands, and what becomes of everything that goes wrong.

    0 ok · 1 diagnostics · 2 usage · 3 run-time failure · 4 failed test · 70 internal · 130 interrupted

A user never sees a traceback, unless `LMC_DEBUG` is set.  Modules of commands import what is heavy when they run, so that `lmc
--help` and `lmc check` start fast.
"""

from __future__ import annotations

import os
import sys
import traceback

import click

from lmc.cli.bench import bench
from lmc.cli.check import check
from lmc.cli.compile import compile_command
from lmc.cli.doctor import doctor
from lmc.cli.explain import explain
from lmc.cli.exits import FAILED, INTERNAL, INTERRUPTED, OK, PIPE, USAGE, WRONG
from lmc.cli.fmt import fmt
from lmc.cli.lsp import lsp
from lmc.cli.models import models
from lmc.cli.plan import plan
from lmc.cli.render import render
from lmc.cli.run import run
from lmc.cli.schema import schema
from lmc.cli.serve import serve
from lmc.cli.signals import end_at_once, watch_interrupts
from lmc.cli.stubs import stubs
from lmc.cli.test import test
from lmc.diagnostics import LmcError, RunError, UsageError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="lmc")
def lmc() -> None:
    """Compile and run language-model programs (.lmp)."""


for _command in (run, check, explain, compile_command, plan, render, test, fmt, stubs, schema, serve, lsp, models, doctor, bench):
    lmc.add_command(_command)


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit."""
    watch_interrupts()
    for stream in (sys.stdout, sys.stderr):
        # Texts hold any character, whatever the terminal's encoding; what it cannot show is escaped.
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    code = run_command(sys.argv[1:] if args is None else args)
    if code in (INTERRUPTED, PIPE):
        end_at_once(code)
    sys.exit(code)


def run_command(args: list[str]) -> int:
    """Run the command line in this process; gives the exit code, whatever goes wrong."""
    try:
        code = lmc.main(args, prog_name="lmc", standalone_mode=False)
        sys.stdout.flush()
        return code or OK
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return USAGE
    except LmcError as error:
        click.echo(str(error), err=True)
        return USAGE if isinstance(error, UsageError) else FAILED if isinstance(error, RunError) else WRONG
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        return PIPE
    except Exception as error:
        return _internal(error)


def _internal(error: Exception) -> int:
    if os.environ.get("LMC_DEBUG"):
        traceback.print_exc()
    else:
        message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        click.echo(f"lmc is broken: {message[:500]}\nSet LMC_DEBUG=1 to see where; please report it.", err=True)
    return INTERNAL
