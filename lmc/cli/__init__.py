"""The command `lmc`."""

from lmc.cli.entry import main

__all__ = ["main"]
