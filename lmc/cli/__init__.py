"""The command `lmc`."""

from lmc.cli.main import main

__all__ = ["main"]
