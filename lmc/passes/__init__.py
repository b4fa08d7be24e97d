"""The passes, in order: LOCAL for our own engine, API for models behind an interface over the network.

A pass is one file and one function of the same name, from a module to a module; its docstring shows what it does.  To add one,
import it and write one line in the pipelines where it belongs, with the reason where its place matters.  What the levels mean
is told in `lmc/levels.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lmc.ir.core import Module
from lmc.ir.verifier import verify
from lmc.passes.dead_code import dead_code
from lmc.passes.fold import fold
from lmc.passes.fold_constraints import fold_constraints
from lmc.passes.fork_hints import fork_hints
from lmc.passes.hoist_prefix import hoist_prefix
from lmc.passes.inline_parts import inline_parts
from lmc.passes.lifetimes import lifetimes
from lmc.passes.merge_text import merge_text
from lmc.passes.number_contexts import number_contexts
from lmc.passes.parallelise import parallelise
from lmc.passes.reorder import reorder
from lmc.passes.schedule import schedule
from lmc.passes.split_prefix import split_prefix
from lmc.passes.speculate import speculate

Pass = Callable[[Module], Module]
#: Called after each pass with its name and the module before and after; they are one object where nothing changed.
Observe = Callable[[str, Module, Module], None]


@dataclass(frozen=True, slots=True)
class Step:
    """A pass, and the lowest level at which it runs."""

    run: Pass
    level: int

    @property
    def name(self) -> str:
        return self.run.__name__


LOCAL: tuple[Step, ...] = (
    # First: what stands in two functions is seen together by all that come after.
    Step(inline_parts, 2),
    # Makes literals of what the others look at, and brings branches to the surface that are always taken.
    Step(fold, 1),
    # What was not inlined shows at least how it begins.
    Step(split_prefix, 2),
    # Knows most once literals are put together and short callees stand in the loops that call them.
    Step(hoist_prefix, 2),
    # What came out of two loops may be alike; before `merge_text`, which keeps contexts with several readers.
    Step(number_contexts, 2),
    # Sees the runs of appends as they will be.
    Step(merge_text, 1),
    # Bodies of loops are as small as they get.
    Step(parallelise, 1),
    # Takes away what the others have left without a reader.
    Step(dead_code, 1),
    # Behind `dead_code`: no automaton is built for what is never asked, and turns are as short as they get.
    Step(fold_constraints, 1),
    # It counts what is left, as it will run.
    Step(schedule, 2),
    # Behind `schedule`, which need not move hints; a hint stands before the first reader as it will run.
    Step(fork_hints, 2),
    # Last: uses are counted in the order in which they come, and what is prefilled lives until its last reader.
    Step(lifetimes, 2),
)

# Over the network there is no cache to fill and none to keep: the passes that speak to the engine are left out.
API: tuple[Step, ...] = (
    Step(inline_parts, 2),
    Step(fold, 1),
    Step(merge_text, 1),
    Step(parallelise, 1),
    Step(dead_code, 1),
    # In the place of `fold_constraints`: automata are built all the same, and a request over the network has one piece.
    Step(speculate, 1),
)

PIPELINES: Mapping[str, tuple[Step, ...]] = {"local": LOCAL, "api": API}

#: Passes that change prompts, and so run only where the user asks for them.
ON_REQUEST: tuple[Pass, ...] = (reorder,)

#: Every pass by its name, for `--passes a,b`.
PASSES: dict[str, Pass] = {step.name: step.run for step in (*LOCAL, *API)} | {p.__name__: p for p in ON_REQUEST}


def passes_of(level: int, target: str = "local", *, reordered: bool = False) -> tuple[str, ...]:
    """The names of the passes that run at a level, in order.  `target` is a key of `PIPELINES`; with `reordered` texts are put in
    another order before anything is made of their order."""
    names = tuple(step.name for step in PIPELINES[target] if step.level <= level)
    if not reordered:
        return names
    place = names.index("fold") + 1 if "fold" in names else 0
    return (*names[:place], "merge_text", "reorder", *names[place:])


def run_passes(module: Module, names: tuple[str, ...], observe: Observe | None = None) -> Module:
    """The module after these passes; the verifier runs after each.

    Raises `KeyError` for an unknown name, `LmcError` (E0903) where a pass has broken the module.
    """
    for name in names:
        before, module = module, PASSES[name](module)
        if module is not before:
            verify(module)
        if observe is not None:
            observe(name, before, module)
    return module
