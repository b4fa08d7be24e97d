"""Constraints that a session keeps: one for equal automata, the ones used last, and those that somebody still holds."""

import gc

import pytest

from lmc.regex.build import compile_regex
from lmc.regex.grammar import LARK, Grammar
from lmc.runtime.constraint import TokenConstraint
from lmc.runtime.constraint_cache import ConstraintCache
from lmc.runtime.token_index import TokenIndex

INDEX = TokenIndex([bytes([b]) for b in range(256)])


def counted(**limits):
    made = []

    def make(dfa):
        made.append(dfa.source)
        return TokenConstraint(dfa, INDEX)

    return ConstraintCache(make, **limits), made


def test_equal_automata_have_one_constraint():
    cache, made = counted()
    assert cache.get(compile_regex("a+")) is cache.get(compile_regex("aa*")) and made == ["a+"]


def test_those_used_last_are_kept():
    cache, made = counted(most=2)
    for pattern in ("a", "b", "a", "c", "a", "b"):
        cache.get(compile_regex(pattern))
        gc.collect()
    assert made == ["a", "b", "c", "b"]


def test_bytes_of_masks_count():
    cache, made = counted(most_bytes=100_000)
    small = compile_regex("[ab]")
    cache.get(small)
    large = cache.get(compile_regex("[^c]{400}"))
    for state in range(1, 400):
        large.allowed(state)
    assert large.held_bytes > 100_000
    cache.get(compile_regex("d"))
    del large
    gc.collect()
    cache.get(small)
    cache.get(compile_regex("d"))
    assert made == ["[ab]", "[^c]{400}", "d", "[ab]"], "the large one made room for what came, and went itself"


def test_what_somebody_holds_stays_the_one():
    cache, made = counted(most=1)
    held = cache.get(compile_regex("a"))
    for pattern in ("b", "c"):
        cache.get(compile_regex(pattern))
    assert cache.get(compile_regex("a")) is held and made == ["a", "b", "c"]


def test_masks_are_saved_when_a_constraint_is_let_go(monkeypatch):
    saved = []
    monkeypatch.setattr(TokenConstraint, "save", lambda constraint: saved.append(constraint.dfa.source))
    cache, _ = counted(most=1)
    cache.get(compile_regex("a"))
    cache.get(compile_regex("b"))
    assert saved == ["a"]
    cache.save()
    assert saved == ["a", "b"]


def test_a_grammar_counts_the_texts_that_it_has_read():
    pytest.importorskip("llguidance")
    from lmc.runtime.grammar import GrammarConstraint

    constraint = GrammarConstraint(Grammar(LARK, 'start: "x"+'), [bytes([b]) for b in range(128)])
    before, state = constraint.held_bytes, 1
    for _ in range(10):
        state = constraint.advance(state, b"x")
    assert constraint.held_bytes >= before + sum(range(11))
