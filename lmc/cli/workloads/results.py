"""The outcomes of a benchmark as a table on the terminal, and as a file with all numbers.

    workload     by     rows  seconds  rows/s  calls  output  prompt  computed  hit rate   best  passes  MiB  speed
    mmlu         lmc       4     0.10   38.31      4       4   1,793       625     0.651  0.651       2  257   1.90
                 vllm      4     0.19   21.05      4       4   1,793       801     0.553  0.651          912   1.00
        vllm: 4 of 4 prompts and 4 of 4 results as lmc's, 4 tokens for 4
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lmc.cli.machine import machine_data
from lmc.cli.workloads.contender import Outcome
from lmc.cli.workloads.equal_work import equal_work
from lmc.diagnostics import Diagnostic, UsageError

HEAD = (f"{'workload':23}{'by':17}{'rows':>6}{'seconds':>10}{'rows/s':>9}{'calls':>8}{'output':>9}{'prompt':>11}{'computed':>11}"
        f"{'hit rate':>10}{'best':>7}{'passes':>8}{'MiB':>8}{'speed':>7}")


def lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The lines of the table for one workload, ours first, and one for each thing that went wrong or differs in it."""
    own, *others = outcomes
    fastest = max((outcome.programs_per_second for outcome in others), default=0.0)
    for outcome in outcomes:
        yield _line(outcome, fastest, first=outcome is own)
        if outcome.failed:
            yield f"    {outcome.failed} of {outcome.programs} rows failed"
            yield from (f"    {message}" for message in outcome.errors)
    yield from (f"    {equal_work(outcome, own).text(outcome.contender, own.contender)}" for outcome in others)


def _line(outcome: Outcome, fastest: float, *, first: bool) -> str:
    return (f"{outcome.workload if first else '':23}{outcome.contender:17}{outcome.programs:6,}{outcome.seconds:10.2f}"
            f"{outcome.programs_per_second:9.2f}{outcome.calls:8,}{outcome.output:9,}{outcome.prompt:11,}{known(outcome.computed, 11, ',')}"
            f"{known(outcome.hit_rate, 10, '.3f')}{outcome.best_hit_rate:7.3f}{known(outcome.passes, 8, ',')}"
            f"{known(None if outcome.peak_bytes is None else outcome.peak_bytes / 2**20, 8, ',.0f')}"
            f"{known(outcome.programs_per_second / fastest if fastest else None, 7, '.2f')}").rstrip()


def known(value: float | None, width: int, form: str) -> str:
    """A cell of a table; blank where nothing is known."""
    return " " * width if value is None else f"{value:{width}{form}}"


def results_data(outcomes: Iterable[Outcome], rounds: Iterable[Outcome], setting: Mapping[str, Any]) -> dict[str, Any]:
    """outcomes: the medians, ours of each workload first; rounds: all runs; setting: what the numbers depend on, as JSON data"""
    return {"machine": machine_data(), **setting, "outcomes": [_data(outcome) for outcome in outcomes],
            "rounds": [_data(outcome) for outcome in rounds]}


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Raises `UsageError` where the file cannot be written."""
    try:
        path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(Diagnostic("E0853", f"`{path}` cannot be written: {error.strerror}", None,
                                    help="say where with `--out FILE.json`")) from None


def _data(outcome: Outcome) -> dict[str, Any]:
    return asdict(outcome) | {"hit_rate": outcome.hit_rate, "best_hit_rate": outcome.best_hit_rate,
                              "programs_per_second": outcome.programs_per_second}
