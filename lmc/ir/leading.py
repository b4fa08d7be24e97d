"""Which parameters a function's conversations begin with, in the order in which their texts come.

    def qa(document: str, question: str) -> str:
        system: "Answer from the document."
        user: "Document: ${document}\\nQuestion: ${question}"        document, then question
        assistant: a = gen()
        return a

Of two calls with equal leading arguments the prompts begin alike; the first ones matter most.  What is asked after the first
generation depends on what the model wrote, and no longer counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lmc.ir.core import Block, Function, Module, Op, Operand, Value, blocks, free_values, operands, walk_ops
from lmc.ir.ops import Call, ContextAppend, Gen, Score, Select, TextConcat
from lmc.types import ContextT

#: Names of parameters, in order.
Names = tuple[str, ...]


def leading_parameters(module: Module) -> dict[str, Names]:
    """By function, the parameters that its conversations begin with."""
    functions = {f.name: f for f in module.functions}
    found: dict[str, Names] = {}
    for name in callees_first(functions):
        found[name] = _Walk(functions, found).names(functions[name])
    return {name: found[name] for name in functions}


def callees_first(functions: Mapping[str, Function]) -> Iterator[str]:
    """All names, each after those that it calls, but for recursion."""
    begun: set[str] = set()
    stack = [(name, False) for name in reversed(functions)]
    while stack:
        name, done = stack.pop()
        if done:
            yield name
        elif name not in begun:
            begun.add(name)
            stack.append((name, True))
            stack += [(op.callee, False) for op in walk_ops(functions[name].body) if isinstance(op, Call)]


class _Walk:
    """One function.  `sources`: the parameters that a value is made from; `order`: those met so far in texts."""

    __slots__ = ("functions", "found", "sources", "order")

    def __init__(self, functions: Mapping[str, Function], found: dict[str, Names]):
        self.functions, self.found = functions, found
        self.sources: dict[Value, Names] = {}
        self.order: dict[str, None] = {}

    def names(self, function: Function) -> Names:
        arguments = function.body.args[len(function.body.args) - len(function.params):]
        self.sources = {value: (param.name,) for value, param in zip(arguments, function.params)}
        self._block(function.body)
        return tuple(self.order)

    def _block(self, block: Block) -> bool:
        """Whether the model is asked, so that the walk is at its end."""
        return any(self._op(op) for op in block.ops)

    def _op(self, op: Op) -> bool:
        if isinstance(op, (Gen, Select, Score)):
            return True
        if isinstance(op, ContextAppend):
            self.order.update(dict.fromkeys(self._sources([op.text])))
        elif isinstance(op, Call) and self._call(op):
            return True
        mine = self._sources(op.pieces if isinstance(op, TextConcat) else (v for v in free_values(op) if not isinstance(v.type, ContextT)))
        for inner in blocks(op):
            self.sources.update((arg, self._sources(operands(op))) for arg in inner.args)
            if self._block(inner):
                return True
        self.sources.update((result, mine) for result in op.results)
        return False

    def _call(self, op: Call) -> bool:
        callee = self.functions[op.callee]
        # Of a function that is still to come, and so calls this one, nothing is known.
        leading = self.found.get(op.callee, ())
        given = dict(zip((p.name for p in callee.params), op.args[len(op.args) - len(callee.params):]))
        self.order.update(dict.fromkeys(self._sources(given[name] for name in leading)))
        return bool(leading)

    def _sources(self, values: Iterable[Operand]) -> Names:
        return tuple(dict.fromkeys(name for v in values for name in self.sources.get(v, ())))
