"""The shapes of control flow: blocks of an `if` or a loop, and what the names mean where the ways meet.

    if short:                     %t: str = control.if(%short) {
        tone = "brief"              control.yield("brief")
    else:                  ->     } {
        tone = "full"               control.yield("full")
                                  }

A name that means something else on one of the ways becomes a result of the op; one that is not assigned on every way is unknown
afterwards (the checker has made sure that nobody reads it).  What stands in the blocks is written by functions that are passed
in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lmc.diagnostics import Span
from lmc.ir.builder import Builder
from lmc.ir.core import Block, Literal, Op, Operand, Value
from lmc.ir.ops import Break, Continue, Fail, For, If, Return, Try, While, Yield
from lmc.parser.lower.frame import HERE, Frame, Key, key_hint, key_type
from lmc.types import ERROR, STR, ListT, Type

#: Writes the ops of a block; may give the value that the block stands for.
Write = Callable[[], Operand | None]


@dataclass(frozen=True, slots=True)
class _Way:
    """One block as written, without its yield: what names mean at its end, and its value."""

    builder: Builder
    names: dict[Key, Operand]
    value: Operand | None

    @property
    def leaves(self) -> bool:
        return self.builder.closed


def branch(frame: Frame, span: Span, condition: Operand, then: Write, otherwise: Write, *, value: Type | None = None,
           hint: str = "") -> Operand | None:
    """A `control.if`.  With `value`, what the blocks stand for is a result of that type, which is given."""
    if frame.closed:
        return None
    # No comprehension: it would be one more frame of Python's stack for each block around.
    ways = [_way(frame, span, (), then), _way(frame, span, (), otherwise)]
    return _meet(frame, span, ways, value, hint, lambda blocks: {
        "condition": condition, "then": blocks[0], "otherwise": blocks[1]}, If)


def attempt(frame: Frame, span: Span, body: Write, handler: Callable[[Value], None]) -> None:
    """A `control.try`.  The handler begins with what names meant before the body: what it assigned and said is taken back."""
    if frame.closed:
        return
    error = Value(ERROR, "error")
    ways = [_way(frame, span, (), body), _way(frame, span, (error,), lambda: handler(error))]
    _meet(frame, span, ways, None, "", lambda blocks: {"body": blocks[0], "handler": blocks[1]}, Try)


def _way(frame: Frame, span: Span, args: Iterable[Value], write: Write) -> _Way:
    with frame.region(args, span) as builder:
        value = write()
        return _Way(builder, frame.names, value)


def _meet(frame: Frame, span: Span, ways: list[_Way], value: Type | None, hint: str,
          fields: Callable[[list[Block]], dict], op_class: type[Op]) -> Operand | None:
    """Close the blocks with yields, add the op, and make its results what the names mean from here on."""
    arriving = [w for w in ways if not w.leaves]
    if not arriving:
        _never_meet(frame, span, ways, fields, op_class)
        return None
    changed = _changed(frame.names, arriving)
    results = [Value(key_type(key), key_hint(key)) for key in changed]
    made = Value(value, hint) if value is not None else None
    for way in arriving:
        values = [way.names[key] for key in changed] + ([way.value] if made else [])
        way.builder.add(Yield, span, values=tuple(values))
    blocks = [w.builder.block() for w in ways]
    frame.add(op_class, span, results + ([made] if made else []), **fields(blocks))
    frame.names = {k: v for k, v in frame.names.items() if all(k in w.names for w in arriving)}
    frame.names.update(zip(changed, results))
    return made


def _changed(before: dict[Key, Operand], arriving: list[_Way]) -> list[Key]:
    keys = [k for k in arriving[0].names if all(k in w.names for w in arriving)]
    return [k for k in keys if any(w.names[k] is not before.get(k) for w in arriving)]


def _never_meet(frame: Frame, span: Span, ways: list[_Way], fields: Callable[[list[Block]], dict], op_class: type[Op]) -> None:
    """All ways leave.  Where they return, the values meet and there is one return behind the op."""
    blocks = [w.builder.block() for w in ways]
    lasts = [b.ops[-1] for b in blocks]
    returns = [op for op in lasts if isinstance(op, Return)]
    if returns and all(isinstance(op, (Return, Fail)) for op in lasts) and op_class is If:
        blocks = [_yielding(b) for b in blocks]
        results = [Value(t, "result") for t in _return_types(frame)]
        frame.add(op_class, span, results, **fields(blocks))
        frame.add(Return, span, values=tuple(results))
        return
    frame.add(op_class, span, **fields(blocks))
    unreachable(frame, span)


def _yielding(block: Block) -> Block:
    last = block.ops[-1]
    return Block(block.args, (*block.ops[:-1], Yield((), last.span, last.values))) if isinstance(last, Return) else block


def _return_types(frame: Frame) -> list[Type]:
    return [key_type(HERE)] * (frame.kind == "part") + [frame.result]


def unreachable(frame: Frame, span: Span) -> None:
    """End a block whose end is never reached, so that it has a terminator."""
    frame.add(Fail, span, message=Literal("unreachable", STR))


# ------------------------------------------------------------------------ loops


def loop_over(frame: Frame, span: Span, items: Operand, hint: str, carried: Iterable[Key], body: Callable[[Value], None]) -> None:
    """A `control.for`.  `carried` are the names that mean something else in each round."""
    keys = tuple(k for k in carried if k in frame.names)
    assert isinstance(items.type, ListT), items.type
    element = Value(items.type.element, hint)
    args = _fresh(keys)
    site = frame.site()
    initial = tuple(frame.names[k] for k in keys)
    with frame.region((element, *args), span) as builder:
        _round(frame, span, keys, args, lambda: body(element))
    results = _fresh(keys)
    frame.add(For, span, results, items=items, initial=initial, site=site, body=builder.block())
    frame.names.update(zip(keys, results))


def loop_while(frame: Frame, span: Span, carried: Iterable[Key], test: Callable[[], Operand], body: Callable[[], None]) -> None:
    """A `control.while`.  A carried name that has no value yet begins as a null of its type, which nobody reads."""
    keys = tuple(carried)
    site = frame.site()
    initial = tuple(frame.names.get(k) or Literal(None, key_type(k)) for k in keys)
    test_args, body_args = _fresh(keys), _fresh(keys)
    with frame.region(test_args, span) as test_builder:
        frame.names.update(zip(keys, test_args))
        condition = test()
        frame.add(Yield, span, values=(condition, *_values(frame, keys)))
    with frame.region(body_args, span) as body_builder:
        _round(frame, span, keys, body_args, body)
    results = _fresh(keys)
    frame.add(While, span, results, initial=initial, site=site, test=test_builder.block(), body=body_builder.block())
    frame.names.update(zip(keys, results))


def leave_round(frame: Frame, span: Span, op_class: type[Break] | type[Continue]) -> None:
    """A `break` or `continue`."""
    frame.add(op_class, span, values=_values(frame, frame.loops[-1]))


def _round(frame: Frame, span: Span, keys: tuple[Key, ...], args: list[Value], body: Callable[[], None]) -> None:
    frame.names.update(zip(keys, args))
    frame.loops.append(keys)
    body()
    frame.loops.pop()
    frame.add(Yield, span, values=_values(frame, keys))


def _fresh(keys: tuple[Key, ...]) -> list[Value]:
    return [Value(key_type(k), key_hint(k)) for k in keys]


def _values(frame: Frame, keys: tuple[Key, ...]) -> tuple[Operand, ...]:
    return tuple(frame.names.get(k) or Literal(None, key_type(k)) for k in keys)
