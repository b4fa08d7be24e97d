"""Before a context gets several readers, its prefix is put into the cache, once.

Before:

    func @f(%essay: str, %topics: list<str>) -> list<str> {
      %c: context = context.new()
      %c_1: context = context.append(%c, %essay)[role = user]
      %notes: list<str> = lm.fork(%c_1, %topics)[site = "0"] {
      ^(%b: context, %t: str):
        %b_1: context = context.append(%b, %t)[role = user]
        %b_2: context, %v: str = lm.gen(%b_1)[role = assistant, site = "1"]
        control.yield(%v)
      }
      control.return(%notes)
    }

After:

    func @f(%essay: str, %topics: list<str>) -> list<str> {
      %c: context = context.new()
      %c_1: context = context.append(%c, %essay)[role = user]
      hint.prefill(%c_1, readers = %topics)
      %notes: list<str> = lm.fork(%c_1, %topics)[site = "0"] {
      ^(%b: context, %t: str):
        %b_1: context = context.append(%b, %t)[role = user]
        %b_2: context, %v: str = lm.gen(%b_1)[role = assistant, site = "1"]
        control.yield(%v)
      }
      control.return(%notes)
    }

Near miss, which does not change: branches that go on from another context, a context with one reader, and one that is empty.

    func @f(%essay: str, %topics: list<str>, %states: list<context>) -> list<str> {
      %c: context = context.new()
      %c_1: context = context.append(%c, %essay)[role = user]
      %notes: list<str> = lm.fork(%c_1, %states)[site = "0"] {
      ^(%b: context, %s: context):
        %b_1: context, %v: str = lm.gen(%s)[role = assistant, site = "1"]
        control.yield(%v)
      }
      %more: list<str> = lm.fork(%c, %topics)[site = "2"] {
      ^(%d: context, %t: str):
        %d_1: context = context.append(%d, %t)[role = user]
        %d_2: context, %w: str = lm.gen(%d_1)[role = assistant, site = "3"]
        control.yield(%w)
      }
      control.return(%more)
    }

Readers are forks, loops and maps whose bodies go on from the context, one for each element, and ops of its own block that ask the
model or extend it.  The hint names the list where its length decides how many there are: with fewer than two the machine sends none.
It waits for nothing but the context and the list, and nothing waits for it.
"""

from __future__ import annotations

from lmc.ir.core import Block, Literal, Module, Op, Operand, Value, blocks, free_values, walk_ops
from lmc.ir.ops import (
    Branches, Call, ContextAppend, ContextImage, ContextNew, For, Fork, Gen, HintPrefill, If, Map, Score, Select, Speculate, Template,
)
from lmc.passes.rewriting import rewrite_blocks, rewrite_module
from lmc.types import ContextT

#: Ops that go on from a context, each as one reader.  What stands in an `if` may not run; it counts all the same.
_READERS = (Call, ContextAppend, ContextImage, Gen, If, Score, Select, Speculate, Template)
#: What these give is in the cache already, or has no tokens.
_NOTHING_NEW = (ContextNew, Gen, Select, Speculate, Template)


def fork_hints(module: Module) -> Module:
    """The module with a `hint.prefill` before the first of several readers of a context."""
    return rewrite_module(module, lambda function: rewrite_blocks(function, _hinted, (Speculate, Template)))


def _hinted(block: Block) -> Block:
    made = {result: op for op in block.ops for result in op.results}
    contexts = [v for v, op in made.items() if isinstance(v.type, ContextT) and not isinstance(op, _NOTHING_NEW)]
    readers: dict[Value, list[Op]] = {context: [] for context in contexts}
    for op in block.ops:
        for value in free_values(op):
            if value in readers:
                readers[value].append(op)
    before: dict[Op, list[HintPrefill]] = {}
    for context, ops in readers.items():
        if any(isinstance(op, HintPrefill) for op in ops):
            continue
        single = [op for op in ops if isinstance(op, _READERS)]
        several = [op for op in ops if isinstance(op, (Branches, For, Fork, Map)) and _goes_on(op, context)]
        if len(single) + len(several) > 1 or any(isinstance(op, Branches) for op in several):
            first = min(single + several, key=block.ops.index)
            before.setdefault(first, []).append(HintPrefill((), first.span, context))
        elif several:
            before.setdefault(several[0], []).append(HintPrefill((), several[0].span, context, several[0].items))
    if not before:
        return block
    return Block(block.args, tuple(new for op in block.ops for new in (*before.get(op, ()), op)))


def _goes_on(op: Op, context: Value) -> bool:
    """Whether the bodies of an op with several rounds read the context, under its own name or as their argument."""
    names: set[Operand] = {context}
    if isinstance(op, (Branches, Fork)) and op.context is context:
        names.update(block.args[0] for block in blocks(op))
    if isinstance(op, Branches):
        return sum(_reads(arm, names) for arm in op.arms) > 1
    return not isinstance(op.items, Literal) and any(_reads(block, names) for block in blocks(op))


def _reads(block: Block, names: set[Operand]) -> bool:
    return any(value in names for op in walk_ops(block) for value in free_values(op))
