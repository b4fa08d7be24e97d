"""A loop whose rounds ask the model independently of one another asks side by side; what carries on from round to round comes after.

Before:

    func @f(%reviews: list<str>) -> list<str> {
      %none: list<str> = list.make()
      %labels: list<str> = control.for(%reviews, %none)[site = "0"] {
      ^(%r: str, %labels_1: list<str>):
        %c: context = context.new()
        %c_1: context = context.append(%c, %r)[role = raw]
        %c_2: context, %label: str = lm.gen(%c_1)[role = raw, site = "1"]
        %one: list<str> = list.make(%label)
        %labels_2: list<str> = pure.call(%labels_1, %one)[function = "add"]
        control.yield(%labels_2)
      }
      control.return(%labels)
    }

After:

    func @f(%reviews: list<str>) -> list<str> {
      %none: list<str> = list.make()
      %label: list<str> = lm.map(%reviews)[site = "0", loop = true] {
      ^(%r: str):
        %c: context = context.new()
        %c_1: context = context.append(%c, %r)[role = raw]
        %c_2: context, %label_1: str = lm.gen(%c_1)[role = raw, site = "1"]
        control.yield(%label_1)
      }
      %labels: list<str> = control.for(%label, %none)[site = "0.rest"] {
      ^(%label_2: str, %labels_1: list<str>):
        %one: list<str> = list.make(%label_2)
        %labels_2: list<str> = pure.call(%labels_1, %one)[function = "add"]
        control.yield(%labels_2)
      }
      control.return(%labels)
    }

Near miss, which does not change: the conversation goes on from round to round, so each round waits for the one before.

    func @f(%lines: list<str>) -> context {
      %c: context = context.new()
      %c_1: context = control.for(%lines, %c)[site = "0"] {
      ^(%line: str, %c_2: context):
        %c_3: context = context.append(%c_2, %line)[role = user]
        %c_4: context, %answer: str = lm.gen(%c_3)[role = assistant, site = "1"]
        control.yield(%c_4)
      }
      control.return(%c_1)
    }

Neither does a loop with `break` or `return`, with an extern, `print`, `input` or a generation that streams (their order is seen), or
one in which what carries on may fail: the error reported must be the first in program order.  The map keeps the loop's site, and so
every generation its seed.  Independent calls outside loops need no pass: the machine starts whatever has its inputs.
"""

from __future__ import annotations

import dataclasses

from lmc.ir.builder import replaced_in, substitute
from lmc.ir.core import Block, Effect, Function, Literal, Module, Op, Operand, Value, blocks, free_values, walk_ops
from lmc.ir.effects import function_effects, op_effect
from lmc.ir.ops import Call, For, Gen, ListMake, Map, PureCall, TupleGet, Yield
from lmc.passes.rewriting import Rewritten, rewrite_function, rewrite_module
from lmc.passes.total import cannot_fail
from lmc.types import ListT, TupleT


def parallelise(module: Module) -> Module:
    """The module with the independent part of each loop as an `lm.map`."""
    effects, streaming = function_effects(module), _streaming(module)

    def rewrite(function: Function) -> Function:
        return rewrite_function(function, lambda op: _split(op, effects, streaming) if isinstance(op, For) else ([op], {}))

    return rewrite_module(module, rewrite)


def _split(loop: For, effects: dict[str, Effect], streaming: frozenset[str]) -> Rewritten:
    kept: Rewritten = ([loop], {})
    *body, end = loop.body.ops
    if not isinstance(end, Yield) or any(_streams(op, streaming) for op in walk_ops(loop.body)):
        return kept
    ahead, rest = _parts(loop, body, effects)
    total = Effect.PURE
    for op in ahead:
        total |= op_effect(op, effects)
    if Effect.MODEL not in total or (Effect.HOST | Effect.EXIT) & total:
        return kept
    if not all(_harmless(op, loop) for op in rest):
        return kept
    return _rebuilt(loop, ahead, rest, end)


def _parts(loop: For, body: list[Op], effects: dict[str, Effect]) -> tuple[list[Op], list[Op]]:
    """The ops that need nothing from the round before, and the others with what only they read and costs nothing."""
    carried: set[Value] = set(loop.body.args[1:])
    later: set[Op] = set()
    for op in body:
        if any(v in carried for v in free_values(op)):
            later.add(op)
            carried.update(op.results)
    readers: dict[Value, set[Op]] = {}
    for op in (*body, loop.body.ops[-1]):
        for value in free_values(op):
            readers.setdefault(value, set()).add(op)
    late = later | {loop.body.ops[-1]}
    for op in reversed(body):
        read = {r for result in op.results for r in readers.get(result, ())}
        if op not in late and read and read <= late and _cheap(op, loop):
            late.add(op)
    return [op for op in body if op not in late], [op for op in body if op in late]


def _cheap(op: Op, loop: For) -> bool:
    return isinstance(op, (ListMake, TupleGet)) or isinstance(op, PureCall) and cannot_fail(op, loop)


def _harmless(op: Op, loop: For) -> bool:
    """Whether it neither fails nor does anything that is seen; counted through its regions."""
    if isinstance(op, PureCall):
        return cannot_fail(op, loop)
    return op.effect == Effect.PURE and all(_harmless(inner, loop) for block in blocks(op) for inner in block.ops)


def _rebuilt(loop: For, ahead: list[Op], rest: list[Op], end: Yield) -> Rewritten:
    item, *carried = loop.body.args
    made = {item: None, **{result: None for op in ahead for result in op.results}}
    # What the rest reads of a round, the element among it, in the order of reading.
    needed = list(dict.fromkeys(v for op in (*rest, end) for v in free_values(op) if v in made))
    columns = [v for v in needed if v is not item]
    inner = {v: Value(v.type, v.name) for v in columns}
    lists = {v: Value(ListT(v.type), v.name) for v in columns}
    first = Block((item,), (*(_renamed(op, inner) for op in ahead), Yield((), end.span, tuple(inner[v] for v in columns))))
    mapped = Map(tuple(lists.values()), loop.span, loop.items, loop.site, first, loop=True)
    if not rest and all(isinstance(v, Literal) or v in carried for v in end.values) and tuple(end.values) == tuple(carried):
        return [mapped], dict(zip(loop.results, loop.initial))
    sources: list[Operand] = [loop.items if v is item else lists[v] for v in needed] or [loop.items]
    return _second_loop(loop, mapped, needed or [item], sources, rest, end)


def _second_loop(loop: For, mapped: Map, needed: list[Value], sources: list[Operand], rest: list[Op], end: Yield) -> Rewritten:
    carried = loop.body.args[1:]
    if len(needed) == 1:
        element = Value(needed[0].type, needed[0].name)
        renamed, ops, items = {needed[0]: element}, [], sources[0]
        before: list[Op] = []
    else:
        element = Value(TupleT(tuple(v.type for v in needed)), "round")
        parts = [Value(v.type, v.name) for v in needed]
        ops = [TupleGet((part,), loop.span, element, index) for index, part in enumerate(parts)]
        renamed = dict(zip(needed, parts))
        items = Value(ListT(element.type), "rounds")
        before = [PureCall((items,), loop.span, tuple(sources), "zip")]
    body = Block((element, *carried), (*ops, *(_replaced(op, renamed) for op in (*rest, end))))
    second = For(loop.results, loop.span, items, loop.initial, f"{loop.site}.rest", body)
    return [mapped, *before, second], {}


def _replaced(op: Op, values: dict[Value, Value]) -> Op:
    return substitute(op, values, lambda block: replaced_in(block, values))


def _renamed(op: Op, values: dict[Value, Value]) -> Op:
    """The op with other values as operands and as its own results."""
    new = _replaced(op, values)
    return dataclasses.replace(new, results=tuple(values.get(r, r) for r in new.results))


def _streaming(module: Module) -> frozenset[str]:
    """The functions that may show text while it is generated, by what they say or through a call."""
    found: set[str] = set()
    while True:
        more = {f.name for f in module.functions if f.name not in found
                and any(_streams(op, frozenset(found)) for op in walk_ops(f.body))}
        if not more:
            return frozenset(found)
        found |= more


def _streams(op: Op, streaming: frozenset[str]) -> bool:
    if isinstance(op, Gen):
        return op.stream is not None and not (isinstance(op.stream, Literal) and op.stream.value is False)
    return isinstance(op, Call) and op.callee in streaming
