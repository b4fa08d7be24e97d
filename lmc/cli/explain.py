"""`lmc explain [CODE]`: what a diagnostic's code means, with a program that gives it and one that is right.

    lmc explain E0201       the page lmc/explain/E0201.md
    lmc explain             all codes with their titles

A page's programs are fences: `lmp fails check` (or when else it fails), `lmp fixed`, and `lmp lib.lmp` for a file beside both.
"""

from __future__ import annotations

from importlib.resources import files

import click

from lmc.cli.exits import OK
from lmc.codes import CODES
from lmc.diagnostics import Diagnostic, UsageError


@click.command("explain")
@click.argument("code", required=False)
def explain(code: str | None) -> int:
    """Explain the CODE of a diagnostic; without one, list them all."""
    click.echo("\n".join(f"{known:5}  {title}" for known, title in CODES.items()) if code is None else page(code.upper()))
    return OK


def page(code: str) -> str:
    """The page of `code`; raises `UsageError` where there is no such code."""
    if code not in CODES:
        from difflib import get_close_matches

        near = get_close_matches(code, CODES, n=1, cutoff=0.5)
        help = "`lmc explain` lists all codes" + (f"; did you mean `{near[0]}`?" if near else "")
        raise UsageError(Diagnostic("E0855", f"there is no code `{code}`", None, help=help))
    return files("lmc").joinpath("explain", f"{code}.md").read_text(encoding="utf-8").rstrip()
