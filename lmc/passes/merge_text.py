"""Neighbouring appends of one role become one, and a literal text is put together.

Before:

    func @f(%name: str) -> str {
      %c: context = context.new()
      %c_1: context = context.append(%c, "Hello ")[role = user]
      %c_2: context = context.append(%c_1, %name)[role = user]
      %c_3: context = context.append(%c_2, "!\\n")[role = user]
      %c_4: context, %v: str = lm.gen(%c_3)[role = assistant, site = "0"]
      control.return(%v)
    }

After:

    func @f(%name: str) -> str {
      %c: context = context.new()
      %text: str = text.concat("Hello ", %name, "!\\n")
      %c_3: context = context.append(%c, %text)[role = user]
      %c_4: context, %v: str = lm.gen(%c_3)[role = assistant, site = "0"]
      control.return(%v)
    }

Near miss, which does not change: a context with several readers is kept, since each of them goes on from it.

    func @f(%topics: list<str>) -> list<str> {
      %c: context = context.new()
      %c_1: context = context.append(%c, "Write about ")[role = user]
      %answers: list<str> = lm.fork(%c_1, %topics)[site = "0"] {
      ^(%b: context, %t: str):
        %b_1: context = context.append(%b, %t)[role = user]
        %b_2: context, %v: str = lm.gen(%b_1)[role = assistant, site = "1"]
        control.yield(%v)
      }
      %c_2: context = context.append(%c_1, "all of them")[role = user]
      %c_3: context, %last: str = lm.gen(%c_2)[role = assistant, site = "2"]
      %all: list<str> = list.make(%last)
      %result: list<str> = pure.call(%answers, %all)[function = "add"]
      control.return(%result)
    }

No token changes: the text between two control tokens or generated pieces is one segment, however many ops wrote it.
"""

from __future__ import annotations

from collections import Counter

from lmc.ir.core import Block, Function, Literal, Module, Op, Operand, Value, operands, walk_ops
from lmc.ir.ops import ContextAppend, TextConcat
from lmc.passes.rewriting import rewrite_blocks, rewrite_module
from lmc.passes.text_pieces import joined, written


def merge_text(module: Module) -> Module:
    """The module with runs of appends merged."""
    return rewrite_module(module, _merge_function)


def _merge_function(function: Function) -> Function:
    uses = Counter(o for op in walk_ops(function.body) for o in operands(op) if isinstance(o, Value))
    return rewrite_blocks(function, lambda block: _merge_block(block, uses))


def _merge_block(block: Block, uses: Counter[Value]) -> Block:
    made = {r: op for op in block.ops for r in op.results}
    # Each run is kept by its last append; the others, and the texts that only they read, go.
    runs: dict[Op, list[ContextAppend]] = {}
    gone: set[Op] = set()
    for op in block.ops:
        before = made.get(op.context) if isinstance(op, ContextAppend) else None
        if isinstance(before, ContextAppend) and uses[op.context] == 1 and (before.role, before.deferred) == (op.role, op.deferred):
            runs[op] = [*runs.pop(before, [before]), op]
            gone.add(before)
    if not runs:
        return block
    ops: list[Op] = []
    for op in block.ops:
        if op in gone:
            continue
        ops += _merged(runs[op], made, uses) if op in runs else [op]
    dead = {made[a.text] for run in runs.values() for a in run if _inlined(a.text, made, uses)}
    return Block(block.args, tuple(op for op in ops if op not in dead))


def _merged(run: list[ContextAppend], made: dict[Value, Op], uses: Counter[Value]) -> list[Op]:
    pieces = joined(p for append in run for p in _pieces(append.text, made, uses))
    first, last = run[0], run[-1]
    text, ops = written(pieces, first.span)
    return [*ops, ContextAppend(last.results, first.span, first.context, text, last.role, last.deferred)]


def _pieces(text: Operand, made: dict[Value, Op], uses: Counter[Value]) -> tuple[Operand, ...]:
    return made[text].pieces if _inlined(text, made, uses) else (text,)


def _inlined(text: Operand, made: dict[Value, Op], uses: Counter[Value]) -> bool:
    """Whether the text is put together here for this append alone."""
    return not isinstance(text, Literal) and isinstance(made.get(text), TextConcat) and uses[text] == 1
