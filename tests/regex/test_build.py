"""Automata against Python's `re`, and their form: bytes, minimal, numbered alike."""

import random
import re
import string

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lmc.regex.build import compile_node, compile_regex
from lmc.regex.dfa import DEAD, START
from lmc.regex.nodes import ALL_RANGES, Chars, Words, complement, intersect, normalise
from lmc.regex.parse import RegexError
from lmc.regex.product import intersection
from lmc.regex.utf8 import byte_sequences
from tests.processor_time import processor_seconds

# One to four bytes in UTF-8, a digit, a newline, and letters with a case that ASCII rules do not fold.
CHARACTERS = "aAb0\n é€😀ıK"

_CLASSES = [
    ".", r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", r"[a-b]", r"[^a]", r"[é-€]", r"[^\dé]", r"[\w€]", r"[a\]\n]", r"\u20ac",
]
_QUANTIFIERS = ["*", "+", "?", "{2}", "{1,3}", "{,2}", "{2,}", "*?", "??"]
_leaf = st.sampled_from([re.escape(c) for c in CHARACTERS] + _CLASSES)
patterns = st.recursive(
    _leaf,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.lists(inner, min_size=2, max_size=3).map("|".join).map("(?:{})".format),
        st.tuples(inner, st.sampled_from(_QUANTIFIERS)).map(lambda t: f"(?:{t[0]}){t[1]}"),
        inner.map("(?i:{})".format),
        inner.map("(?s:{})".format),
        inner.map("({})".format),
    ),
    max_leaves=8,
)
texts = st.text(alphabet=CHARACTERS, max_size=6)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(patterns, st.lists(texts, min_size=5, max_size=20))
def test_accepts_what_python_matches(pattern, candidates):
    dfa = compile_regex(pattern)
    expected = re.compile(pattern, re.ASCII)
    for text in candidates:
        assert dfa.matches(text.encode()) == (expected.fullmatch(text) is not None), (pattern, text)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(patterns, st.binary(max_size=6))
def test_never_accepts_invalid_utf8(pattern, data):
    if compile_regex(pattern).matches(data):
        data.decode()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(patterns, patterns, st.lists(texts, min_size=5, max_size=20))
def test_intersection_accepts_what_both_do(a, b, candidates):
    first, second = compile_regex(a), compile_regex(b)
    try:
        both = intersection(first, second, "both")
    except RegexError:
        assert not any(first.matches(t.encode()) and second.matches(t.encode()) for t in candidates)
        return
    for text in candidates:
        assert both.matches(text.encode()) == (first.matches(text.encode()) and second.matches(text.encode()))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(patterns)
def test_is_minimal_and_trimmed(pattern):
    dfa = compile_regex(pattern)
    assert not dfa.accepting[DEAD] and not dfa.table[DEAD].any()
    assert _distinct_states(dfa) == dfa.states
    reached, stack = {START}, [START]
    while stack:
        for target in set(dfa.table[stack.pop()].tolist()) - reached - {DEAD}:
            reached.add(target)
            stack.append(target)
    assert len(reached) == dfa.states - 1
    assert len({dfa.table[:, c].tobytes() for c in range(dfa.table.shape[1])}) == dfa.table.shape[1]


def _distinct_states(dfa):
    """How many classes of equivalent states there are, by refinement to a fixed point."""
    classes = dfa.accepting.astype(int)
    while True:
        signature = np.column_stack([classes, classes[dfa.table]])
        _, refined = np.unique(signature, axis=0, return_inverse=True)
        refined = refined.reshape(-1)
        if refined.max() == classes.max():
            return int(refined.max()) + 1
        classes = refined


@pytest.mark.parametrize("one, other",
    [("(a|b)*", "(?:[ab]|aa)*"), ("a{2,4}", "aaa?a?"), ("x|xy|xyz", "x(y(z)?)?"), ("(?i)k", "[kK]")])
def test_equal_languages_give_equal_automata(one, other):
    first, second = compile_regex(one), compile_regex(other)
    assert np.array_equal(first.table, second.table) and np.array_equal(first.accepting, second.accepting)
    assert np.array_equal(first.byte_class, second.byte_class)


@pytest.mark.parametrize(
    "pattern, good, bad",
    [
        ("a|ab", ["a", "ab"], ["b", "abb"]),  # the longest alternative is not cut off
        ("yes|yes please", ["yes", "yes please"], ["yes "]),
        ("a+?", ["a", "aaa"], [""]),
        ("", [""], ["a"]),
        ("^ab$", ["ab"], ["b", "ab\n"]),
        (r"\Aab\Z", ["ab"], ["ab\n"]),
        ("(^a|b)c$", ["ac", "bc"], ["c"]),
        ("(a?)^b", ["b"], ["ab"]),  # an anchor inside holds only where nothing was read
        ("a$(b?)", ["a"], ["ab"]),
        ("(^|x)(a|$)", ["", "a", "x", "xa"], ["aa"]),
        (".", ["a", "é", "😀"], ["\n", "", "ab"]),
        ("(?s).", ["\n"], []),
        (r"[\x00-\u2e7f]+", ["\x00a⹿"], ["⺀"]),
        ("霍格沃茨|霍比特人", ["霍格沃茨", "霍比特人"], ["霍格"]),
        ("[一-龥]{2,4}", ["人人", "人人人人"], ["人", "人人人人人"]),
        (r"[-+]?[0-9]+[ ]*", ["+1  ", "22"], ["+"]),
        (r"[A-Za-z0-9.,!?'\"-_<> ]", ["$", "_"], ["`"]),
        (r"(?i)straße", ["STRAßE", "straße"], ["STRASSE", "STRAẞE"]),
        (r"\0\x41\101\a", ["\0AA\a"], []),
        (r"[\b]", ["\b"], ["b"]),
    ],
)
def test_examples(pattern, good, bad):
    dfa = compile_regex(pattern)
    assert [t for t in good if not dfa.matches(t.encode())] == []
    assert [t for t in bad if dfa.matches(t.encode())] == []


@pytest.mark.parametrize("pattern", ["a^", "$a", r"[^\s\S]", r"x[^\d\D]"])
def test_a_regex_that_matches_nothing_is_an_error(pattern):
    with pytest.raises(RegexError, match="nothing matches it"):
        compile_regex(pattern)


def test_many_words_are_exact():
    generator = random.Random(1)
    words = list({"".join(generator.choices(string.ascii_lowercase + " é", k=generator.randint(2, 14))) for _ in range(8000)})
    dfa = compile_node(Words(tuple(words)), "words")
    assert all(dfa.matches(w.encode()) for w in words)
    assert not any(dfa.matches((w + "x").encode()) for w in words if w + "x" not in set(words))
    assert not any(dfa.matches(w[:-1].encode()) for w in words if w[:-1] not in set(words))


@pytest.mark.parametrize("pattern", ["(x{1,999}){1,999}", "((a{0,99}){0,99}){0,99}", '"[^"]{0,1000000}"', ".*a.{30}"])
def test_hostile_counts_are_refused_in_time(pattern):
    def refused():
        with pytest.raises(RegexError, match="too large|more than"):
            compile_regex(pattern)

    assert processor_seconds(refused, runs=1) < 10


def test_counts_count_characters():
    dfa = compile_regex(r"[^\"]{3}")
    assert dfa.matches("é€😀".encode()) and not dfa.matches("é😀".encode()) and not dfa.matches(b"abcd")


# The first and last code point of each length of UTF-8, and those beside the surrogates.
BORDERS = [0, 0x7F, 0x80, 0x7FF, 0x800, 0xFFF, 0x1000, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x3FFFF, 0x40000, 0x10FFFF]


# Overlong forms, surrogates, what lies beyond U+10FFFF, and a byte of no character.
INVALID = [bytes.fromhex(h) for h in "c080 c1bf e08080 eda080 edbfbf f0808080 f4908080 f5808080 ff".split()]


@pytest.mark.parametrize("low, high", [(a, b) for a in BORDERS for b in BORDERS if a <= b])
def test_borders_of_utf8(low, high):
    ranges = normalise([(low, high)])
    dfa = compile_node(Chars(ranges), "range")
    for point in sorted({p for b in BORDERS for p in (b - 1, b, b + 1) if 0 <= p <= 0x10FFFF and not 0xD800 <= p <= 0xDFFF}):
        assert dfa.matches(chr(point).encode()) == (low <= point <= high), hex(point)
    assert not any(map(dfa.matches, INVALID))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(0, 0x10FFFF), st.integers(0, 0x400)), max_size=4))
def test_byte_sequences_spell_each_character_once(pairs):
    ranges = normalise([(low, min(low + length, 0x10FFFF)) for low, length in pairs])
    expected = sum(high - low + 1 for low, high in ranges)
    sizes = [np.prod([high - low + 1 for low, high in sequence]) for sequence in byte_sequences(ranges)]
    assert sum(sizes) == expected
    for low, high in ranges:
        for point in (low, high):
            data = chr(point).encode()
            alike = [s for s in byte_sequences(ranges) if len(s) == len(data)]
            fitting = [s for s in alike if all(a <= byte <= c for byte, (a, c) in zip(data, s))]
            assert len(fitting) == 1


_pairs = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), max_size=6)


@given(_pairs, _pairs)
def test_sets_of_code_points(first, second):
    def points(pairs):
        return {p for low, length in pairs for p in range(low, low + length + 1)}

    def members(ranges):
        return {p for low, high in ranges for p in range(low, min(high, 100) + 1)}

    a, b = (normalise([(low, low + length) for low, length in pairs]) for pairs in (first, second))
    assert members(a) == points(first)
    assert members(intersect(a, b)) == points(first) & points(second)
    assert members(complement(a)) == set(range(101)) - points(first)
    assert complement(complement(a)) == a and complement(()) == ALL_RANGES
