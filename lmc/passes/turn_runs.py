"""Runs of texts and generations in one turn, and putting each into one op.

    %c_2, %name = lm.gen(%c_1)[…]              %c_4, %name, %age = lm.template(%c_1) {
    %c_3 = context.append(%c_2, "\\nage: ")     ^(%t):
    %c_4, %age = lm.gen(%c_3)[…]                 …the same three ops on %t…
                                                 control.yield(…)
                                               }

A run goes from a generation to a generation.  Nothing else reads the contexts between, texts and options are known when it begins,
and what stands between its ops is pure and cannot fail: it moves before the run, or behind it where it reads what the run gives.
This file does not know what the op is for.
"""

from __future__ import annotations

import dataclasses
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lmc.ir.builder import substitute
from lmc.ir.core import Block, Effect, Function, Module, Op, Value, blocks, free_values, operands, walk_ops
from lmc.ir.ops import ContextAppend, Gen, PureCall, Speculate, Template, Yield
from lmc.passes.rewriting import rewrite_module
from lmc.passes.total import cannot_fail
from lmc.types import CONTEXT

#: Whether a run may go on from the first generation to the second one.
MayFollow = Callable[[Gen, Gen], bool]
_Grouped = type[Template] | type[Speculate]


def group_runs(module: Module, op_class: _Grouped, may_follow: MayFollow) -> Module:
    """The module with each run of two or more generations as one op."""
    return rewrite_module(module, lambda function: _Grouper(function, op_class, may_follow).run())


class _Grouper:
    """One function; `uses` counts the readers of each value."""

    __slots__ = ("function", "op_class", "may_follow", "uses")

    def __init__(self, function: Function, op_class: _Grouped, may_follow: MayFollow):
        self.function, self.op_class, self.may_follow = function, op_class, may_follow
        self.uses = Counter(o for op in walk_ops(function.body) for o in operands(op) if isinstance(o, Value))

    def run(self) -> Function:
        body = self._block(self.function.body)
        return self.function if body is self.function.body else dataclasses.replace(self.function, body=body)

    def _block(self, block: Block) -> Block:
        # What is one op already is left alone.
        ops = [op if isinstance(op, (Template, Speculate)) else substitute(op, {}, self._block) for op in block.ops]
        made: list[Op] = []
        place = 0
        while place < len(ops):
            run = self._run(ops, place) if isinstance(ops[place], Gen) else None
            made += [ops[place]] if run is None else run.ops(self.op_class)
            place += 1 if run is None else len(run.chain) + len(run.between)
        return block if len(made) == len(block.ops) and all(map(operator.is_, made, block.ops)) else Block(block.args, tuple(made))

    def _run(self, ops: Sequence[Op], start: int) -> _Run | None:
        """The longest run that begins with the generation at `start`; None where there is only this one."""
        first = ops[start]
        assert isinstance(first, Gen)
        chain: list[Gen | ContextAppend] = [first]
        between: list[Op] = []
        given: set[Value] = set(first.results)
        found: _Run | None = None
        for place in range(start + 1, len(ops)):
            op = ops[place]
            if self._goes_on(op, chain, given):
                chain.append(op)
                given.update(op.results)
                if isinstance(op, Gen):
                    found = _Run(tuple(chain), tuple(between))
            elif _movable(op):
                between.append(op)
                given.update(op.results if any(v in given for v in free_values(op)) else ())
            else:
                break
        return found

    def _goes_on(self, op: Op, chain: Sequence[Gen | ContextAppend], given: set[Value]) -> bool:
        before = chain[-1].results[0]
        if not isinstance(op, (Gen, ContextAppend)) or op.context is not before or op.role is not chain[0].role:
            return False
        if self.uses[before] != 1 or any(o is not before and o in given for o in operands(op)):
            return False
        return not isinstance(op, Gen) or self.may_follow(next(o for o in reversed(chain) if isinstance(o, Gen)), op)


@dataclass(frozen=True, slots=True)
class _Run:
    """`chain`: its ops; `between`: the others that stand among them."""

    chain: tuple[Gen | ContextAppend, ...]
    between: tuple[Op, ...]

    def ops(self, op_class: _Grouped) -> list[Op]:
        """The run as one op, with the others before and behind it."""
        given = {result for op in self.chain for result in op.results}
        before: list[Op] = []
        behind: list[Op] = []
        for op in self.between:
            late = any(v in given for v in free_values(op))
            given.update(op.results if late else ())
            (behind if late else before).append(op)
        return [*before, self._grouped(op_class), *behind]

    def _grouped(self, op_class: _Grouped) -> Op:
        first, last = self.chain[0], self.chain[-1]
        start = Value(CONTEXT, "t")
        inner: list[Op] = []
        renamed = {first.context: start}
        for op in self.chain:
            copies = tuple(Value(r.type, r.name) for r in op.results)
            inner.append(dataclasses.replace(substitute(op, renamed, lambda block: block), results=copies))
            renamed.update(zip(op.results, copies))
        outer = (last.results[0], *(v for op in self.chain if isinstance(op, Gen) for v in op.results[1:]))
        end = Yield((), last.span, tuple(renamed[value] for value in outer))
        # It stands at no place of its own: all that is told is told of one of its ops.
        return op_class(outer, None, first.context, Block((start,), (*inner, end)))


def _movable(op: Op) -> bool:
    """Whether nothing is seen of when it runs, and it cannot fail."""
    if isinstance(op, PureCall):
        return cannot_fail(op)
    return op.effect == Effect.PURE and bool(op.results) and not op.terminator and not any(blocks(op))
