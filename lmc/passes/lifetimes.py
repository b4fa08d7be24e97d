"""The last use of a context releases it, the next use is told, and prefixes of literal text are pinned for later calls.

Before:

    func @f(%question: str) -> str {
      %c: context = context.new()
      %c_1: context = context.append(%c, "You are a patient tutor who answers in one short paragraph and never guesses.")[role = system]
      %c_2: context = context.append(%c_1, %question)[role = user]
      %c_3: context, %answer: str = lm.gen(%c_2)[role = assistant, site = "0"]
      %c_4: context = context.append(%c_3, "Are you sure?")[role = user]
      %c_5: context, %sure: bool = lm.gen(%c_4)[role = assistant, site = "1"]
      control.return(%answer)
    }

After:

    func @f(%question: str) -> str {
      %c: context = context.new()
      %c_1: context = context.append(%c, "You are a patient tutor who answers in one short paragraph and never guesses.")[role = system]
      hint.pin(%c_1)
      %c_2: context = context.append(%c_1, %question)[role = user]
      %c_3: context, %answer: str = lm.gen(%c_2)[role = assistant, site = "0"]
      hint.keep(%c_3)[next_use = 0]
      %c_4: context = context.append(%c_3, "Are you sure?")[role = user]
      hint.release(%c_3)
      %c_5: context, %sure: bool = lm.gen(%c_4)[role = assistant, site = "1"]
      hint.release(%c_5)
      control.return(%answer)
    }

Near miss, which does not change: a context that is handed on lives where it goes, one that was only written to has nothing in the
cache, and a short text is computed as soon as it is found.

    func @f(%c: context, %question: str) -> context {
      %c_1: context = context.append(%c, %question)[role = user]
      %c_2: context, %answer: str = lm.gen(%c_1)[role = assistant, site = "0"]
      control.return(%c_2)
    }

`next_use` counts the calls of the model before the context's next reader.  It is left out where an extern or a line of input is waited
for first, or where the block ends: then nobody can say when that will be.  A release waits for all readers in its block.  What a
loop carries is kept in each round and has no release in it; like what is in a list, and what a failure or a cancel leaves behind, it
ends with the last thing that holds it, which the machine sees.
"""

from __future__ import annotations

from lmc.ir.core import Block, Effect, Literal, Module, Op, Value, free_values
from lmc.ir.effects import function_effects, op_effect
from lmc.ir.ops import (
    ContextAppend, ContextImage, ContextNew, Gen, HintKeep, HintPin, HintPrefill, HintRelease, Select, Speculate, Template, Yield,
)
from lmc.passes.rewriting import rewrite_blocks, rewrite_module
from lmc.types import ContextT, ListT, Type

#: Characters of literal text from which on a prefix is pinned; a shorter one is computed in the pass that its reader needs anyway.
_LEAST_PINNED = 64
#: Ops that give a context whose tokens are computed, under a name of its own.
_COMPUTED = (Gen, Select, Speculate, Template)
#: What only writes to a context: of what these give nothing is in the cache yet.
_WRITTEN = (ContextNew, ContextAppend, ContextImage)


def lifetimes(module: Module) -> Module:
    """The module with `hint.keep`, `hint.release` and `hint.pin` where contexts are made, last read, and built of literals."""
    effects = function_effects(module)
    return rewrite_module(
        module, lambda function: rewrite_blocks(function, lambda block: _hinted(block, effects), (Speculate, Template)))


def _hinted(block: Block, effects: dict[str, Effect]) -> Block:
    after: dict[Op, list[Op]] = {}
    readers: dict[Value, list[Op]] = {}
    for op in block.ops:
        for value in free_values(op):
            readers.setdefault(value, []).append(op)
    for index, op in enumerate(block.ops):
        for value in op.results:
            if _holds_contexts(value.type):
                _add(op, value, readers.get(value, []), _Rest(block.ops[index + 1 :], effects), after)
    for op, value in _literal_prefixes(block, readers):
        after.setdefault(op, []).insert(0, HintPin((), op.span, value))
    if not after:
        return block
    return Block(block.args, tuple(new for op in block.ops for new in (op, *after.get(op, ()))))


def _add(op: Op, value: Value, readers: list[Op], rest: _Rest, after: dict[Op, list[Op]]) -> None:
    """What is to be said of a result; hints that are there already say all there is to say."""
    if any(isinstance(reader, (HintKeep, HintRelease)) for reader in readers):
        return
    if isinstance(op, _WRITTEN) and not any(isinstance(reader, HintPrefill) for reader in readers):
        return
    handed_on = readers[-1] if readers and readers[-1].terminator else None
    # To the next round, or to what follows a loop or a branch: it waits there.  Who gets what a function returns knows better.
    if readers and isinstance(op, _COMPUTED) and (handed_on is None or isinstance(handed_on, Yield)):
        after.setdefault(op, []).append(HintKeep((), op.span, value, rest.calls_before_use(value)))
    if handed_on is not None:
        return
    last = readers[-1] if readers else op
    after.setdefault(last, []).append(HintRelease((), last.span, value))


class _Rest:
    """What follows in a block."""

    __slots__ = ("ops", "effects")

    def __init__(self, ops: tuple[Op, ...], effects: dict[str, Effect]):
        self.ops, self.effects = ops, effects

    def calls_before_use(self, context: Value) -> int | None:
        """How many ops that ask the model come before one that asks it after `context`; None where a wait does, or none follows."""
        going_on, calls = {context}, 0
        for op in self.ops:
            effect = op_effect(op, self.effects)
            reads = not going_on.isdisjoint(free_values(op))
            if Effect.MODEL in effect:
                if reads:
                    return calls
                calls += 1
            if Effect.HOST in effect:
                return None
            if reads and isinstance(op, _WRITTEN):
                going_on.update(op.results)
        return None


def _literal_prefixes(block: Block, readers: dict[Value, list[Op]]) -> list[tuple[Op, Value]]:
    """The longest contexts of literal text, with the ops that make them."""
    length: dict[Value, int] = {}
    found = []
    for op in block.ops:
        if isinstance(op, ContextNew):
            length[op.results[0]] = 0
        elif isinstance(op, ContextAppend) and op.context in length and isinstance(op.text, Literal):
            length[op.results[0]] = length[op.context] + len(str(op.text.value))
            found.append((op, op.results[0]))
    return [(op, value) for op, value in found if length[value] >= _LEAST_PINNED and _ends_prefix(value, length, readers.get(value, []))]


def _ends_prefix(value: Value, length: dict[Value, int], readers: list[Op]) -> bool:
    """Whether something else than literal text follows, and nothing was said yet."""
    if any(isinstance(op, HintPin) for op in readers):
        return False
    return any(not op.terminator and not isinstance(op, HintPrefill) and not any(r in length for r in op.results) for op in readers)


def _holds_contexts(type: Type) -> bool:
    return isinstance(type, ContextT) or isinstance(type, ListT) and isinstance(type.element, ContextT)
