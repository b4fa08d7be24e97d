"""Which contexts a program may compare.  Contexts compare by identity, so that two of these may not become one, nor one two.

    %a: context = context.append(%c, "x")…     %b: context = context.append(%c, "x")…     alike, and `%a == %b` is false
    %l: list<context> = list.make(%a)                                                     of `%a` it may be seen

What is only gone on from (by appends, generations, forks) cannot be told apart from another context with the same content.  A value
hands its identity on through regions, calls and appends that may add nothing; it is kept where it goes anywhere else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from lmc.ir.core import Block, Function, Literal, Module, Op, Operand, Value, blocks, operands, walk_ops
from lmc.ir.ops import (
    Branches, Break, Call, ContextAppend, ContextImage, Continue, For, Fork, Gen, HintKeep, HintPin, HintPrefill, HintRelease, Map, Return,
    Score, Select, TextConcat, While, Yield,
)
from lmc.types import ContextT, StrT

#: Ops that give a context of their own, or none.
_GO_ON = (ContextImage, Gen, Select, Score, HintKeep, HintPin, HintPrefill, HintRelease)
#: A context, and the value that may be the same one; None where it may be compared.
_Handed = Iterator[tuple[Operand, Value | None]]


def compared_contexts(module: Module) -> frozenset[Value]:
    """The contexts whose identity may be seen."""
    walk = _Walk(module)
    sources: dict[Value, list[Value]] = {}
    seen: list[Value] = []
    for source, target in walk.handed():
        if isinstance(source, Value) and isinstance(source.type, ContextT):
            if target is None:
                seen.append(source)
            else:
                sources.setdefault(target, []).append(source)
    found = set(seen)
    while seen:
        more = [s for s in sources.get(seen.pop(), ()) if s not in found]
        found.update(more)
        seen += more
    return frozenset(found)


def never_empty(text: Operand, made: dict[Value, Op]) -> bool:
    """Whether the text surely has a character.  `made`: the op of each value in reach."""
    if isinstance(text, Literal):
        return text.value != ""
    op = made.get(text)
    if isinstance(op, TextConcat):
        return any(never_empty(piece, made) for piece in op.pieces)
    return not isinstance(text.type, StrT)


def stays_apart(context: Value, rest: Iterable[Operand], compared: Collection[Value], made: dict[Value, Op]) -> bool:
    """Whether the context, where it may be compared, is surely another one than that to which the pieces of `rest` are appended."""
    return context not in compared or any(never_empty(piece, made) for piece in rest)


class _Walk:
    """All functions, op by op.  `made` is of the function that is walked."""

    __slots__ = ("module", "functions", "calls", "made")

    def __init__(self, module: Module):
        self.module = module
        self.functions = {f.name: f for f in module.functions}
        self.calls: dict[str, list[Call]] = {f.name: [] for f in module.functions}
        for function in module.functions:
            for op in walk_ops(function.body):
                if isinstance(op, Call):
                    self.calls[op.callee].append(op)
        self.made: dict[Value, Op] = {}

    def handed(self) -> _Handed:
        for function in self.module.functions:
            self.made = {r: op for op in walk_ops(function.body) for r in op.results}
            yield from self._block(function.body, (), function)

    def _block(self, block: Block, around: tuple[Op, ...], function: Function) -> _Handed:
        for op in block.ops:
            yield from self._exit(op, block, around, function) if op.terminator else self._op(op)
            for inner in blocks(op):
                yield from self._block(inner, (*around, op), function)

    def _op(self, op: Op) -> _Handed:
        match op:
            case ContextAppend():
                if not never_empty(op.text, self.made):
                    yield op.context, op.results[0]
            case Call():
                yield from zip(op.args, self.functions[op.callee].body.args)
            case For() | While():
                yield from _into(op.initial, _rounds(op), op.results)
            case _ if hasattr(op, "context") and any(blocks(op)):
                yield from ((op.context, block.args[0]) for block in blocks(op))
            case _ if not isinstance(op, _GO_ON):
                yield from ((o, None) for o in operands(op))

    def _exit(self, op: Op, block: Block, around: tuple[Op, ...], function: Function) -> _Handed:
        if isinstance(op, Return):
            calls = self.calls[function.name]
            outside = function.name in self.module.entries or not calls
            yield from _into(op.values, *(call.results for call in calls)) if not outside else ((v, None) for v in op.values)
        elif isinstance(op, (Break, Continue)):
            loop = next(o for o in reversed(around) if isinstance(o, (For, While)))
            yield from _into(op.values, loop.results, _rounds(loop))
        elif isinstance(op, Yield):
            yield from self._yield(op, block, around[-1])

    def _yield(self, op: Yield, block: Block, parent: Op) -> _Handed:
        match parent:
            case Fork() | Branches() | Map():
                yield from ((v, None) for v in op.values)
            case While() if block is parent.test:
                yield from _into(op.values[1:], parent.body.args, parent.results)
            case For() | While():
                yield from _into(op.values, _rounds(parent), parent.results)
            case _:
                yield from _into(op.values, parent.results)


def _rounds(loop: For | While) -> tuple[Value, ...]:
    """What a round gets from the one before."""
    return loop.body.args[1:] if isinstance(loop, For) else loop.test.args


def _into(values: Iterable[Operand], *targets: Iterable[Value]) -> _Handed:
    values = tuple(values)
    for places in targets:
        yield from zip(values, places)
