"""How many tokens of keys and values are needed at once: the peak over the times at which calls run side by side.

    level 0   think × 3      one prompt of 210 tokens, three ends of 14, three answers of up to 80     492
    level 1   note × 3       …
    level 2   verdict

Calls of one level have equally many calls before them, one after another; if all take equally long, they run at the same time.
What generations write is counted with the most that they may write.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from lmc.runtime.forecast.prompts import Unit, Written
from lmc.runtime.forecast.sharing import PromptTree
from lmc.runtime.forecast.tree import Call


@dataclass(frozen=True, slots=True)
class Peak:
    """tokens: at most, of what is bounded; open: whether something is in it that nothing bounds, such as an argument that is not
    given or a generation without a bound; at_once: calls that run side by side, at most"""

    tokens: int
    open: bool
    at_once: int


def memory_peak(calls: Iterable[Call]) -> Peak:
    """The peak of these calls."""
    levels: dict[int, list[Call]] = defaultdict(list)
    for call in calls:
        levels[call.level].append(call)
    peaks = [_together(side_by_side) for side_by_side in levels.values()]
    return Peak(max((p.tokens for p in peaks), default=0), any(p.open for p in peaks), max((p.at_once for p in peaks), default=0))


def _together(calls: list[Call]) -> Peak:
    tree, tokens, open = PromptTree(), 0, False
    for call in calls:
        units = call.prompt.units
        shared = tree.insert(units)
        fresh = units[shared:]
        tokens += sum(_most(unit) for unit in fresh) + _most(call.written) + sum(call.prompt.options or ())
        open = open or any(_unbounded(unit) for unit in (*units, call.written))
    return Peak(tokens, open, len(calls))


def _most(unit: Unit) -> int:
    if isinstance(unit, int):
        return 1
    return (unit.most or 0) if isinstance(unit, Written) else 0


def _unbounded(unit: Unit) -> bool:
    return not isinstance(unit, int) and (not isinstance(unit, Written) or unit.most is None)
