"""What the tests of sharing look at: a program's IR, and how many prompt tokens the engine computed for it on the stand-in model."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmc.backend.emit import emit
from lmc.compiler import Compiled, compile_file
from lmc.passes import run_passes
from tests.runtime.programs import dry_session, run


@dataclass(frozen=True)
class Shown:
    """value, error, printed: of the run; prompts: path, seed and ids of each, in order; computed: prompt tokens that the engine
    computed, of all prompts together; written: tokens generated."""

    value: Any
    error: str
    printed: tuple[str, ...]
    prompts: tuple[Any, ...]
    computed: int

    @property
    def same(self) -> tuple[Any, ...]:
        """What no pass may change."""
        return self.value, self.error, self.printed, self.prompts


def compiled(text: str, folder: Path, level: int = 2) -> Compiled:
    path = folder / "program.lmp"
    path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    return compile_file(str(path), level=level)


def shown(text: str, folder: Path, *args: Any, level: int = 2, name: str = "main", **options: Any) -> Shown:
    session = dry_session()
    ended = run(compiled(text, folder, level).program, session, name, *args, **options)
    prompts = sorted((r.origin.path, r.sampling.seed, r.prompt, r.heal) for r in session.requests)
    return Shown(ended.value, str(ended.error or ""), tuple(ended.printed), tuple(prompts), ended.report.computed)


def edges(prompts: Any) -> int:
    """The tokens of the tree of these prompts: what must be computed at least."""
    ordered, total, before = sorted(p for _, _, p, _ in prompts), 0, ()
    for ids in ordered:
        shared = next((i for i, (a, b) in enumerate(zip(before, ids)) if a != b), min(len(before), len(ids)))
        total += len(ids) - shared
        before = ids
    return total


def only(module, *names: str):
    """The program after these passes alone."""
    return emit(run_passes(module, names))
