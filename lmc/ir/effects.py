"""What ops and functions do beside giving results, counted through regions and calls.

    def ask(q: str) -> str:      # MODEL | FAIL
        user: "${q}"
        assistant: a = gen()
        return a

A function's effects are those of its ops and of the functions it calls; recursion is fine.  `EXIT` never leaves a function, and a
loop keeps the `break`s and `continue`s of its body.
"""

from __future__ import annotations

from collections.abc import Mapping

from lmc.ir.core import Effect, Function, Module, Op, blocks, walk_ops
from lmc.ir.ops import Break, Call, Continue, ExternCall, For, While


def function_effects(module: Module) -> dict[str, Effect]:
    """The effects of calling each function."""
    effects = {f.name: _own_effects(f) for f in module.functions}
    callers: dict[str, list[str]] = {f.name: [] for f in module.functions}
    for function in module.functions:
        for op in walk_ops(function.body):
            if isinstance(op, Call):
                callers.setdefault(op.callee, []).append(function.name)
    changed = list(effects)
    while changed:
        name = changed.pop()
        for caller in callers[name]:
            if effects[caller] | effects[name] != effects[caller]:
                effects[caller] |= effects[name]
                changed.append(caller)
    return effects


def _own_effects(function: Function) -> Effect:
    effect = Effect.PURE
    for op in walk_ops(function.body):
        effect |= _plain_effect(op)
    return effect & ~Effect.EXIT


def _plain_effect(op: Op) -> Effect:
    if isinstance(op, ExternCall) and op.pure:
        return op.effect & ~Effect.HOST
    return op.effect


def op_effect(op: Op, functions: Mapping[str, Effect]) -> Effect:
    """The effects of one op, of its regions and of its callee.  `functions` is what `function_effects` gave."""
    effect = _plain_effect(op)
    if isinstance(op, Call):
        effect |= functions.get(op.callee, Effect.PURE)
    for block in blocks(op):
        for inner in block.ops:
            effect |= op_effect(inner, functions)
    if isinstance(op, (For, While)) and not leaves_loop(op):
        effect &= ~Effect.EXIT
    return effect


def leaves_loop(loop: For | While) -> bool:
    """Whether something in the loop leaves more than the loop: a return, or a fail."""
    return any(_leaves(op, inside=True) for block in blocks(loop) for op in block.ops)


def _leaves(op: Op, *, inside: bool) -> bool:
    if isinstance(op, (Break, Continue)):
        return not inside
    if Effect.EXIT in op.effect:
        return True
    return any(_leaves(inner, inside=inside) for block in blocks(op) for inner in block.ops)
