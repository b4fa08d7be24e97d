"""`--root DIR`: folders that imports may reach beside that of the root file.  Only who runs a program can add them."""

from __future__ import annotations

import click


def root_option() -> click.Option:
    """A fresh option; its value is a tuple of folders that exist."""
    return click.Option(["--root", "roots"], multiple=True, type=click.Path(exists=True, file_okay=False), metavar="DIR",
                        help="Another folder that imports may read from, beside FILE's own; may be repeated.")


def with_roots(command: click.Command) -> click.Command:
    """The command with the option, first."""
    command.params.insert(1, root_option())
    return command
