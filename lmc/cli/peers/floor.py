"""How long a workload takes at least on this machine: every prompt token that no cache can save once, and every generated token in the
fewest passes.

    W1    1,848 tokens of prompts at 512 rows a pass, then 15 passes of 32 rows     1.6 s
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lmc.cli.peers.small_run import Run
from lmc.cli.peers.small_workloads import Data, SmallWorkload

if TYPE_CHECKING:
    from lmc.runtime.roofline import Roofline

#: Rows of a pass that reads prompts.
_CHUNK = 512


def floor_seconds(roof: Roofline, workload: SmallWorkload, data: Data, fewest: int, run: Run) -> float:
    """fewest: prompt tokens that must be computed; run: says how many tokens were generated where the data does not"""
    seconds = fewest / _CHUNK * roof.pass_seconds(_CHUNK, 0) if workload.rows_before == 0 else 0.0
    for stage in workload.stages(data):
        lengths: Sequence[int] = run.lengths if stage.new is None else [stage.new] * stage.rows
        # The first token comes with the prompt's last pass, unless that was before the clock.
        for step in range(1 if workload.rows_before == 0 else 0, max(lengths)):
            rows = sum(length > step for length in lengths)
            seconds += roof.pass_seconds(rows, rows)
    return seconds


def roofline_lines(roof: Roofline) -> list[str]:
    """What was measured, for people."""
    rates = ", ".join(f"{rate / 1e9:,.0f} at {rows}" for rows, rate in sorted(roof.products.items()))
    per_pass = ", ".join(f"{1e3 * roof.pass_seconds(rows, min(rows, 32)):.1f} at {rows}" for rows in sorted(roof.products))
    return [f"machine: reads {roof.bandwidth / 1e9:.1f} GB/s with {roof.threads} threads; products in GFLOP/s by rows: {rates}",
            f"floor of a pass: {roof.weight_bytes / 1e6:,.0f} MB of weights once, {1e3 * roof.weight_bytes / roof.bandwidth:.1f} ms; "
            f"in ms by rows: {per_pass}"]
