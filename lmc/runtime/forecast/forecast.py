"""What a run of a program will ask of a model, found out before anything runs: `lmc plan`.

    forecast = foresee(program, Foreseer(tokenizer, template), "judge", args, RunOptions(), target)
    forecast.calls[0].tokens             known tokens of its first prompt
    print(forecast)                      what `lmc plan` prints

No model is asked, no extern called and no line read; all that these would give is not known, and what hangs on it is a range.
"""

from __future__ import annotations

from typing import Any

from lmc.backend.program import Program
from lmc.diagnostics import LmcError
from lmc.runtime.binding import model_faults
from lmc.runtime.forecast.counts import Counts, Target
from lmc.runtime.forecast.opcodes import WALK_OPCODES
from lmc.runtime.forecast.places import Places
from lmc.runtime.forecast.plan_data import plan_data
from lmc.runtime.forecast.plan_text import plan_text
from lmc.runtime.forecast.prompts import Foreseer
from lmc.runtime.forecast.tree import Group
from lmc.runtime.forecast.values import Cell, Unknown
from lmc.runtime.forecast.walk import Walk
from lmc.runtime.instance import RunOptions


class Forecast(Counts):
    """The calls of a run with their counts, and how they are shown."""

    def text(self, *, calls: bool = False) -> str:
        """For people; `calls`: every call on its own line."""
        return plan_text(self, summarised=not calls)

    def data(self, *, calls: bool = False) -> dict[str, Any]:
        """As JSON data (docs/plan.md)."""
        return plan_data(self, summarised=not calls)

    def __str__(self) -> str:
        return self.text()


def foresee(program: Program, foreseer: Foreseer, name: str, args: tuple[Any, ...] | None, options: RunOptions,
            target: Target) -> Forecast:
    """The forecast of the function `name`; without `args` its parameters are not known.

    Raises `LmcError` with the places of what the model does not have.
    """
    faults = model_faults(program, target.name, has_template=foreseer.has_template)
    if faults:
        raise LmcError(faults, program.sources)
    code = program.functions[name]
    values = args if args is not None else tuple(Unknown(p.type, code.span) for p in code.params)
    root = Group("def", code.span, code.name)
    named = {t.name: t for t in program.types}
    walk = Walk(program, foreseer, options, WALK_OPCODES, Places(program.sources), named, root)
    error = walk.start(name, tuple(Cell(value, varying=True) for value in values))
    if error is not None:
        error.sources = {**program.sources, **error.sources}
    return Forecast(program, code, target, root, error, walk.note)
