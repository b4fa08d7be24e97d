"""What `lmc compile` tells about the passes while they run, on standard error.

    ; after fold (changed)
    module "judge.lmp" { …

    pass            ms    ops
    lower         13.1     42
    fold           0.9     40
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from lmc.diagnostics import Diagnostic, UsageError

if TYPE_CHECKING:
    from lmc.ir.core import Module


def chosen_passes(text: str | None) -> tuple[str, ...] | None:
    """The names in `--passes a,b`, checked.  Raises `UsageError`."""
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        _check_pass(name, ())
    return names


class PassLog:
    """Follows the passes of one compilation.  `print_after`: a pass, `all`, `changed` or None."""

    __slots__ = ("_print_after", "_timed", "_counted", "_last", "_rows")

    def __init__(self, print_after: str | None, *, timed: bool, counted: bool):
        if print_after is not None:
            _check_pass(print_after, ("lower", "all", "changed"))
        self._print_after, self._timed, self._counted = print_after, timed, counted
        self._last = time.perf_counter()
        self._rows: list[tuple[str, float, int]] = []

    def note(self, name: str, before: Module, after: Module) -> None:
        """A pass has run (`lower` stands for everything up to the first IR)."""
        seconds = time.perf_counter() - self._last
        changed = name == "lower" or after is not before
        if self._print_after in ("all", name) or self._print_after == "changed" and changed:
            from lmc.ir.printer import print_module

            click.echo(f"; after {name} ({'changed' if changed else 'nothing changed'})\n{print_module(after)}", err=True)
        self._rows.append((name, seconds, _ops(after)))
        # What this took is nobody's time.
        self._last = time.perf_counter()

    def show(self) -> None:
        """The table, where it was asked for; and that nothing was printed, where a pass was asked for that did not run."""
        if self._print_after not in (None, "all", "changed", *(name for name, _, _ in self._rows)):
            click.echo(f"; {self._print_after} did not run: it is not among the passes of this level and target", err=True)
        if not (self._timed or self._counted):
            return
        click.echo(f"{'pass':<20}" + self._timed * f"{'ms':>9}" + self._counted * f"{'ops':>8}", err=True)
        for name, seconds, ops in self._rows:
            click.echo(f"{name:<20}" + self._timed * f"{seconds * 1000:>9.1f}" + self._counted * f"{ops:>8,}", err=True)


def _check_pass(name: str, others: tuple[str, ...]) -> None:
    from lmc.passes import PASSES

    if name not in PASSES and name not in others:
        listed = ", ".join((*PASSES, *others))
        raise UsageError(Diagnostic("E0854", f"there is no pass `{name}`", None, help=f"one of: {listed}"))


def _ops(module: Module) -> int:
    from lmc.ir.core import walk_ops

    return sum(1 for function in module.functions for _ in walk_ops(function.body))
