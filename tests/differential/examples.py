"""The example programs as cases, on the stand-in model and on a real one, in all ways.

    example_faults("judge", ALL)                       [] or ["-O2 without fold: value: …"]
    example_faults("judge", ALL, real_session_of(folder))
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lmc.compiler import check_file, lower_program
from tests.differential.runs import TEMPLATE, TOKENS, Case, WatchedSession
from tests.differential.ways import Way, module_faults

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
ESSAY = (EXAMPLES / "essay.txt").read_text(encoding="utf-8")
#: Of the context, and of the small pool: each example's longest prompt fits.
POSITIONS = 2048


def search(query: str) -> str:
    return f"Nothing is known about {query}."


def calc(expr: str) -> float:
    return float(len(expr))


#: Small calls of each example.
CASES: dict[str, tuple[Case, ...]] = {
    "classify": (Case("classify", ("Loved it, five stars!",)), Case("classify_many", (("Fine.", "Broken on arrival.", "Great!"),))),
    "judge": (Case("judge", (ESSAY[:600], ("clarity", "evidence"))),),
    "react": (Case("react", ("What is 12 * 7?", 2), {"search": search, "calc": calc}),),
    "character": (Case("character", ("Hermione Granger",)),),
    "chat": (Case("main", (), lines=("What is a prime?", "Give one.", "/quit")),),
    "vote": (Case("solve", ("Tom has 3 apples and buys 4 more. How many has he?", 3)),),
    "tree": (Case("tree", ("Use 4, 6, 8 and 8 to make 24.", 2, 1)),),
}


def stand_in(way: Way) -> WatchedSession:
    """A session of the stand-in model for a way."""
    from lmc.runtime.dry import DryModel

    return _session(DryModel(TOKENS, max_positions=POSITIONS), TOKENS, TEMPLATE, way)


async def example_faults(name: str, ways: tuple[Way, ...], session_of: Callable[[Way], WatchedSession] = stand_in) -> list[str]:
    """In which ways an example shows something else than as written."""
    module = lower_program(check_file(str(EXAMPLES / f"{name}.lmp")))
    found = []
    for case in CASES[name]:
        found += await module_faults(module, ways, strict=True, case=case, session_of=session_of)
    return found


def real_session_of(folder: Path) -> Callable[[Way], WatchedSession]:
    """Sessions of the model in `folder`, in deterministic float32."""
    from lmc.embed import cache_folder
    from lmc.runtime.model.load import load_model
    from lmc.runtime.template import load_template
    from lmc.runtime.tokenizer import load_tokenizer

    tokenizer = load_tokenizer(folder)
    template = load_template(folder, tokenizer)
    # A model has one pool: each session reads its own.
    return lambda way: _session(load_model(folder, deterministic=True, cache=cache_folder()), tokenizer, template, way)


def _session(model: Any, tokenizer: Any, template: Any, way: Way) -> WatchedSession:
    return WatchedSession(model, tokenizer, template, slots=POSITIONS if way.tight else 4 * POSITIONS, cache=way.cache)
