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
    return _effect(op, functions)[0]


def leaves_loop(loop: For | While) -> bool:
    """Whether something in the loop leaves more than the loop: a return, or a fail."""
    return _effect(loop, {})[1]


def _effect(op: Op, functions: Mapping[str, Effect]) -> tuple[Effect, bool]:
    """The effects, and whether something in the op leaves more than a loop; both in one walk, for loops stand in loops."""
    effect = _plain_effect(op)
    leaves = Effect.EXIT in op.effect and not isinstance(op, (Break, Continue))
    if isinstance(op, Call):
        effect |= functions.get(op.callee, Effect.PURE)
    for block in blocks(op):
        for inner in block.ops:
            inner_effect, inner_leaves = _effect(inner, functions)
            effect |= inner_effect
            leaves |= inner_leaves
    if isinstance(op, (For, While)) and not leaves:
        effect &= ~Effect.EXIT
    return effect, leaves
