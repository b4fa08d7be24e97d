"""Say of each call of the model how much generation waits for it, so that the longest chain of a run goes first.

Before:

    func @f(%a: context, %b: context) -> str {
      %a_1: context, %title: str = lm.gen(%a, max_tokens = 10)[role = assistant, site = "0"]
      %b_1: context, %plan: str = lm.gen(%b, max_tokens = 50)[role = assistant, site = "1"]
      %b_2: context = context.append(%b_1, "Now do it.")[role = user]
      %b_3: context, %text: str = lm.gen(%b_2)[role = assistant, site = "2"]
      %whole: str = text.concat(%title, %text)
      control.return(%whole)
    }

After:

    func @f(%a: context, %b: context) -> str {
      %a_1: context, %title: str = lm.gen(%a, max_tokens = 10)[role = assistant, site = "0"]
      %b_1: context, %plan: str = lm.gen(%b, max_tokens = 50)[role = assistant, site = "1", chain = 256]
      %b_2: context = context.append(%b_1, "Now do it.")[role = user]
      %b_3: context, %text: str = lm.gen(%b_2)[role = assistant, site = "2"]
      %whole: str = text.concat(%title, %text)
      control.return(%whole)
    }

Near miss, which does not change: nothing waits for either, so neither is more urgent.

    func @f(%a: context, %b: context) -> list<str> {
      %a_1: context, %x: str = lm.gen(%a)[role = assistant, site = "0"]
      %b_1: context, %y: str = lm.gen(%b)[role = assistant, site = "1"]
      %both: list<str> = list.make(%x, %y)
      control.return(%both)
    }

No op moves.  The machine starts what has its operands, whatever the order of the list; that order is a promise (which error is
reported), and only the engine knows which prompts begin alike.  So three rules order a run, each within the one before: dependence in
the machine, depth first over shared prefixes in the engine's queue, and there, among prompts that share nothing more, `chain`.

A block is in an order of dependence already: one walk from its end finds the longest path.  `networkx` (`ir/graph.py`) would find the
same, a tenth of a second later.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from lmc.ir.builder import rebuild, substitute
from lmc.ir.core import Block, Effect, Function, Literal, Module, Op, Value, blocks, free_values
from lmc.ir.effects import function_effects, op_effect
from lmc.ir.leading import callees_first
from lmc.ir.ops import Call, Const, For, Gen, If, PureCall, Score, Select, Try, While
from lmc.passes.rewriting import rewrite_module, with_body
from lmc.types import STR

#: Tokens of a free generation without bounds: the language's default of `max_tokens`.
_FREE = 256
#: Of a typed one: types end themselves, mostly soon.
_TYPED = 32


def schedule(module: Module) -> Module:
    """The module with `chain` at each call of the model, in tokens."""
    lengths = _Lengths(module)

    def block(old: Block, after: int) -> Block:
        ops = tuple(one(op, chain) for op, chain in zip(old.ops, lengths.waiting(old, after)))
        return old if all(a is b for a, b in zip(ops, old.ops)) else Block(old.args, ops)

    def one(op: Op, chain: int) -> Op:
        op = substitute(op, {}, lambda inner: block(inner, chain))
        asks = isinstance(op, (Gen, Select, Score)) or isinstance(op, Call) and lengths.op(op) > 0
        return rebuild(op, chain=chain) if asks and op.chain != chain else op

    return rewrite_module(module, lambda f: with_body(f, block(f.body, 0)))


class _Lengths:
    """The longest chains of generation in ops, blocks and functions, in tokens.  A loop counts as often as is known, else once."""

    __slots__ = ("functions", "effects", "free", "known", "made")

    def __init__(self, module: Module):
        self.functions: dict[str, Function] = {f.name: f for f in module.functions}
        self.effects = function_effects(module)
        self.free = int(dict(module.config).get("max_tokens", _FREE))
        self.known: dict[str | Block, int] = {}
        self.made: dict[Value, Op] = {}
        # In this order a call finds its callee known: a chain of functions may be as long as one likes.
        for name in callees_first(self.functions):
            self._function(name)

    def op(self, op: Op) -> int:
        """Of the op alone, with what it calls and holds."""
        match op:
            case Gen():
                return self._tokens(op)
            case Select() | Score():
                return 1
            case Call():
                return self._function(op.callee)
            case If() | Try():
                return max(map(self.block, blocks(op)))
            case For():
                return self._rounds(op) * self.block(op.body)
            case While():
                return self.block(op.test) + self.block(op.body)
        return max(map(self.block, blocks(op)), default=0)

    def block(self, block: Block) -> int:
        if block not in self.known:
            self.known[block] = max((self.op(op) + chain for op, chain in zip(block.ops, self.waiting(block, 0))), default=0)
        return self.known[block]

    def waiting(self, block: Block, after: int) -> list[int]:
        """For each op the longest chain that waits for it; `after`: the one that waits for the block."""
        self.made.update((result, op) for op in block.ops for result in op.results)
        return [*self._walk(block, after)][::-1]

    def _walk(self, block: Block, after: int) -> Iterator[int]:
        readers: dict[Value, int] = {}
        # The longest chains that begin with a later op: of any kind, with one that may leave the block, with one that the host sees.
        longest = leaving = host = after
        for op in reversed(block.ops):
            effect = op_effect(op, self.effects)
            leaves, shown = op.terminator or Effect.EXIT in effect, Effect.HOST in effect
            chain = max(after, leaving, host if shown else 0, longest if leaves else 0, *(readers.get(r, 0) for r in op.results))
            yield chain
            from_here = chain + self.op(op)
            readers.update((v, max(readers.get(v, 0), from_here)) for v in free_values(op))
            longest = max(longest, from_here)
            leaving = from_here if leaves else leaving
            host = from_here if shown else host

    def _function(self, name: str) -> int:
        if name not in self.known:
            # A function that calls itself counts once.
            self.known[name] = 0
            self.known[name] = self.block(self.functions[name].body)
        return self.known[name]

    def _tokens(self, gen: Gen) -> int:
        if isinstance(gen.max_tokens, Literal) and isinstance(gen.max_tokens.value, int):
            return gen.max_tokens.value
        return self.free if gen.results[1].type == STR and not (gen.regex or gen.schema or gen.grammar) else _TYPED

    def _rounds(self, loop: For) -> int:
        items = self.made.get(loop.items) if isinstance(loop.items, Value) else None
        match items:
            case Const(value=text):
                return len(json.loads(text))
            case PureCall(function="range", args=(Literal(value=int(count)),)):
                return max(0, count)
        return 1
