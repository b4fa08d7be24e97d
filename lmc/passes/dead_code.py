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

from lmc.ir.core import Block, Effect, Function, Module, Op, Value, blocks, operands, walk_ops
from lmc.ir.effects import function_effects, op_effect
from lmc.ir.ops import ContextAppend, Gen, PureCall, Select
from lmc.passes.rewriting import rewrite_blocks, rewrite_module
from lmc.types import BoolT, FloatT, IntT, LiteralT, RangeT, StrT


def dead_code(module: Module) -> Module:
    """The module without unread ops that have no effect."""
    effects = function_effects(module)
    return rewrite_module(module, lambda function: _drop(function, effects))


def _drop(function: Function, effects: dict[str, Effect]) -> Function:
    live = _Liveness(function, effects)
    live.block(function.body)
    return rewrite_blocks(function, lambda block: _kept(block, live.ops))


def _kept(block: Block, live: set[Op]) -> Block:
    ops = tuple(op for op in block.ops if op in live)
    return block if len(ops) == len(block.ops) else Block(block.args, ops)


class _Liveness:
    """One walk from the end: an op lives if it has an effect or a result that a living op reads."""

    __slots__ = ("effects", "turns", "ops", "read")

    def __init__(self, function: Function, effects: dict[str, Effect]):
        self.effects = effects
        # The role of the turn that is open in each context, where this function has opened it.
        self.turns = {op.results[0]: op.role for op in walk_ops(function.body) if isinstance(op, (ContextAppend, Gen, Select))}
        self.ops: set[Op] = set()
        self.read: set[Value] = set()

    def block(self, block: Block) -> None:
        for op in reversed(block.ops):
            if op.terminator or not self._droppable(op) or any(r in self.read for r in op.results):
                self.ops.add(op)
                self.read.update(o for o in operands(op) if isinstance(o, Value))
                for inner in blocks(op):
                    self.block(inner)

    def _droppable(self, op: Op) -> bool:
        if isinstance(op, PureCall):
            return _cannot_fail(op)
        if isinstance(op, ContextAppend):
            return self.turns.get(op.context) is op.role
        return op_effect(op, self.effects) == Effect.PURE


#: Functions that give a result for all operands of scalar types.
_TOTAL = frozenset({"eq", "ne", "not", "bool", "lower", "upper", "strip", "lstrip", "rstrip", "startswith", "endswith"})


def _cannot_fail(op: PureCall) -> bool:
    scalars = (StrT, IntT, RangeT, FloatT, BoolT, LiteralT)
    return op.function in _TOTAL and all(isinstance(a.type, scalars) for a in op.args)
