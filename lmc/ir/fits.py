"""Whether a value of one type may stand where another is wanted, as far as the IR is concerned.

The checker has decided what a program may do; here a broken pass should be noticed.  So refinements are not compared (`1..5` and
`int` are one), and a value may stand where a test has established more than its type says: an optional as its inner type, a union
as one of its members, what may be an error as either.
"""

from __future__ import annotations

from lmc.types import (
    ERROR, ContextT, DictT, FallibleT, FloatT, IntT, ListT, LiteralT, NeverT, NoneT, OptionalT, RecordT, TupleT, Type, UnionT,
    base_type, plain_type,
)


def fits(found: Type, wanted: Type) -> bool:
    """Whether a value of type `found` may be used as `wanted`."""
    if found == wanted or isinstance(found, NeverT):
        return True
    match found, wanted:
        case FallibleT(), FallibleT():
            return fits(found.inner, wanted.inner)
        case FallibleT(), _:
            return fits(found.inner, wanted) or fits(ERROR, wanted)
        case _, FallibleT():
            return found == ERROR or fits(found, wanted.inner)
        case OptionalT(), OptionalT():
            return fits(found.inner, wanted.inner)
        case NoneT(), OptionalT():
            return True
        case OptionalT(), _:
            return fits(found.inner, wanted)
        case _, OptionalT():
            return fits(found, wanted.inner)
        case UnionT(), UnionT():
            return any(member in wanted.members for member in found.members)
        case UnionT(), RecordT():
            return wanted in found.members
        case RecordT(), UnionT():
            return found in wanted.members
        case ListT(), ListT():
            return fits(found.element, wanted.element)
        case DictT(), DictT():
            return fits(found.key, wanted.key) and fits(found.value, wanted.value)
        case TupleT(), TupleT():
            return len(found.items) == len(wanted.items) and all(map(fits, found.items, wanted.items))
    return _same_scalar(found, wanted)


def _same_scalar(found: Type, wanted: Type) -> bool:
    if isinstance(found, LiteralT) or isinstance(wanted, LiteralT):
        return bool(_scalar_kinds(found) & _scalar_kinds(wanted))
    found, wanted = base_type(found), base_type(wanted)
    return found == wanted or isinstance(found, IntT) and isinstance(wanted, FloatT)


def _scalar_kinds(t: Type) -> set[Type]:
    """The plain types of a literal type's values: `"A" | 1` has two."""
    return {base_type(LiteralT((v,))) for v in t.values} if isinstance(t, LiteralT) else {base_type(t)}


def is_text(t: Type) -> bool:
    """Whether values of the type have a form in a prompt: str, int, float, bool and their refinements."""
    t = plain_type(t)
    return not isinstance(t, (ListT, DictT, TupleT, RecordT, UnionT, ContextT, NoneT))
