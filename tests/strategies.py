"""Types and values for property tests: `types` are those that can be generated, `values(t)` are values of `t`."""

import re

from hypothesis import strategies as st

from lmc.types import (
    BOOL, FLOAT, INT, NONE, STR, DictT, Field, ListT, LiteralT, OptionalT, RangeT, RecordT, StrT, UnionT,
)
from lmc.values import Record

# Whatever JSON must escape, characters of every length in UTF-8, and letters.
CHARACTERS = 'ab"\\/\n\t\r\b\f\x00\x1f\x7f é€😀\u2028'
_REGEXES = [r"\d{4}-\d{2}", r"[a-z\"\\]+", r"a|ab|\n", r"[^a]{1,3}", r"(?i)x?\t*"]

_names = st.lists(st.sampled_from(["a", "b", "score", "ключ", "for_", "x1"]), unique=True, max_size=4)


def _lengths(make):
    bounds = st.tuples(st.none() | st.integers(0, 3), st.none() | st.integers(3, 6))
    return bounds.map(lambda pair: make(*pair))


_scalars = st.one_of(
    st.sampled_from([STR, INT, FLOAT, BOOL, NONE]),
    _lengths(lambda low, high: StrT(low, high)),
    st.sampled_from(_REGEXES).map(lambda regex: StrT(regex=regex)),
    st.tuples(st.integers(-(10**6), 10**6), st.integers(0, 10**6)).map(lambda p: RangeT(p[0], p[0] + p[1])),
    st.lists(st.text(CHARACTERS, min_size=1, max_size=4), min_size=1, max_size=4, unique=True).map(lambda v: LiteralT(tuple(v))),
    st.lists(st.integers(-99, 99), min_size=1, max_size=4, unique=True).map(lambda v: LiteralT(tuple(v))),
)


def _record(inner):
    fields = _names.flatmap(lambda names: st.tuples(*(inner.map(lambda t, n=n: Field(n, t)) for n in names)))
    return st.tuples(st.sampled_from(["Note", "lib.x.Wand"]), fields, st.sampled_from(["", "A doc."])).map(lambda p: RecordT(*p))


def _union(inner):
    members = st.tuples(_record(inner), _record(inner), _record(inner)).map(
        lambda records: tuple(RecordT(f"m.Case{n}", r.fields) for n, r in enumerate(records))
    )
    return members.map(lambda m: UnionT("m.Action", m))


types = st.recursive(
    _scalars,
    lambda inner: st.one_of(
        st.tuples(inner, st.none() | st.integers(0, 2), st.none() | st.integers(2, 3)).map(lambda p: ListT(*p)),
        inner.filter(lambda t: not isinstance(t, OptionalT) and t != NONE).map(OptionalT),
        st.tuples(st.sampled_from([STR, StrT(max_len=3), INT]), inner).map(lambda p: DictT(*p)),
        _record(inner),
        _union(inner),
    ),
    max_leaves=6,
)


def values(t):
    """Values of a type, as they are inside `lmc`; numbers are within the bounds of generated ones."""
    match t:
        case StrT(regex=str() as regex):
            return st.from_regex(re.compile(regex, re.ASCII), fullmatch=True, alphabet=st.characters(codec="utf-8"))
        case StrT():
            return st.text(CHARACTERS, min_size=t.min_len or 0, max_size=8 if t.max_len is None else t.max_len)
        case RangeT(low, high):
            return st.integers(low, high)
        case LiteralT(options):
            return st.sampled_from(options)
        case ListT():
            most = 4 if t.max_items is None else t.max_items
            return st.lists(values(t.element), min_size=t.min_items or 0, max_size=most).map(tuple)
        case OptionalT(inner):
            return st.none() | values(inner)
        case DictT(key, value):
            return st.dictionaries(values(key), values(value), max_size=3)
        case RecordT():
            return st.tuples(*(values(f.type) for f in t.fields)).map(lambda v: Record(t, v))
        case UnionT(members=members):
            return st.one_of(*(values(m) for m in members))
    decimals = st.tuples(st.integers(-(10**9), 10**9), st.integers(0, 5)).map(lambda p: p[0] / 10 ** p[1])
    floats = decimals.filter(lambda x: "e" not in repr(x))
    return {INT: st.integers(-(10**18) + 1, 10**18 - 1), FLOAT: floats, BOOL: st.booleans(), NONE: st.none()}[t]
