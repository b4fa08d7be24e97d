"""Walking a function with a chance to replace each op: what every pass here is made of.

A pass says what becomes of one op, given its operands as they are by now; blocks, regions and uses follow.  Ops that nothing
changed keep their identity, so that "changed" is a comparison.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from lmc.ir.builder import substitute
from lmc.ir.core import Block, Function, Module, Op, Operand, Value

#: What an op becomes: ops in its place, and operands in place of its results.
Rewritten = tuple[list[Op], dict[Value, Operand]]
Rewrite = Callable[[Op], Rewritten]


def rewrite_module(module: Module, rewrite: Callable[[Function], Function]) -> Module:
    """The module with each function rewritten; the module itself where none changed."""
    functions = tuple(map(rewrite, module.functions))
    if all(a is b for a, b in zip(functions, module.functions)):
        return module
    return dataclasses.replace(module, functions=functions)


def with_body(function: Function, body: Block) -> Function:
    """The function with another body; the function itself where it is the same."""
    return function if body is function.body else dataclasses.replace(function, body=body)


def rewrite_function(function: Function, rewrite: Rewrite) -> Function:
    """The function with `rewrite` applied to each op, operands first, inner regions before the op around them."""
    replaced: dict[Value, Operand] = {}

    def block(old: Block) -> Block:
        ops: list[Op] = []
        for op in old.ops:
            new_ops, results = rewrite(substitute(op, replaced, block))
            ops += new_ops
            replaced.update(results)
            if ops and ops[-1].terminator:
                # A rewrite may have brought a `return` to the surface: nothing after it can run.
                break
        if len(ops) == len(old.ops) and all(a is b for a, b in zip(ops, old.ops)):
            return old
        return Block(old.args, tuple(ops))

    return with_body(function, block(function.body))


def rewrite_blocks(function: Function, rewrite: Callable[[Block], Block], whole: tuple[type[Op], ...] = ()) -> Function:
    """The function with `rewrite` applied to each block, those inside first; regions of the ops `whole` are left alone."""

    def block(old: Block) -> Block:
        ops = tuple(op if isinstance(op, whole) else substitute(op, {}, block) for op in old.ops)
        return rewrite(old if all(a is b for a, b in zip(ops, old.ops)) else Block(old.args, ops))

    return with_body(function, block(function.body))
