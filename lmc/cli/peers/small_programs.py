"""The small workloads as `.lmp` programs of `examples/peers`, over the texts that the token ids spell.

    W1    few_shot.lmp:few_shot    {"prefix": "…", "question": "…", "tokens": 16} for each question

A program's prompts may be a few tokens longer or shorter than the ids: it tokenises its text as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmc.cli.peers.small_run import Run
from lmc.cli.peers.small_workloads import Data, SmallWorkload

Text = Callable[[list[int]], str]
Rows = Callable[[Data, Text], Iterator[dict[str, Any]]]


def _few_shot(data: Data, text: Text) -> Iterator[dict[str, Any]]:
    for suffix in data["suffix"]:
        yield {"prefix": text(data["prefix"]), "question": text(suffix), "tokens": data["new"]}


def _tree(data: Data, text: Text) -> Iterator[dict[str, Any]]:
    assert data["depth"] == 3, "the program is three levels deep"
    for root in data["roots"]:
        yield {"root": text(root), "branches": [text(branch) for branch in data["branch"]], "tokens": data["new"]}


def _samples(data: Data, text: Text) -> Iterator[dict[str, Any]]:
    for prompt in data["prompts"]:
        yield {"question": text(prompt), "count": data["n"], "tokens": data["new"]}


def _extract(data: Data, text: Text) -> Iterator[dict[str, Any]]:
    for prompt in data["prompts"]:
        yield {"document": text(prompt)}


def _chat(data: Data, text: Text) -> Iterator[dict[str, Any]]:
    for turns in data["turns"]:
        yield {"turns": [text(turn) for turn in turns], "tokens": data["new"]}


def _judge(data: Data, text: Text) -> Iterator[dict[str, Any]]:
    dimensions = [{"question": text(dim), "heading": text(heading)} for dim, heading in zip(data["dims"], data["merge_sep"])]
    for essay in data["essays"]:
        yield {"essay": text(essay), "dimensions": dimensions, "tail": text(data["merge_tail"]), "tokens": data["new"],
               "merge_tokens": data["merge_new"]}


#: Program and function have one name.
PROGRAMS: dict[str, tuple[str, Rows]] = {
    "W1": ("few_shot", _few_shot), "W2": ("tree", _tree), "W3": ("samples", _samples), "W4": ("extract", _extract),
    "W5": ("chat", _chat), "W6": ("judge", _judge),
}


@dataclass(slots=True)
class OwnPrograms:
    """A contestant.  programs: their folder; settings: arguments of `open_session`"""

    programs: Path
    settings: Mapping[str, Any]
    name: str = "lmc programs"
    sequential: bool = False

    @property
    def precision(self) -> str:
        return self.settings["dtype"]

    def cannot(self, workload: SmallWorkload) -> str | None:
        return None if workload.name in PROGRAMS else "there is no program of it"

    def run(self, workload: SmallWorkload, data: Mapping[str, Any], *, parallel: bool) -> Run:
        return run_as_program(self.programs, self.settings, workload.name, data)

    def pause(self) -> None:
        """Its engine ends with each run."""

    def resume(self) -> None:
        """See `pause`."""


def run_as_program(programs: Path, settings: Mapping[str, Any], name: str, data: Data) -> Run:
    """Raises `CompileError` where a program has faults, and `UsageError` where the model cannot be opened."""
    from lmc.cli.workloads.data import Data as Folder
    from lmc.cli.workloads.own_run import Lmc
    from lmc.cli.workloads.table import Workload
    from lmc.runtime.open_tokenizer import open_tokenizer

    tokenizer, _ = open_tokenizer(settings["model"], settings["cache"], dry=settings["dry"])
    program, rows = PROGRAMS[name]
    made = list(rows(data, lambda ids: tokenizer.decode_bytes(ids).decode()))
    workload = Workload(name, program, program, lambda _: iter(made), len(made))
    outcome = Lmc(programs, dict(settings)).run(workload, made, Folder(programs))
    if outcome.failed:
        raise AssertionError(f"{outcome.failed} rows of {name} failed: {outcome.errors}")
    return Run(outcome.seconds, outcome.calls, outcome.prompt, outcome.output, outcome.computed, outcome.passes, outcome.peak_bytes,
               tuple(sorted(_texts(outcome.values))))


def _texts(values: tuple[str | None, ...]) -> Iterator[str]:
    """What the programs give as JSON: a text, or a list of texts."""
    import json

    for value in values:
        found = json.loads(value or "[]")
        yield from found if isinstance(found, list) else (found,)
