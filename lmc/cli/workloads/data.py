"""The folder that a benchmark's rows come from: files of JSON lines, by name.

    Data(Path("examples/workloads/sample")).read("mmlu.jsonl")      [{"subject": "general_science", "split": "shot", …}, …]

The sample in the repository and the shared test data have files of the same names with the same fields, so nothing else knows which
of the two it reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmc.cli.bench_json import read_rows


@dataclass(frozen=True, slots=True)
class Data:
    """A folder of benchmark data."""

    folder: Path

    def read(self, name: str, **fields: str) -> list[dict[str, Any]]:
        """The rows of a file that have these values in these fields.  Raises `UsageError` where the file is missing."""
        return [row for row in read_rows(self.folder, name) if all(row[field] == value for field, value in fields.items())]
