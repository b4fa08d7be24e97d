"""Token masks against the slow way: try every token at every state."""

import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lmc.diagnostics import LmcError
from lmc.regex.build import Raw, compile_regex, minimal
from lmc.regex.dfa import DEAD, START
from lmc.regex.parse import RegexError
from lmc.regex.schema import compile_type
from lmc.runtime.constraint import TokenConstraint, TokenIndex
from lmc.types import INT, Field, ListT, RecordT, StrT

BYTES = [bytes([b]) for b in range(256)]


def slow_alive(dfa, vocabulary):
    """States from which tokens lead to acceptance, by plain iteration to a fixed point."""
    alive = {s for s in range(dfa.states) if dfa.accepting[s]}
    while True:
        more = {s for s in range(1, dfa.states) if s not in alive and any(t and dfa.step(s, t) in alive for t in vocabulary)}
        if not more:
            return alive
        alive |= more


def slow_allowed(dfa, vocabulary, alive, state, prefix=b""):
    """Ids by trying each token; what is left of `prefix` must be spellable by the tokens after it."""
    found = []
    for number, token in enumerate(vocabulary):
        if not token:
            continue
        if token.startswith(prefix):
            good = dfa.step(state, token[len(prefix) :]) in alive and state in alive
        else:
            good = prefix.startswith(token) and bool(slow_allowed(dfa, vocabulary, alive, state, prefix[len(token) :]))
        if good:
            found.append(number)
    return found


def slow_fewest(dfa, vocabulary, alive):
    level, count = {START}, 0
    while not any(dfa.accepting[s] for s in level):
        level = {dfa.step(s, t) for s in level for t in vocabulary if t} & alive
        count += 1
    return count


letters = st.binary(min_size=1, max_size=4).map(lambda data: bytes(97 + b % 3 for b in data))
vocabularies = st.lists(st.one_of(letters, st.just(b"")), min_size=1, max_size=25)
random_tables = st.integers(2, 7).flatmap(
    lambda n: st.tuples(
        st.lists(st.lists(st.integers(-1, n - 1), min_size=4, max_size=4), min_size=n, max_size=n),
        st.lists(st.booleans(), min_size=n, max_size=n),
    )
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(random_tables, vocabularies, st.binary(min_size=1, max_size=4).map(lambda data: bytes(97 + b % 3 for b in data)))
def test_masks_are_those_of_trying_every_token(table, vocabulary, prefix):
    rows, accepting = table
    byte_class = [min(max(b - 96, 0), 3) for b in range(256)]
    byte_class = [c if 97 <= b <= 99 else 0 for b, c in enumerate(byte_class)]
    rows = [[-1, *row[1:]] for row in rows]
    try:
        dfa = minimal(Raw(byte_class, rows, accepting), "random")
    except RegexError:
        return  # accepts nothing
    alive = slow_alive(dfa, vocabulary)
    if START not in alive:
        with pytest.raises(LmcError) as caught:
            TokenConstraint(dfa, TokenIndex(vocabulary))
        assert caught.value.diagnostics[0].code == "E0642"
        return
    constraint = TokenConstraint(dfa, TokenIndex(vocabulary))
    for state in range(1, dfa.states):
        expected = slow_allowed(dfa, vocabulary, alive, state)
        found = constraint.allowed(state)
        assert found.dtype == np.int64 and found.tolist() == expected
        assert constraint.allowed(state, prefix).tolist() == slow_allowed(dfa, vocabulary, alive, state, prefix)
        assert constraint.complete(state) == (bool(dfa.accepting[state]) and not expected)
        assert constraint.accepting(state) == bool(dfa.accepting[state])
        for token in vocabulary:
            after = dfa.step(state, token)
            assert constraint.advance(state, token) == (after if after in alive else DEAD)
    fewest = slow_fewest(dfa, vocabulary, alive)
    assert constraint.min_tokens() == fewest
    for enough in range(4):
        found = constraint.min_tokens(enough=enough)
        assert found == fewest or fewest <= found <= enough


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(vocabularies, letters)
def test_healing_alone(vocabulary, prefix):
    def expected(rest):
        return [
            number for number, token in enumerate(vocabulary)
            if token and (token.startswith(rest) or rest.startswith(token) and expected(rest[len(token) :]))
        ]

    assert TokenIndex(vocabulary).heal_only(prefix).tolist() == expected(prefix)


def test_characters_of_several_tokens_are_reachable():
    # One emoji is a token; the other, and half of a third, must be spelled by bytes.
    vocabulary = [*BYTES, "😀".encode(), "😨".encode()[:2]]
    constraint = TokenConstraint(compile_regex("[😀-🙏]{2}"), TokenIndex(vocabulary))
    assert {0xF0, 256, 257} <= set(constraint.allowed(START).tolist())
    state = START
    for byte in "😨😨".encode():
        assert byte in constraint.allowed(state)
        state = constraint.advance(state, bytes([byte]))
    assert constraint.complete(state)


def test_no_mask_lets_a_character_begin_that_cannot_be_completed():
    constraint = TokenConstraint(compile_regex("."), TokenIndex(BYTES))
    first = set(constraint.allowed(START).tolist())
    assert first == {*range(0x80), *range(0xC2, 0xF5)} - {0x0A}
    assert set(constraint.allowed(constraint.advance(START, b"\xed")).tolist()) == set(range(0x80, 0xA0))  # no surrogates


def test_what_no_token_spells_is_trimmed():
    vocabulary = [data for data in BYTES if data != b"\x04"]
    # `\x04` is in no token: after x only y is left, although the byte automaton could go on.
    constraint = TokenConstraint(compile_regex("x(\x04z|y)"), TokenIndex(vocabulary))
    assert [vocabulary[i] for i in constraint.allowed(constraint.advance(START, b"x"))] == [b"y"]
    with pytest.raises(LmcError, match=r"cannot spell any text that matches `x\x04`: none spells U\+0004"):
        TokenConstraint(compile_regex("x\x04"), TokenIndex(vocabulary))


@pytest.mark.parametrize("pattern, vocabulary, named", [
    ("ab?é", [b"a", b"b", b"\xc3"], "`é` (U+00E9)"), ("😨", [b"\xf0\x9f"], "`😨` (U+1F628)"), ("(a|b)c", [b"a", b"ac", b"bd", b"b"], ""),
    ("abcab", [b"ab", b"abca"], "`b` (U+0062)"), ("[b-d]", [b"a"], "`b` (U+0062)"), ("\x04", [b"a"], "U+0004"),
])
def test_the_character_that_no_token_spells_is_named(pattern, vocabulary, named):
    if not named:
        assert TokenConstraint(compile_regex(pattern), TokenIndex(vocabulary)).allowed(START).tolist() == [1]
        return
    with pytest.raises(LmcError) as caught:
        TokenConstraint(compile_regex(pattern), TokenIndex(vocabulary))
    assert caught.value.diagnostics[0].message.endswith(f": none spells {named}")


def test_a_class_is_fine_while_one_of_its_bytes_is_a_token():
    vocabulary = [data for data in BYTES if data not in (b"\xf1", b"\xf2")]
    assert 0xF1 in TokenConstraint(compile_regex("[\U00040000-\U000fffff]"), TokenIndex(BYTES)).allowed(START)
    constraint = TokenConstraint(compile_regex("[\U00040000-\U000fffff]"), TokenIndex(vocabulary))
    assert [vocabulary[i] for i in constraint.allowed(START)] == [b"\xf3"]


def test_control_tokens_are_never_allowed():
    vocabulary = [b"", *BYTES, b""]
    constraint = TokenConstraint(compile_regex("(?s:.*)"), TokenIndex(vocabulary))
    assert not {0, 257} & set(constraint.allowed(START).tolist())
    assert len(constraint.allowed(START)) == 0x80 + (0xF5 - 0xC2)


def test_tokens_of_equal_bytes_are_allowed_together():
    constraint = TokenConstraint(compile_regex("ab"), TokenIndex([b"ab", b"a", b"ab", b"b"]))
    assert constraint.allowed(START).tolist() == [0, 1, 2]


def test_the_empty_value_is_complete_at_once():
    constraint = TokenConstraint(compile_regex(""), TokenIndex(BYTES))
    assert constraint.accepting(START) and constraint.complete(START)
    assert constraint.allowed(START).tolist() == [] and constraint.min_tokens() == 0


def test_equal_masks_of_many_states_are_one_array():
    constraint = TokenConstraint(compile_regex('[^"]{0,100}'), TokenIndex(BYTES))
    first = constraint.allowed(START)
    second = constraint.allowed(constraint.advance(START, b"a" * 50))
    assert first is second


def test_fewest_tokens_of_a_record():
    note = RecordT("Note", (Field("score", INT), Field("reason", StrT(max_len=200))))
    vocabulary = [*BYTES, b'{"score":', b'"reason":"']
    constraint = TokenConstraint(compile_type(note), TokenIndex(vocabulary))
    assert constraint.min_tokens() == len(['{"score":', "0", ",", '"reason":"', '"', "}"])
    assert constraint.min_tokens(constraint.advance(START, b'{"score":1,"reason":"abc')) == 2


def test_a_way_that_is_short_enough_needs_no_search():
    record = RecordT("R", tuple(Field(f"field{n}", StrT(max_len=100)) for n in range(20)))
    constraint = TokenConstraint(compile_type(record), TokenIndex([*BYTES, b'":"', b'","field']))
    shortest = len(['{', '"']) + 20 * 2 + 19 + 10 + len("field") + len(['"', "}"])
    assert constraint.min_tokens(enough=1000) == shortest
    assert constraint.min_tokens(enough=10) > 10


def test_the_search_for_the_fewest_tokens_is_cut_and_never_too_high():
    constraint = TokenConstraint(compile_regex('"[^"]{600}"'), TokenIndex(BYTES))
    assert 0 < constraint.min_tokens() <= 602
    wide = TokenConstraint(compile_type(ListT(StrT(min_len=3, max_len=300), 5, 9)), TokenIndex(BYTES))
    assert 0 < wide.min_tokens() <= 5 * 5 + 4 + 2


def test_random_walks_under_the_masks_end_in_accepted_text():
    generator = random.Random(3)
    vocabulary = [*BYTES, b'{"', b'":', b'"}', b"tr", b"true", b'",', b"12", "é".encode()]
    constraint = TokenConstraint(compile_type(RecordT("R", (Field("a", INT), Field("b", StrT(max_len=5))))),
        TokenIndex(vocabulary))
    for _ in range(50):
        state, text = START, b""
        while len(ids := constraint.allowed(state)):
            token = vocabulary[generator.choice(ids.tolist())]
            state, text = constraint.advance(state, token), text + token
        assert constraint.complete(state) and constraint.dfa.matches(text)
        text.decode()


@pytest.mark.parametrize("pattern", ["abc(d|e)fg", "a?bc", "(ab|ac)de*", "éa|éb", "x{400}y", "[-+]?[0-9]+[ ]*", "", "(霍a|霍b)c"])
def test_forced_bytes_end_where_the_text_may_end_or_has_two_ways(pattern):
    dfa = compile_regex(pattern)
    constraint = TokenConstraint(dfa, TokenIndex([bytes([b]) for b in range(256)]))
    for start in range(START, dfa.states):
        data, state = bytearray(), start
        while len(data) < 256 and not dfa.accepting[state]:
            live = [b for b in range(256) if dfa.step(state, bytes([b]))]
            if len(live) != 1:
                break
            data.append(live[0])
            state = dfa.step(state, bytes(live))
        assert constraint.forced(start) == bytes(data)
