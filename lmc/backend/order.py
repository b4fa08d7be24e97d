"""What each instruction of a block waits for, beside the registers it reads.

    0: extern.call(…)          HOST
    1: lm.gen(…)
    2: control.if(…) {return}  EXIT: after 0, 1
    3: io.print(…)             HOST: after 2
    4: control.yield()         terminator: after 3

- Effects on the host keep their order among themselves, and do not run past a check before them that may fail.  A generation that
  may fail does not hold them up: waiting for the model would serialise what is independent, and its error is reported all the same.
  Nor does a text that goes on with an open turn: it cannot fail, and it waits for the generations before it.
- What may leave the block waits for all before it, and all after it waits for it.  A terminator is such an instruction.
- Nothing else is ordered but by data; where several fail, the machine reports the first in program order.

Edges that others imply are left out, so that their number is linear in the block's length.
"""

from __future__ import annotations

from collections.abc import Mapping

from lmc.ir.core import Block, Effect, Op, Value, free_values
from lmc.ir.effects import op_effect
from lmc.ir.ops import ContextAppend, Gen, HintRelease, Role, Select, Speculate, Template
from lmc.types import ContextT, ListT


def instruction_order(block: Block, functions: Mapping[str, Effect]) -> list[tuple[int, ...]]:
    """For each op of the block, the indexes of earlier ones that must have ended before it starts, ascending."""
    order = _Order()
    return [order.next(index, op, op_effect(op, functions)) for index, op in enumerate(block.ops)]


class _Order:
    """The walk over a block.

    `exit` and `host` are the last ops of their kind; `since_exit` the ops that no exit has waited for, `checks` those that may fail
    and that no host effect has waited for; `made_by` says which op a register comes from, `turns` whose turn is open in a context,
    `readers` which ops read a context or a list.
    """

    __slots__ = ("exit", "host", "since_exit", "checks", "made_by", "turns", "readers")

    def __init__(self):
        self.exit: int | None = None
        self.host: int | None = None
        self.since_exit: list[int] = []
        self.checks: list[int] = []
        self.made_by: dict[Value, int] = {}
        self.turns: dict[Value, Role] = {}
        self.readers: dict[Value, list[int]] = {}

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
        elif Effect.FAIL in effect and Effect.MODEL not in effect and not self._goes_on(op):
            self.checks.append(index)
        if isinstance(op, HintRelease):
            after.update(self.readers.get(op.context, ()))
        for value in free_values(op):
            if isinstance(value.type, (ContextT, ListT)):
                self.readers.setdefault(value, []).append(index)
        after -= {self.made_by[v] for v in free_values(op) if v in self.made_by}
        self.made_by.update((value, index) for value in op.results)
        if isinstance(op, (ContextAppend, Gen, Select)):
            self.turns[op.results[0]] = op.role
        elif isinstance(op, (Template, Speculate)):
            self.turns[op.results[0]] = next(inner.role for inner in op.body.ops if isinstance(inner, Gen))
        return tuple(sorted(after))

    def _goes_on(self, op: Op) -> bool:
        """Whether it puts text into a turn that is open."""
        return isinstance(op, ContextAppend) and self.turns.get(op.context) is op.role
