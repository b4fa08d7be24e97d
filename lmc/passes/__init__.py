"""The passes, in order.

`fold` comes first: it makes literals of what the others look at, and brings branches to the surface that are always taken.
`merge_text` then sees the runs of appends as they will be.  `parallelise` splits loops once their bodies are as small as they get.
`dead_code` comes last and takes away what the others left without a reader.
"""

from __future__ import annotations

from collections.abc import Callable

from lmc.ir.core import Module
from lmc.ir.verifier import verify
from lmc.passes.dead_code import dead_code
from lmc.passes.fold import fold
from lmc.passes.merge_text import merge_text
from lmc.passes.parallelise import parallelise

Pass = Callable[[Module], Module]

PIPELINE_O0: tuple[Pass, ...] = ()
PIPELINE: tuple[Pass, ...] = (fold, merge_text, parallelise, dead_code)

#: Every pass by its name, for `--passes a,b`.
PASSES: dict[str, Pass] = {p.__name__: p for p in PIPELINE}


def run_passes(module: Module, level: int = 1, names: tuple[str, ...] | None = None,
               observe: Callable[[str, Module, Module], None] | None = None) -> Module:
    """The module after the pipeline of `level` (0: none), or after the passes named; the verifier runs after each.

    `observe(name, before, after)` is called after each pass; `before is after` where nothing changed.
    Raises `KeyError` for an unknown name, `LmcError` (E0903) where a pass has broken the module.
    """
    chosen = [PASSES[name] for name in names] if names is not None else PIPELINE if level > 0 else PIPELINE_O0
    for one in chosen:
        before, module = module, one(module)
        if module is not before:
            verify(module)
        if observe is not None:
            observe(one.__name__, before, module)
    return module


__all__ = ["PASSES", "PIPELINE", "PIPELINE_O0", "Pass", "dead_code", "fold", "merge_text", "parallelise", "run_passes"]
