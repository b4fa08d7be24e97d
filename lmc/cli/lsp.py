"""`lmc lsp`: the language server, over standard input and output.

Editors start it; `docs/editors.md` says how each is told to.
"""

from __future__ import annotations

import importlib.util
import os
import sys

import click


@click.command("lsp")
@click.option("--stdio", is_flag=True, help="Accepted because editors pass it; there is no other way to talk.")
def lsp(stdio: bool) -> int:
    """Serve an editor: diagnostics, hover, definitions, completion, formatting."""
    if importlib.util.find_spec("pygls") is None:
        raise click.UsageError("`lmc lsp` needs the package `pygls`: pip install 'lmc[lsp]'")
    from lmc.lsp.server import serve

    # A copy, because the server closes what it writes to.
    return serve(sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb"))
