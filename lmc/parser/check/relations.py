"""How types relate: which value may stand where, what two types have in common, and how a type reads to its author.

    1..5 -> int            yes, a refinement is its base
    "A" | "B" -> str       yes
    int -> float           yes, with a conversion (`needs_conversion`)
    str -> "A" | "B"       no: only a literal of it (`fits_literal`)
    Search -> Action       yes, a member is its union

This file knows types only, no syntax.
"""

from __future__ import annotations

from lmc.parser.check.model import UnknownT
from lmc.types import (
    ERROR, BoolT, ContextT, DictT, FallibleT, FloatT, IntT, ListT, LiteralT, NeverT, NoneT, OptionalT, RangeT, RecordT, StrT, TupleT,
    Type, UnionT, base_type, spell_type,
)
from lmc.values import ValueMismatch, from_data


def assignable(source: Type, target: Type) -> bool:
    """Whether a value of `source` may stand where `target` is wanted."""
    if source == target or isinstance(source, (UnknownT, NeverT)) or isinstance(target, UnknownT):
        return True
    match source, target:
        case FallibleT(inner), FallibleT(wanted):
            return assignable_inside(inner, wanted)
        case FallibleT(inner), _:
            return assignable(inner, target) and assignable(ERROR, target)
        case _, FallibleT(wanted):
            return source == ERROR or assignable_inside(source, wanted)
        case OptionalT(inner), OptionalT(wanted):
            return assignable(inner, wanted)
        case _, OptionalT(wanted):
            return isinstance(source, NoneT) or assignable(source, wanted)
        case UnionT(), UnionT():
            return all(m in target.members for m in source.members)
        case RecordT(), UnionT():
            return source in target.members
        case ListT(), ListT():
            return assignable_inside(source.element, target.element) and _items_within(source, target)
        case DictT(), DictT():
            return assignable_inside(source.key, target.key) and assignable_inside(source.value, target.value)
        case TupleT(items), TupleT(wanted):
            return len(items) == len(wanted) and all(map(assignable_inside, items, wanted))
    return _scalar_assignable(source, target)


def assignable_inside(source: Type, target: Type) -> bool:
    """As `assignable` for an element of a list: nothing converts each element, so an int is no float there."""
    return assignable(source, target) and not needs_conversion(source, target)


def needs_conversion(source: Type, target: Type) -> bool:
    """Whether an int stands where a float is wanted."""
    inner = target.inner if isinstance(target, OptionalT) else target
    return isinstance(inner, FloatT) and is_int(source)


def _items_within(source: ListT, target: ListT) -> bool:
    if isinstance(source.element, NeverT):
        return not target.min_items
    low = target.min_items is None or (source.min_items or 0) >= target.min_items
    return low and (target.max_items is None or source.max_items is not None and source.max_items <= target.max_items)


def _scalar_assignable(source: Type, target: Type) -> bool:
    match source, target:
        case LiteralT(values), LiteralT(wanted):
            return all(any(same(v, w) for w in wanted) for v in values)
        case LiteralT(values), StrT() | RangeT() | IntT() | BoolT() | FloatT():
            return all(fits_literal(v, target) for v in values)
        case RangeT(), RangeT():
            return target.low <= source.low and source.high <= target.high
        case StrT(), StrT():
            return _str_within(source, target)
        case IntT() | RangeT(), FloatT():
            return True
        case RangeT(), IntT():
            return True
    return False


def _str_within(source: StrT, target: StrT) -> bool:
    longest = target.max_len is None or source.max_len is not None and source.max_len <= target.max_len
    shortest = target.min_len is None or (source.min_len or 0) >= target.min_len
    return longest and shortest and target.regex in (None, source.regex)


def same(a: object, b: object) -> bool:
    """Equal and of one kind: `1` is not `True`."""
    return a == b and type(a) is type(b)


def fits_literal(value: object, target: Type) -> bool:
    """Whether a value written in the source fits a type with its refinements."""
    inner = target.inner if isinstance(target, OptionalT) else target
    if not isinstance(inner, (StrT, IntT, RangeT, FloatT, BoolT, LiteralT, NoneT)):
        return False
    try:
        from_data(value, inner)
    except ValueMismatch:
        return False
    return True


def join(a: Type, b: Type) -> Type | None:
    """The smallest type that holds both, or None."""
    if assignable(a, b):
        return b
    if assignable(b, a):
        return a
    if isinstance(a, NoneT) or isinstance(b, NoneT):
        return OptionalT(b if isinstance(a, NoneT) else a)
    if isinstance(a, OptionalT) or isinstance(b, OptionalT):
        inner = join(strip_optional(a), strip_optional(b))
        return OptionalT(inner) if inner is not None else None
    if isinstance(a, ListT) and isinstance(b, ListT):
        element = join(a.element, b.element)
        return ListT(element) if element is not None and not _mixes_numbers(a.element, b.element) else None
    plain_a, plain_b = base_type(a), base_type(b)
    if (plain_a, plain_b) != (a, b):
        return join(plain_a, plain_b)
    return None


def _mixes_numbers(a: Type, b: Type) -> bool:
    return needs_conversion(a, b) or needs_conversion(b, a)


def strip_optional(t: Type) -> Type:
    return t.inner if isinstance(t, OptionalT) else t


def is_int(t: Type) -> bool:
    return isinstance(base_type(t), IntT)


def is_number(t: Type) -> bool:
    return isinstance(base_type(t), (IntT, FloatT))


def is_str(t: Type) -> bool:
    return isinstance(base_type(t), StrT)


def is_bool(t: Type) -> bool:
    return isinstance(base_type(t), BoolT)


def is_scalar(t: Type) -> bool:
    """Whether a value of it may stand in a hole."""
    return is_number(t) or is_str(t) or is_bool(t) or isinstance(t, LiteralT)


def known(t: Type) -> bool:
    """False for the type of what was already reported, also inside lists and the like."""
    match t:
        case UnknownT():
            return False
        case ListT(element):
            return known(element)
        case OptionalT(inner) | FallibleT(inner):
            return known(inner)
        case DictT(key, value):
            return known(key) and known(value)
        case TupleT(items):
            return all(map(known, items))
    return True


def type_text(t: Type) -> str:
    """The type as its author would write it; `?` for what was already reported."""
    return spell_type(t)
