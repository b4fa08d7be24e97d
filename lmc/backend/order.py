"""What each instruction of a block waits for, beside the registers it reads.

    0: extern.call(…)          HOST
    1: lm.gen(…)
    2: control.if(…) {return}  EXIT: after 0, 1
    3: io.print(…)             HOST: after 2
    4: control.yield()         terminator: after 3

- Effects on the host keep their order among themselves, and do not run past a check before them that may fail.  A generation that
  may fail does not hold them up: waiting for the model would serialise what is independent, and its error is reported all the same.
- What may leave the block waits for all before it, and all after it waits for it.  A terminator is such an instruction.
- Nothing else is ordered but by data; where several fail, the machine reports the first in program order.

Edges that others imply are left out, so that their number is linear in the block's length.
"""

from __future__ import annotations

from collections.abc import Mapping

from lmc.ir.core import Block, Effect, Op, Value, free_values
from lmc.ir.effects import op_effect


def instruction_order(block: Block, functions: Mapping[str, Effect]) -> list[tuple[int, ...]]:
    """For each op of the block, the indexes of earlier ones that must have ended before it starts, ascending."""
    order = _Order()
    return [order.next(index, op, op_effect(op, functions)) for index, op in enumerate(block.ops)]


class _Order:
    """The walk over a block.

    `exit` and `host` are the last ops of their kind; `since_exit` the ops that no exit has waited for, `checks` those that may fail
    and that no host effect has waited for; `made_by` says which op a register comes from.
    """

    __slots__ = ("exit", "host", "since_exit", "checks", "made_by")

    def __init__(self):
        self.exit: int | None = None
        self.host: int | None = None
        self.since_exit: list[int] = []
        self.checks: list[int] = []
        self.made_by: dict[Value, int] = {}

    def next(self, index: int, op: Op, effect: Effect) -> tuple[int, ...]:
        after: set[int] = set() if self.exit is None else {self.exit}
        if op.terminator or Effect.EXIT in effect:
            after.update(self.since_exit)
            self.exit, self.since_exit = index, []
        else:
            self.since_exit.append(index)
        if Effect.HOST in effect:
            after.update(self.checks if self.host is None else [*self.checks, self.host])
            self.host, self.checks = index, []
        elif Effect.FAIL in effect and Effect.MODEL not in effect:
            self.checks.append(index)
        after -= {self.made_by[v] for v in free_values(op) if v in self.made_by}
        self.made_by.update((value, index) for value in op.results)
        return tuple(sorted(after))
