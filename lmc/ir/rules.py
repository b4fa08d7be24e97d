"""The types that each op wants: one small function for each op, in the order of `ops.py`.

    problems_of(op, tables)     what is wrong with its operands, results, attributes and the arguments of its regions
    yields_of(op, block)        the types that a `control.yield` in this region must give

Where values are defined and where terminators may stand is checked in `verifier.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from lmc.ir import ops
from lmc.ir.core import Automaton, Block, Extern, Function, Module, Op, Operand, operands
from lmc.ir.fits import fits, is_text
from lmc.pure import PURE
from lmc.types import (
    BOOL, CONTEXT, ERROR, FLOAT, INT, SCORED, STR, DictT, ListT, RecordT, TupleT, Type, UnionT, records_in,
)
from lmc.values import ValueMismatch, from_data

_STRINGS = ListT(STR)
_Problems = Iterator[str]


@dataclass(frozen=True, slots=True)
class Tables:
    """What an op's names refer to."""

    functions: Mapping[str, Function]
    externs: Mapping[str, Extern]
    automata: tuple[Automaton, ...] = ()

    @staticmethod
    def of(module: Module) -> Tables:
        return Tables({f.name: f for f in module.functions}, {e.name: e for e in module.externs}, module.automata)


def problems_of(op: Op, tables: Tables) -> _Problems:
    """Messages about this op alone."""
    rule = _RULES.get(type(op))
    if rule is not None:
        yield from rule(op, tables)
    if op.terminator and op.results:
        yield "a terminator has no results"


def yields_of(op: Op, block: Block) -> list[Type] | None:
    """What a yield at the end of `block`, a region of `op`, must give; None where `op`'s own rule has found it wrong."""
    results = [r.type for r in op.results]
    match op:
        case ops.Fork() | ops.Map():
            return [r.element for r in results] if all(isinstance(r, ListT) for r in results) else None
        case ops.Branches():
            return _arm_results(op, block)
        case ops.For():
            return [a.type for a in block.args[1:]]
        case ops.While():
            # The test hands its values to the body, or on false to the results.
            return [BOOL] + [a.type for a in op.body.args] if block is op.test else [a.type for a in op.test.args]
    return results


def _arm_results(op: ops.Branches, block: Block) -> list[Type] | None:
    at = 0
    for arm, count in zip(op.arms, op.counts):
        if arm is block:
            return [r.type for r in op.results[at:at + count]] if at + count <= len(op.results) else None
        at += count
    return None


# ------------------------------------------------------------------ small checks


def _want(operand: Operand | None, wanted: Type, what: str) -> _Problems:
    if operand is not None and not fits(operand.type, wanted):
        yield f"{what} is a {operand.type} where a {wanted} is wanted"


def _want_text(operand: Operand, what: str) -> _Problems:
    if not is_text(operand.type):
        yield f"{what} is a {operand.type}, which has no form in a text"


def _want_list(operand: Operand, what: str) -> _Problems:
    if not isinstance(operand.type, ListT):
        yield f"{what} is a {operand.type} where a list is wanted"


def _want_results(op: Op, *wanted: Type | None) -> _Problems:
    """None stands for any type."""
    if len(op.results) != len(wanted):
        yield f"has {len(op.results)} results where {len(wanted)} are wanted"
    for i, (result, type) in enumerate(zip(op.results, wanted)):
        if type is not None and not fits(type, result.type):
            yield f"result {i} is a {result.type} where a {type} is given"


def _want_args(block: Block, *wanted: Type) -> _Problems:
    if len(block.args) != len(wanted):
        yield f"a region has {len(block.args)} arguments where {len(wanted)} are wanted"
    for i, (arg, type) in enumerate(zip(block.args, wanted)):
        if not fits(type, arg.type):
            yield f"argument {i} of a region is a {arg.type} where a {type} is given"


# ------------------------------------------------------------ contexts, generation


def _context_new(op: ops.ContextNew, tables: Tables) -> _Problems:
    yield from _want_results(op, CONTEXT)


def _context_append(op: ops.ContextAppend, tables: Tables) -> _Problems:
    yield from _want(op.context, CONTEXT, "the context")
    yield from _want_text(op.text, "the text")
    yield from _want_results(op, CONTEXT)


def _context_image(op: ops.ContextImage, tables: Tables) -> _Problems:
    yield from _want(op.context, CONTEXT, "the context")
    yield from _want(op.image, STR, "the picture")
    yield from _want_results(op, CONTEXT)
    if op.role is not ops.Role.USER:
        yield f"shows a picture in a turn of `{op.role.value}`"


_GEN_OPTIONS = {
    "max_tokens": INT, "min_tokens": INT, "temperature": FLOAT, "top_p": FLOAT, "top_k": INT, "min_p": FLOAT, "seed": INT,
    "frequency_penalty": FLOAT, "presence_penalty": FLOAT, "repetition_penalty": FLOAT, "logprobs": INT, "heal": BOOL,
    "ignore_eos": BOOL, "stream": BOOL,
}


def _gen(op: ops.Gen, tables: Tables) -> _Problems:
    yield from _want(op.context, CONTEXT, "the context")
    yield from _want_results(op, CONTEXT, None)
    yield from _model_role(op)
    for name, type in _GEN_OPTIONS.items():
        yield from _want(getattr(op, name), type, f"`{name}`")
    if op.stop is not None and not fits(op.stop.type, STR) and not fits(op.stop.type, _STRINGS):
        yield f"`stop` is a {op.stop.type} where a str or a list of them is wanted"
    if op.regex is not None and op.schema is not None:
        yield "has both `regex` and `schema`"
    if op.automaton is not None and not 0 <= op.automaton < len(tables.automata):
        yield f"there is no automaton {op.automaton}"
    if op.follow is not None and len(op.follow) != 1:
        yield "`follow` is one character"


def _model_role(op: ops.Gen | ops.Select | ops.Score) -> _Problems:
    if op.role not in (ops.Role.ASSISTANT, ops.Role.RAW):
        yield f"generates in a turn of `{op.role.value}`"


def _template(op: ops.Template | ops.Speculate, tables: Tables) -> _Problems:
    yield from _want(op.context, CONTEXT, "the context")
    yield from _want_args(op.body, CONTEXT)
    *inside, end = op.body.ops
    chain = [inner for inner in inside if isinstance(inner, (ops.Gen, ops.ContextAppend)) and inner.results]
    gens = [inner for inner in chain if isinstance(inner, ops.Gen)]
    if not all(inner in chain or isinstance(inner, ops.TextConcat) for inner in inside):
        yield "has more than texts and generations in it"
    if not gens:
        yield "has no generation in it"
        return
    if not isinstance(chain[0], ops.Gen) or not isinstance(chain[-1], ops.Gen):
        yield "does not go from a generation to a generation"
    if len({inner.role for inner in chain}) > 1:
        yield "writes into turns of several roles"
    before = [*op.body.args, *(inner.results[0] for inner in chain)]
    if any(inner.context is not context for inner, context in zip(chain, before)):
        yield "has ops that do not go on from the one before"
    values = tuple(r for gen in gens for r in gen.results[1:])
    own = frozenset(values)
    if not isinstance(end, ops.Yield) or tuple(end.values) != (before[-1], *values):
        yield "does not yield its last context and the values of its generations"
    if any(operand in own for inner in inside for operand in operands(inner)):
        yield "has a text or option that one of its own generations gives"


def _select(op: ops.Select, tables: Tables) -> _Problems:
    yield from _want(op.context, CONTEXT, "the context")
    yield from _want(op.options, _STRINGS, "`options`")
    yield from _want_results(op, CONTEXT, STR)
    yield from _model_role(op)


def _score(op: ops.Score, tables: Tables) -> _Problems:
    yield from _want(op.context, CONTEXT, "the context")
    yield from _want(op.options, _STRINGS, "`options`")
    yield from _want_results(op, ListT(SCORED))
    yield from _model_role(op)


def _fork(op: ops.Fork, tables: Tables) -> _Problems:
    yield from _want(op.context, CONTEXT, "the context")
    yield from _want_list(op.items, "what is forked over")
    if isinstance(op.items.type, ListT):
        yield from _want_args(op.body, CONTEXT, op.items.type.element)
    if not all(isinstance(r.type, ListT) for r in op.results):
        yield "its results are lists"


def _branches(op: ops.Branches, tables: Tables) -> _Problems:
    yield from _want(op.context, CONTEXT, "the context")
    if len(op.names) != len(op.arms):
        yield f"has {len(op.names)} names for {len(op.arms)} arms"
    for arm in op.arms:
        yield from _want_args(arm, CONTEXT)
    if len(op.counts) != len(op.arms) or sum(op.counts) != len(op.results):
        yield f"has {len(op.results)} results, and `counts` is {list(op.counts)} for {len(op.arms)} arms"


def _map(op: ops.Map, tables: Tables) -> _Problems:
    yield from _want_list(op.items, "what is mapped")
    if isinstance(op.items.type, ListT):
        yield from _want_args(op.body, op.items.type.element)
    if not all(isinstance(r.type, ListT) for r in op.results):
        yield "its results are lists"


# ----------------------------------------------------------------------- control


def _if(op: ops.If, tables: Tables) -> _Problems:
    yield from _want(op.condition, BOOL, "the condition")
    yield from _want_args(op.then)
    yield from _want_args(op.otherwise)


def _for(op: ops.For, tables: Tables) -> _Problems:
    yield from _want_list(op.items, "what is looped over")
    if isinstance(op.items.type, ListT):
        yield from _want_args(op.body, op.items.type.element, *(i.type for i in op.initial))
    yield from _want_results(op, *(a.type for a in op.body.args[1:]))


def _while(op: ops.While, tables: Tables) -> _Problems:
    initial = [i.type for i in op.initial]
    yield from _want_args(op.test, *initial)
    yield from _want_args(op.body, *initial)
    yield from _want_results(op, *(a.type for a in op.body.args))


def _try(op: ops.Try, tables: Tables) -> _Problems:
    yield from _want_args(op.body)
    yield from _want_args(op.handler, ERROR)


def _fail(op: ops.Fail, tables: Tables) -> _Problems:
    yield from _want(op.message, STR, "the message")


def _assert(op: ops.Assert, tables: Tables) -> _Problems:
    yield from _want(op.condition, BOOL, "the condition")
    yield from _want(op.message, STR, "the message")
    yield from _want_results(op)


# ------------------------------------------------------------------------- calls


def _call(op: ops.Call, tables: Tables) -> _Problems:
    callee = tables.functions.get(op.callee)
    if callee is None:
        yield f"there is no function `{op.callee}`"
        return
    context = [CONTEXT] * (callee.kind == "part")
    yield from _arguments(op.args, context + [p.type for p in callee.params])
    yield from _want_results(op, *context, callee.result)


def _extern_call(op: ops.ExternCall, tables: Tables) -> _Problems:
    extern = tables.externs.get(op.name)
    if extern is None:
        yield f"there is no extern `{op.name}`"
        return
    if extern.pure != op.pure:
        yield f"`{op.name}` is {'' if extern.pure else 'not '}pure"
    yield from _arguments(op.args, [p.type for p in extern.params])
    yield from _want_results(op, extern.result)


def _arguments(args: tuple[Operand, ...], wanted: list[Type]) -> _Problems:
    if len(args) != len(wanted):
        yield f"has {len(args)} arguments where {len(wanted)} are wanted"
    for i, (arg, type) in enumerate(zip(args, wanted)):
        yield from _want(arg, type, f"argument {i}")


# ------------------------------------------------------------------------ values


def _const(op: ops.Const, tables: Tables) -> _Problems:
    yield from _want_results(op, None)
    try:
        for result in op.results:
            from_data(json.loads(op.value), result.type)
    except (ValueError, RecursionError, ValueMismatch) as error:
        yield f"its value is not of its type: {error}"


def _text_concat(op: ops.TextConcat, tables: Tables) -> _Problems:
    for i, piece in enumerate(op.pieces):
        yield from _want_text(piece, f"piece {i}")
    yield from _want_results(op, STR)


def _record_make(op: ops.RecordMake, tables: Tables) -> _Problems:
    yield from _want_results(op, None)
    made = op.results[0].type if op.results else None
    if not isinstance(made, RecordT):
        yield "its result is a record"
        return
    yield from _arguments(op.values, [f.type for f in made.fields])


def _record_get(op: ops.RecordGet, tables: Tables) -> _Problems:
    members = records_in(op.record.type)
    types = [f.type for m in members if (f := m.field(op.field))]
    if not types:
        yield f"a {op.record.type} has no field `{op.field}`"
    yield from _want_results(op, None)
    if types and op.results and not any(fits(type, op.results[0].type) for type in types):
        yield f"the field `{op.field}` is a {types[0]}, its result a {op.results[0].type}"


def _union_is(op: ops.UnionIs, tables: Tables) -> _Problems:
    if op.member not in [m.name for m in records_in(op.value.type)]:
        yield f"a {op.value.type} is never a `{op.member}`"
    yield from _want_results(op, BOOL)


def _list_make(op: ops.ListMake, tables: Tables) -> _Problems:
    yield from _want_results(op, None)
    made = op.results[0].type if op.results else None
    if not isinstance(made, ListT):
        yield "its result is a list"
        return
    for i, element in enumerate(op.elements):
        yield from _want(element, made.element, f"element {i}")


def _tuple_get(op: ops.TupleGet, tables: Tables) -> _Problems:
    t = op.value.type
    if not isinstance(t, TupleT) or not 0 <= op.index < len(t.items):
        yield f"a {t} has no element {op.index}"
    else:
        yield from _want_results(op, t.items[op.index])


def _dict_make(op: ops.DictMake, tables: Tables) -> _Problems:
    yield from _want_results(op, None)
    made = op.results[0].type if op.results else None
    if not isinstance(made, DictT) or len(op.entries) % 2:
        yield "its result is a dict, its operands keys and values in turn"
        return
    for i, operand in enumerate(op.entries):
        yield from _want(operand, made.value if i % 2 else made.key, f"operand {i}")


def _pure_call(op: ops.PureCall, tables: Tables) -> _Problems:
    if op.function not in PURE:
        yield f"there is no pure function `{op.function}`"
    yield from _want_results(op, None)


def _print(op: ops.Print, tables: Tables) -> _Problems:
    for i, value in enumerate(op.values):
        yield from _want_text(value, f"value {i}")
    yield from _want_results(op)


def _input(op: ops.Input, tables: Tables) -> _Problems:
    yield from _want(op.prompt, STR, "the prompt")
    yield from _want_results(op, STR)


def _hint(op: ops.HintPrefill | ops.HintKeep | ops.HintRelease | ops.HintPin, tables: Tables) -> _Problems:
    if not (isinstance(op, ops.HintRelease) and fits(op.context.type, ListT(CONTEXT))):
        yield from _want(op.context, CONTEXT, "the context")
    if isinstance(op, ops.HintPrefill) and op.readers is not None:
        yield from _want_list(op.readers, "what lists the readers")
    yield from _want_results(op)


_RULES: Mapping[type[Op], Callable[[Op, Tables], _Problems]] = {
    ops.ContextNew: _context_new, ops.ContextAppend: _context_append,
    ops.ContextImage: _context_image, ops.Gen: _gen, ops.Template: _template, ops.Speculate: _template,
    ops.Select: _select, ops.Score: _score,
    ops.Fork: _fork, ops.Branches: _branches, ops.Map: _map, ops.If: _if, ops.For: _for, ops.While: _while, ops.Try: _try,
    ops.Fail: _fail, ops.Assert: _assert, ops.Call: _call, ops.ExternCall: _extern_call, ops.Const: _const,
    ops.TextConcat: _text_concat, ops.RecordMake: _record_make, ops.RecordGet: _record_get, ops.UnionIs: _union_is,
    ops.ListMake: _list_make, ops.TupleGet: _tuple_get, ops.DictMake: _dict_make, ops.PureCall: _pure_call, ops.Print: _print,
    ops.Input: _input, ops.HintPrefill: _hint, ops.HintKeep: _hint, ops.HintRelease: _hint, ops.HintPin: _hint,
}
