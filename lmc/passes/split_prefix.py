"""In a loop, a function that is too large to be inlined is called with what its conversation begins with.

Before:

    func @solve(%problem: str) -> str {
      %c: context = context.new()
      %c_1: context = context.append(%c, "You solve problems.")[role = system]
      %c_2: context = context.append(%c_1, %problem)[role = user]
      %c_3: context, %a: str = lm.gen(%c_2)[role = assistant, site = "0"]
      %none: bool = pure.call(%a, "")[function = "eq"]
      control.if(%none) {
        control.return("nothing")
      } {
        control.yield()
      }
      control.return(%a)
    }

    func @main(%problems: list<str>) -> list<str> {
      %all: list<str> = lm.map(%problems)[site = "0"] {
      ^(%p: str):
        %a: str = call(%p)[callee = "solve", site = "1"]
        control.yield(%a)
      }
      control.return(%all)
    }

After:

    func @solve(%problem: str) -> str {
      %c: context = context.new()
      %c_1: context = context.append(%c, "You solve problems.")[role = system]
      %c_2: context = context.append(%c_1, %problem)[role = user]
      %c_3: context, %a: str = lm.gen(%c_2)[role = assistant, site = "0"]
      %none: bool = pure.call(%a, "")[function = "eq"]
      control.if(%none) {
        control.return("nothing")
      } {
        control.yield()
      }
      control.return(%a)
    }

    func @solve+prefix(%prefix: context, %problem: str) -> str {
      %c_3: context, %a: str = lm.gen(%prefix)[role = assistant, site = "0"]
      %none: bool = pure.call(%a, "")[function = "eq"]
      control.if(%none) {
        control.return("nothing")
      } {
        control.yield()
      }
      control.return(%a)
    }

    func @main(%problems: list<str>) -> list<str> {
      %all: list<str> = lm.map(%problems)[site = "0"] {
      ^(%p: str):
        %c: context = context.new()
        %c_1: context = context.append(%c, "You solve problems.")[role = system]
        %c_2: context = context.append(%c_1, %p)[role = user]
        %a: str = call(%c_2, %p)[callee = "solve+prefix", site = "1"]
        control.yield(%a)
      }
      control.return(%all)
    }

Near miss, which does not change: outside of loops there is nothing to share, and what a condition decides is the callee's.

    func @solve(%problem: str) -> str {
      %none: bool = pure.call(%problem, "")[function = "eq"]
      control.if(%none) {
        control.return("nothing")
      } {
        control.yield()
      }
      %c: context = context.new()
      %c_1: context = context.append(%c, %problem)[role = user]
      %c_2: context, %a: str = lm.gen(%c_1)[role = assistant, site = "0"]
      control.return(%a)
    }

    func @main(%problems: list<str>) -> list<str> {
      %all: list<str> = lm.map(%problems)[site = "0"] {
      ^(%p: str):
        %a: str = call(%p)[callee = "solve", site = "1"]
        control.yield(%a)
      }
      control.return(%all)
    }

The call, its site and what it counts against budgets stay, so that paths and errors are those of the function as it was written;
`hoist_prefix` then takes out of the loop what does not vary.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from lmc.ir.builder import rebuild
from lmc.ir.core import Block, Effect, Function, Module, Op, Operand, Parameter, Value, blocks, free_values, walk_ops
from lmc.ir.effects import function_effects, op_effect
from lmc.ir.ops import ROUNDS, Assert, Call, ContextAppend, ContextNew, Gen, Score, Select
from lmc.passes.copying import fresh_block, inlined_ops
from lmc.passes.identity import compared_contexts
from lmc.passes.rewriting import Rewritten, rewrite_function, rewrite_module
from lmc.passes.total import TEXT_TYPES, total
from lmc.types import CONTEXT

_SUFFIX = "+prefix"


def split_prefix(module: Module) -> Module:
    """The module with such calls given their prefix."""
    wanted = {op.callee for f in module.functions for op in _called_in_loops(f.body, inside=False)}
    compared, effects = compared_contexts(module), function_effects(module)
    prefixes = {f.name: _prefix(f, compared, effects) for f in module.functions if f.name in wanted and f.kind == "def"}
    found = {name: prefix for name, prefix in prefixes.items() if prefix is not None}
    if not found:
        return module
    functions: list[Function] = []
    for function in module.functions:
        functions.append(function)
        if function.name in found:
            functions.append(found[function.name].rest(function))
    looped = {op for f in functions for op in _called_in_loops(f.body, inside=False)}

    def rewrite(op: Op) -> Rewritten:
        return ([op], {}) if not isinstance(op, Call) or op.callee not in found else (found[op.callee].before(op), {})

    def in_loops(function: Function) -> Function:
        return rewrite_function(function, lambda op: rewrite(op) if op in looped else ([op], {}))

    return rewrite_module(dataclasses.replace(module, functions=tuple(functions)), in_loops)


def _called_in_loops(block: Block, *, inside: bool) -> list[Call]:
    found: list[Call] = []
    for op in block.ops:
        found += [op] if inside and isinstance(op, Call) else []
        for inner in blocks(op):
            found += _called_in_loops(inner, inside=inside or isinstance(op, ROUNDS))
    return found


@dataclass(frozen=True, slots=True)
class _Prefix:
    """Of a function: its arguments, the ops that build the prefix, and the context that they give."""

    args: tuple[Value, ...]
    ops: tuple[Op, ...]
    context: Value

    def rest(self, function: Function) -> Function:
        """The function that goes on from its prefix."""
        values: dict[Value, Operand] = {}
        prefix = Value(CONTEXT, "prefix")
        appended = {op for op in self.ops if isinstance(op, (ContextNew, ContextAppend))}
        body = Block(self.args, tuple(op for op in function.body.ops if op not in appended))
        values[self.context] = prefix
        copied = fresh_block(body, values)
        return dataclasses.replace(
            function, name=function.name + _SUFFIX, params=(Parameter("prefix", CONTEXT), *function.params),
            body=Block((prefix, *copied.args), copied.ops))

    def before(self, call: Call) -> list[Op]:
        """The call with its prefix, and the ops that build it."""
        values: dict[Value, Operand] = dict(zip(self.args, call.args))
        ops = inlined_ops(self.ops, values, call)
        return [*ops, rebuild(call, args=(values[self.context], *call.args), callee=call.callee + _SUFFIX)]


def _prefix(function: Function, compared: frozenset[Value], effects: dict[str, Effect]) -> _Prefix | None:
    """What the function begins with, whatever its arguments are; None where that is no text."""
    uses: dict[Value, int] = {}
    for op in walk_ops(function.body):
        for value in free_values(op):
            uses[value] = uses.get(value, 0) + 1
    chain: list[Op] = []
    texts: list[Op] = []
    known: set[Value] = set(function.body.args)
    for op in function.body.ops:
        if op.terminator or isinstance(op, Assert) or (Effect.EXIT | Effect.HOST) & op_effect(op, effects):
            break
        if _continues(op, chain, known) and op.results[0] not in compared:
            chain.append(op)
        elif total(op) and not isinstance(op, ContextNew) and known.issuperset(free_values(op)):
            texts.append(op)
            known.update(op.results)
        elif chain and isinstance(op, (Gen, Select, Score, ContextAppend)) and op.context is chain[-1].results[0]:
            return _built(function, chain, texts, uses)
    # Nothing is sure to go on from the last text: it stays, and goes on from those before.
    return _built(function, chain[:-1], texts, uses)


def _continues(op: Op, chain: list[Op], known: set[Value]) -> bool:
    if not chain:
        return isinstance(op, ContextNew)
    if not isinstance(op, ContextAppend) or op.context is not chain[-1].results[0]:
        return False
    return isinstance(op.text.type, TEXT_TYPES) and (not isinstance(op.text, Value) or op.text in known)


def _built(function: Function, chain: list[Op], texts: list[Op], uses: dict[Value, int]) -> _Prefix | None:
    # A context that others go on from too is where the prefix ends.
    end = next((i for i, op in enumerate(chain) if uses[op.results[0]] != 1), len(chain) - 1)
    chain = chain[:end + 1]
    if len(chain) < 2:
        return None
    needed = {v for op in chain for v in free_values(op)}
    kept: list[Op] = []
    for op in reversed(texts):
        if not needed.isdisjoint(op.results):
            kept.append(op)
            needed.update(free_values(op))
    mine = {*chain, *kept}
    ops = tuple(op for op in function.body.ops if op in mine)
    return _Prefix(function.body.args, ops, chain[-1].results[0])
