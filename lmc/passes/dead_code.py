"""Drop what nobody reads and what does nothing else.

Before:

    func @f(%name: str) -> str {
      %c: context = context.new()
      %t: str = text.concat("Dear ", %name)
      %same: bool = pure.call(%name, "x")[function = "eq"]
      %one: list<str> = control.if(true) {
        %xs: list<str> = list.make(%name)
        control.yield(%xs)
      } {
        %ys: list<str> = list.make()
        control.yield(%ys)
      }
      control.return(%name)
    }

After:

    func @f(%name: str) -> str {
      control.return(%name)
    }

Of an `if` that stays, results that nobody reads go.

Near miss, which does not change: an unread generation, an extern, and what may stop the program with an error are not dead (an
append may be refused where raw text and chat turns would mix, but not in a turn that is open).

    extern @log(text: str) -> none

    func @f(%xs: list<str>, %c: context) -> none {
      %first: str = pure.call(%xs, 0)[function = "index"]
      %open: context = context.append(%c, "Hi")[role = user]
      %c_1: context, %v: str = lm.gen(%c)[role = assistant, site = "0"]
      %done: none = extern.call("seen")[name = "log"]
      control.return(null)
    }
"""

from __future__ import annotations

import dataclasses
import operator

from lmc.ir.builder import rebuild, substitute
from lmc.ir.core import Block, Effect, Function, Module, Op, Value, blocks, operands, walk_ops
from lmc.ir.effects import function_effects, op_effect
from lmc.ir.ops import ContextAppend, Gen, If, PureCall, Select, Try, Yield
from lmc.passes.rewriting import rewrite_module
from lmc.passes.total import cannot_fail


def dead_code(module: Module) -> Module:
    """The module without unread ops that have no effect."""
    effects = function_effects(module)
    return rewrite_module(module, lambda function: _drop(function, effects))


def _drop(function: Function, effects: dict[str, Effect]) -> Function:
    live = _Liveness(function, effects)
    live.block(function.body)
    body = _kept(function.body, live, None)
    return function if body is function.body else dataclasses.replace(function, body=body)


def _kept(block: Block, live: _Liveness, columns: tuple[int, ...] | None) -> Block:
    """The block without what is dead; `columns` are the values that its yield still gives, None for all."""
    ops: list[Op] = []
    for op in block.ops:
        if isinstance(op, Yield) and columns is not None:
            ops.append(rebuild(op, values=tuple(op.values[i] for i in columns)))
        elif op in live.ops:
            mine = live.columns.get(op)
            new = substitute(op, {}, lambda inner: _kept(inner, live, mine))
            ops.append(new if mine is None else rebuild(new, tuple(op.results[i] for i in mine)))
    return block if len(ops) == len(block.ops) and all(map(operator.is_, ops, block.ops)) else Block(block.args, tuple(ops))


class _Liveness:
    """One walk from the end: an op lives if it has an effect or a result that a living op reads.

    `columns` has the `if`s and `try`s of which only some results are read, with the numbers of these.
    """

    __slots__ = ("effects", "turns", "ops", "read", "columns")

    def __init__(self, function: Function, effects: dict[str, Effect]):
        self.effects = effects
        # The role of the turn that is open in each context, where this function has opened it.
        self.turns = {op.results[0]: op.role for op in walk_ops(function.body) if isinstance(op, (ContextAppend, Gen, Select))}
        self.ops: set[Op] = set()
        self.read: set[Value] = set()
        self.columns: dict[Op, tuple[int, ...]] = {}

    def block(self, block: Block, columns: tuple[int, ...] | None = None) -> None:
        for op in reversed(block.ops):
            read = tuple(i for i, r in enumerate(op.results) if r in self.read)
            if not (op.terminator or read or not self._droppable(op)):
                continue
            self.ops.add(op)
            if isinstance(op, (If, Try)) and len(read) < len(op.results):
                self.columns[op] = read
            mine = operands(op) if columns is None or not isinstance(op, Yield) else (op.values[i] for i in columns)
            self.read.update(o for o in mine if isinstance(o, Value))
            for inner in blocks(op):
                self.block(inner, self.columns.get(op))

    def _droppable(self, op: Op) -> bool:
        if isinstance(op, PureCall):
            return cannot_fail(op)
        if isinstance(op, ContextAppend):
            return self.turns.get(op.context) is op.role
        return op_effect(op, self.effects) == Effect.PURE
