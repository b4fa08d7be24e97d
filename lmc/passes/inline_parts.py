"""Parts, and functions that are short, into their callers.

Before:

    part @greet(%c: context, %name: str) -> str {
      %text: str = text.concat("I am ", %name, ". ")
      %c_1: context = context.append(%c, %text)[role = user]
      %c_2: context, %hello: str = lm.gen(%c_1)[role = assistant, site = "0"]
      control.return(%c_2, %hello)
    }

    func @main(%name: str) -> str {
      %c: context = context.new()
      %c_1: context, %said: str = call(%c, %name)[callee = "greet", site = "0"]
      control.return(%said)
    }

After:

    func @main(%name: str) -> str {
      %c: context = context.new()
      %text: str = text.concat("I am ", %name, ". ")
      %c_1: context = context.append(%c, %text)[role = user]
      %c_2: context, %hello: str = lm.gen(%c_1)[role = assistant, site = "0/0"]
      control.return(%hello)
    }

Near miss, which does not change: a function that may return early, or fail by `fail(…)`, would hold up what stands after its call; and
each call of a recursive function counts against the budget of recursion.

    func @first(%xs: list<str>) -> str {
      %n: int = pure.call(%xs)[function = "len"]
      %none: bool = pure.call(%n, 0)[function = "eq"]
      control.if(%none) {
        control.return("")
      } {
        control.yield()
      }
      %x: str = pure.call(%xs, 0)[function = "index"]
      control.return(%x)
    }

    func @down(%n: int) -> int {
      %m: int = pure.call(%n, 1)[function = "sub"]
      %r: int = call(%m)[callee = "down", site = "0"]
      control.return(%r)
    }

    func @main(%xs: list<str>) -> str {
      %x: str = call(%xs)[callee = "first", site = "0"]
      %r: int = call(3)[callee = "down", site = "1"]
      control.return(%x)
    }

Parts are specialised already when they are lowered (one variant for each role and each set of options), so that nothing is known here
that the callee does not know.  Sites are prefixed by the call's, which keeps the path of every generation; places remember the call.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from lmc.ir.call_graph import CallGraph
from lmc.ir.core import Block, Effect, Function, Module, Op, Operand, Value, blocks, walk_ops
from lmc.ir.builder import substitute
from lmc.ir.effects import function_effects, op_effect
from lmc.ir.ops import ROUNDS, Call, Gen, Return, Score, Select
from lmc.passes.copying import inlined_ops
from lmc.types import FallibleT, OptionalT, UnionT

#: A part is written to be a piece of its callers; any other function is worth its call where it has more ops than this.
_MOST_OPS = {"part": 200, "def": 30}
#: Callers do not grow beyond this, so that the whole stays linear in what was written.
_LARGEST_CALLER = 2000
#: The budget of recursion: how many calls deep a chain may get.  Calls that could reach it are left to be counted.
_MOST_CALLS_DEEP = 100
#: Blocks inside one another, as the text form and artifacts allow.
_MOST_NESTED = 100


def inline_parts(module: Module) -> Module:
    """The module with calls of parts and of short functions replaced by their code; parts that nobody calls any more go."""
    inliner = _Inliner(module)
    functions = {f.name: f for f in module.functions}
    for name in inliner.graph.order:
        functions[name] = inliner.inlined(functions[name])
    if all(functions[f.name] is f for f in module.functions):
        return module
    return _without_idle_parts(dataclasses.replace(module, functions=tuple(functions[f.name] for f in module.functions)))


def _without_idle_parts(module: Module) -> Module:
    called = CallGraph(module).called()
    kept = tuple(f for f in module.functions if f.kind != "part" or f.name in called)
    if len(kept) == len(module.functions):
        return module
    return _without_idle_parts(dataclasses.replace(module, functions=kept))


class _Inliner:
    """`ready`: functions that may be inlined, as they are by now; `asking`: those that surely ask the model in each call."""

    __slots__ = ("graph", "effects", "heights", "depths", "called", "ready", "asking", "room")

    def __init__(self, module: Module):
        self.graph = CallGraph(module)
        self.effects = function_effects(module)
        self.heights, self.depths = self.graph.heights(), self.graph.depths()
        self.called = self.graph.called()
        self.ready: dict[str, Function] = {}
        self.asking: set[str] = set()
        self.room = 0

    def inlined(self, function: Function) -> Function:
        self.room = _LARGEST_CALLER - _size(function.body)
        # A function that is only called from outside runs once: what it counts does not add up.
        once = function.name not in self.called
        body = _CallSites(self, function).block(function.body, 0, once or self._asks(function.body))
        if body is not function.body:
            function = dataclasses.replace(function, body=body)
        if self._asks(function.body):
            self.asking.add(function.name)
        if self._inlinable(function):
            self.ready[function.name] = function
        return function

    def _inlinable(self, function: Function) -> bool:
        *before, last = function.body.ops
        return (
            function.kind in _MOST_OPS
            and function.name not in self.graph.recursive
            and _size(function.body) <= _MOST_OPS[function.kind]
            # What calls the host keeps its order as a whole; see `instruction_order`.
            and Effect.HOST not in self.effects[function.name]
            and isinstance(last, Return)
            and not any(Effect.EXIT in op_effect(op, self.effects) for op in before)
        )

    def _asks(self, block: Block) -> bool:
        """Whether the model is surely asked by the block."""
        for op in block.ops:
            if isinstance(op, (Gen, Select, Score)) or isinstance(op, Call) and op.callee in self.asking:
                return True
            if Effect.EXIT in op_effect(op, self.effects):
                return False
        return False


class _CallSites:
    """One function on its way through its blocks."""

    __slots__ = ("inliner", "deep_enough", "values")

    def __init__(self, inliner: _Inliner, function: Function):
        self.inliner = inliner
        self.deep_enough = _MOST_CALLS_DEEP - inliner.depths[function.name] - 1
        self.values: dict[Value, Operand] = {}

    def block(self, old: Block, depth: int, counted: bool) -> Block:
        """The block with calls replaced.  `counted`: rounds of this block cannot add up to a budget, since each asks the model."""
        ops: list[Op] = []
        host = _host_effects_after(old.ops, self.inliner.effects)
        for op, host_follows in zip(old.ops, host):
            new = substitute(op, self.values, lambda inner: self._region(op, inner, depth + 1, counted))
            callee = self.inliner.ready.get(new.callee) if isinstance(new, Call) else None
            if callee is not None and _typed(new, callee) and self._may(callee, depth, counted, host_follows):
                ops += self._replaced(new, callee)
            else:
                ops.append(new)
        unchanged = len(ops) == len(old.ops) and all(a is b for a, b in zip(ops, old.ops))
        return old if unchanged else Block(old.args, tuple(ops))

    def _region(self, op: Op, inner: Block, depth: int, counted: bool) -> Block:
        return self.block(inner, depth, self.inliner._asks(inner) if isinstance(op, ROUNDS) else counted)

    def _may(self, callee: Function, depth: int, counted: bool, host_follows: bool) -> bool:
        """Whether nothing that is seen changes: neither a budget that runs out, nor what the host sees before an error."""
        inliner = self.inliner
        return (
            _size(callee.body) <= inliner.room
            and inliner.heights[callee.name] <= self.deep_enough
            and depth + _nesting(callee.body) <= _MOST_NESTED
            and (counted or callee.name in inliner.asking)
            and not (host_follows and Effect.MODEL in inliner.effects[callee.name])
        )

    def _replaced(self, call: Call, callee: Function) -> list[Op]:
        self.inliner.room -= _size(callee.body)
        values: dict[Value, Operand] = dict(zip(callee.body.args, call.args))
        *before, last = callee.body.ops
        ops = inlined_ops(before, values, call)
        self.values.update((result, values.get(v, v)) for result, v in zip(call.results, last.values))
        return ops


def _typed(call: Call, callee: Function) -> bool:
    """Whether values keep their types.  Where more is known of an argument than that it is one of a union, the callee has cases that
    make no sense for it; they would never run, but the rules of the IR hold for them too."""
    passed = zip(call.args, callee.body.args)
    returned = zip(callee.body.ops[-1].values, call.results)
    return all(a.type == b.type or not isinstance(b.type, (OptionalT, UnionT, FallibleT)) for a, b in (*passed, *returned))


def _host_effects_after(ops: Iterable[Op], effects: dict[str, Effect]) -> list[bool]:
    """For each op, whether one after it in its block has an effect on the host."""
    found, follows = [], False
    for op in reversed(tuple(ops)):
        found.append(follows)
        follows = follows or Effect.HOST in op_effect(op, effects)
    return found[::-1]


def _size(block: Block) -> int:
    return sum(1 for _ in walk_ops(block))


def _nesting(block: Block) -> int:
    return max((1 + _nesting(inner) for op in block.ops for inner in blocks(op)), default=0)
