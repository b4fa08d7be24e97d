"""The outcomes of a benchmark as a table on the terminal, and as a file with all numbers.

    workload     by     rows  seconds  rows/s  calls  output  computed  cached  hit rate  passes  MiB
    mmlu         lmc       4     0.10   38.31      4       4       625   1,168     0.651       2  257
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lmc.cli.workloads.contender import Outcome
from lmc.diagnostics import Diagnostic, UsageError

HEAD = (f"{'workload':23}{'by':6}{'rows':>6}{'seconds':>10}{'rows/s':>9}{'calls':>8}{'output':>9}{'computed':>11}{'cached':>11}"
        f"{'hit rate':>10}{'passes':>8}{'MiB':>9}")


def lines(outcome: Outcome) -> Iterator[str]:
    """A line of the table, and one for each thing that went wrong in it."""
    yield (f"{outcome.workload:23}{outcome.contender:6}{outcome.programs:6,}{outcome.seconds:10.2f}{outcome.programs_per_second:9.2f}"
           f"{outcome.calls:8,}{outcome.output:9,}{outcome.computed:11,}{outcome.cached:11,}{outcome.hit_rate:10.3f}"
           f"{outcome.passes:8,}{outcome.peak_bytes / 2**20:9,.0f}")
    if outcome.failed:
        yield f"    {outcome.failed} of {outcome.programs} rows failed"
        yield from (f"    {message}" for message in outcome.errors)


def write_results(path: Path, outcomes: Iterable[Outcome], setting: Mapping[str, Any]) -> None:
    """`setting`: what the numbers depend on, as JSON data.  Raises `UsageError` where the file cannot be written."""
    machine = {"system": platform.platform(), "processor": platform.machine(), "python": platform.python_version()}
    data = {"machine": machine, **setting, "outcomes": [asdict(outcome) | {"hit_rate": outcome.hit_rate} for outcome in outcomes]}
    try:
        path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(Diagnostic("E0853", f"`{path}` cannot be written: {error.strerror}", None,
                                    help="say where with `--out FILE.json`")) from None
