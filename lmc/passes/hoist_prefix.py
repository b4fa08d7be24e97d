"""What the conversations of a loop begin with, and that no round changes, is built once, outside.

Before:

    func @f(%document: str, %questions: list<str>) -> list<str> {
      %answers: list<str> = lm.map(%questions)[site = "0"] {
      ^(%q: str):
        %c: context = context.new()
        %c_1: context = context.append(%c, "Answer from the document.")[role = system]
        %text: str = text.concat("Document: ", %document, "\\nQuestion: ", %q)
        %c_2: context = context.append(%c_1, %text)[role = user]
        %c_3: context, %a: str = lm.gen(%c_2)[role = assistant, site = "0"]
        control.yield(%a)
      }
      control.return(%answers)
    }

After:

    func @f(%document: str, %questions: list<str>) -> list<str> {
      %c: context = context.new()
      %c_1: context = context.append(%c, "Answer from the document.")[role = system, deferred = true]
      %text: str = text.concat("Document: ", %document, "\\nQuestion: ")
      %prefix: context = context.append(%c_1, %text)[role = user, deferred = true]
      %answers: list<str> = lm.map(%questions)[site = "0"] {
      ^(%q: str):
        %text_1: str = text.concat("Document: ", %document, "\\nQuestion: ", %q)
        %c_2: context = context.append(%prefix, %q)[role = user]
        %c_3: context, %a: str = lm.gen(%c_2)[role = assistant, site = "0"]
        control.yield(%a)
      }
      control.return(%answers)
    }

(The text that nobody reads is taken away by `dead_code`.)  Inner loops come first, so that what several loops leave alone leaves them
all; a `fork` then continues the longer conversation, and so do the arms of a `fork:` that begin alike.

Near miss, which does not change: text behind the first piece that varies is never moved, and contexts that may be compared stay apart.

    func @f(%document: str, %questions: list<str>) -> list<context> {
      %answers: list<str> = lm.map(%questions)[site = "0"] {
      ^(%q: str):
        %c: context = context.new()
        %text: str = text.concat(%q, "\\nAnswer from the document: ", %document)
        %c_1: context = context.append(%c, %text)[role = user]
        %c_2: context, %a: str = lm.gen(%c_1)[role = assistant, site = "0"]
        control.yield(%a)
      }
      %starts: list<context> = lm.map(%questions)[site = "1"] {
      ^(%q_1: str):
        %d: context = context.new()
        %d_1: context = context.append(%d, %document)[role = user]
        control.yield(%d_1)
      }
      control.return(%starts)
    }

A loop may have no round, so an append that is moved keeps its failure for those who go on from it (`deferred`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile

from lmc.ir.builder import rebuild, replaced_in, substitute
from lmc.ir.core import Block, Effect, Function, Module, Op, Operand, Value, blocks, free_values, walk_ops
from lmc.ir.effects import function_effects, op_effect
from lmc.ir.ops import (
    Assert, Branches, Call, ContextAppend, ContextNew, For, Fork, Gen, Map, Role, Score, Select, While, Yield,
)
from lmc.passes.identity import compared_contexts, stays_apart
from lmc.passes.rewriting import Rewritten, rewrite_function, rewrite_module
from lmc.passes.text_pieces import Pieces, pieces_of, shared_by_all, without_start, worth_sharing, written
from lmc.passes.total import TEXT_TYPES, total
from lmc.types import CONTEXT, ContextT

#: Ops that raise what a deferred append before them has kept.
_READERS = (ContextAppend, Gen, Select, Score)


def hoist_prefix(module: Module) -> Module:
    """The module with the invariant beginnings of its loops' conversations outside of them."""
    compared, effects = compared_contexts(module), function_effects(module)
    return rewrite_module(module, lambda function: _hoist_function(function, compared, effects))


def _hoist_function(function: Function, compared: frozenset[Value], effects: dict[str, Effect]) -> Function:
    facts = _Facts(function, compared, effects)

    def rewrite(op: Op) -> Rewritten:
        match op:
            case Map() | Fork() | For() | While():
                return _Loop(op, facts).hoisted()
            case Branches():
                return _arms(op, facts)
        return [op], {}

    return rewrite_function(function, rewrite)


class _Facts:
    """What is known of a function's values.  `turns`: the role of the turn that is open in a context, where this function opened it."""

    __slots__ = ("compared", "effects", "made", "turns")

    def __init__(self, function: Function, compared: frozenset[Value], effects: dict[str, Effect]):
        self.compared, self.effects = compared, effects
        self.made = {r: op for op in walk_ops(function.body) for r in op.results}
        self.turns: dict[Operand, Role] = {
            op.results[0]: op.role for op in walk_ops(function.body) if isinstance(op, (ContextAppend, Gen, Select))
        }

    def only_writes(self, loop: For) -> bool:
        """Whether its rounds do nothing but put text together and append it to a conversation."""
        appends = [op for op in loop.body.ops if isinstance(op, ContextAppend)]
        others = [op for op in loop.body.ops if not isinstance(op, (ContextAppend, Yield))]
        written = all(op.results[0] not in self.compared and isinstance(op.text.type, TEXT_TYPES) for op in appends)
        return bool(appends) and written and not self.compared.intersection(loop.results) and all(map(total, others))

    def header(self, loop: For, outer: Mapping[Value, Operand]) -> Op:
        """Such a loop, to stand outside."""
        ops = (self.outside(op) if isinstance(op, ContextAppend) else op for op in loop.body.ops)
        return substitute(rebuild(loop, body=Block(loop.body.args, tuple(ops))), outer, lambda body: replaced_in(body, outer))

    def apart(self, value: Value, rest: Pieces) -> bool:
        return stays_apart(value, rest, self.compared, self.made)

    def prefix(self, append: ContextAppend, context: Operand, start: Pieces) -> tuple[Op, ...]:
        """What builds the context with the start of an append's text, to stand outside; the append comes last."""
        text, ops = written(start, append.span)
        self.made.update((op.results[0], op) for op in ops)
        return *ops, self.outside(rebuild(append, (Value(CONTEXT, "prefix"),), context=context, text=text))

    def outside(self, append: ContextAppend) -> ContextAppend:
        self.turns[append.results[0]] = append.role
        # In a turn that is open already an append cannot fail.
        return rebuild(append, deferred=self.turns.get(append.context) is not append.role)


@dataclass(frozen=True, slots=True)
class _Move:
    """Of one op: the ops that go, and those that stay in its place."""

    outside: tuple[Op, ...]
    inside: tuple[Op, ...] = ()


class _Loop:
    """One loop.  `outer`: values of its body that are values outside; `inside`: those that a round makes or gets."""

    __slots__ = ("loop", "facts", "outer", "inside", "ahead")

    def __init__(self, loop: Map | Fork | For | While, facts: _Facts):
        self.loop, self.facts = loop, facts
        body = loop.body
        # The branches of a fork begin with the context that it is given.
        self.outer: dict[Value, Operand] = {body.args[0]: loop.context} if isinstance(loop, Fork) else {}
        self.inside = {*body.args, *(r for op in body.ops for r in op.results)} - self.outer.keys()
        # Up to where a round may end, or the host sees something: what fails there is the first that fails.
        self.ahead = list(takewhile(lambda op: not self._ends(op), body.ops))

    def hoisted(self) -> Rewritten:
        moves = self._needed(self._moves())
        if not moves:
            return [self.loop], {}
        ops = [o for op in self.loop.body.ops for o in (moves[op].inside if op in moves else (op,))]
        outside = [op for move in moves.values() for op in move.outside]
        return [*outside, self._around(Block(self.loop.body.args, tuple(ops)), outside)], {}

    def _ends(self, op: Op) -> bool:
        return op.terminator or isinstance(op, Assert) or bool((Effect.EXIT | Effect.HOST) & op_effect(op, self.facts.effects))

    def _moves(self) -> dict[Op, _Move]:
        moves: dict[Op, _Move] = {}
        for op in self.ahead:
            move = self._move(op)
            if move is not None:
                moves[op] = move
                self.inside.difference_update(() if move.inside else op.results)
        return moves

    def _move(self, op: Op) -> _Move | None:
        facts, invariant = self.facts, not any(v in self.inside for v in free_values(op))
        if isinstance(op, ContextAppend):
            return self._append(op, invariant)
        if isinstance(op, For):
            return _Move((facts.header(op, self.outer),)) if invariant and facts.only_writes(op) else None
        free = isinstance(op, ContextNew) and op.results[0] not in facts.compared
        return _Move((op,)) if free or invariant and not isinstance(op, ContextNew) and total(op) else None

    def _append(self, op: ContextAppend, invariant: bool) -> _Move | None:
        facts, context, value = self.facts, self.outer.get(op.context, op.context), op.results[0]
        if context in self.inside or not isinstance(op.text.type, TEXT_TYPES):
            return None
        if invariant and value not in facts.compared:
            return _Move((facts.outside(rebuild(op, context=context)),))
        pieces = pieces_of(op.text, facts.made)
        start = _leading(pieces, self.inside)
        rest = pieces[len(start):]
        if not rest or not worth_sharing(start) or not facts.apart(value, rest):
            return None
        outside = facts.prefix(op, context, start)
        text, ops = written(rest, op.span)
        return _Move(outside, (*ops, rebuild(op, context=outside[-1].results[0], text=text)))

    def _needed(self, moves: dict[Op, _Move]) -> dict[Op, _Move]:
        """The appends that an op goes on from which is sure to run (a failure must come out), and what they are made of."""
        needed: set[Value] = set()
        kept: dict[Op, _Move] = {}
        continued = self._continued()
        for op, move in reversed(moves.items()):
            contexts = continued if isinstance(op, (ContextAppend, For)) else needed
            if move.inside or not contexts.isdisjoint(op.results):
                kept[op] = move
                needed.update(v for o in move.outside for v in free_values(o))
        return dict(reversed(kept.items()))

    def _continued(self) -> set[Value]:
        """The contexts that something goes on from in each round, itself or by what it makes of them."""
        found: set[Value] = set()
        for op in reversed(self.ahead):
            if isinstance(op, _READERS):
                found.add(op.context)
            elif isinstance(op, Call) or not found.isdisjoint(op.results):
                found.update(v for v in free_values(op) if isinstance(v.type, ContextT))
        return found

    def _around(self, body: Block, outside: list[Op]) -> Op:
        """The loop with its new body; a fork goes on from the longer context where nothing else does."""
        loop = self.loop
        if not isinstance(loop, Fork):
            return rebuild(loop, body=body)
        read = {v for op in body.ops for v in free_values(op)}
        longer = [r for op in outside for r in op.results if isinstance(op, ContextAppend) and r in read]
        if len(longer) != 1 or body.args[0] in read:
            return rebuild(loop, body=body)
        return rebuild(loop, context=longer[0], body=replaced_in(body, {longer[0]: body.args[0]}))


def _arms(op: Branches, facts: _Facts) -> Rewritten:
    """The arms of a fork that begin alike begin with a longer context."""
    firsts = [_first_append(arm, facts) for arm in op.arms]
    if len({first.role if first else None for first in firsts}) != 1 or None in firsts:
        return [op], {}
    made = {r for arm in op.arms for inner in arm.ops for r in inner.results}
    start = shared_by_all([_leading(pieces_of(first.text, facts.made), made) for first in firsts])
    rests = [without_start(pieces_of(first.text, facts.made), start) for first in firsts]
    if not worth_sharing(start) or not all(facts.apart(f.results[0], rest) for f, rest in zip(firsts, rests)):
        return [op], {}
    outside = facts.prefix(firsts[0], op.context, start)
    arms = tuple(_without(arm, first, rest) for arm, first, rest in zip(op.arms, firsts, rests))
    return [*outside, rebuild(op, context=outside[-1].results[0], arms=arms)], {}


def _leading(pieces: Pieces, inside: set[Value]) -> Pieces:
    """The first pieces that are there outside and surely have a form in a text."""
    return tuple(takewhile(lambda piece: piece not in inside and isinstance(piece.type, TEXT_TYPES), pieces))


def _first_append(arm: Block, facts: _Facts) -> ContextAppend | None:
    """What alone goes on from the context that the arm is given, if it is an append that comes before all that is seen."""
    context = arm.args[0]
    readers = [op for op in arm.ops if context in free_values(op)]
    if len(readers) != 1 or not isinstance(readers[0], ContextAppend) or readers[0].text == context:
        return None
    before = arm.ops[:arm.ops.index(readers[0])]
    read = any(isinstance(op, _READERS) and op.context is readers[0].results[0] for op in arm.ops)
    return readers[0] if read and all(total(op) for op in before) else None


def _without(arm: Block, first: ContextAppend, rest: Pieces) -> Block:
    """The arm, whose context has the start of its first append already."""
    if not rest:
        ops = tuple(op for op in arm.ops if op is not first)
        return replaced_in(Block(arm.args, ops), {first.results[0]: arm.args[0]})
    text, more = written(rest, first.span)
    changed = (*more, rebuild(first, text=text))
    return Block(arm.args, tuple(o for op in arm.ops for o in (changed if op is first else (op,))))
