"""Grammars for llama.cpp say what their automata say: held against Python's `re` over their own rules."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.regex.build import compile_regex
from lmc.regex.schema import compile_schema
from lmc.runtime.remote.gbnf import gbnf


def matches(grammar: str, text: str) -> bool:
    """A reader of what `gbnf` writes: one character class and the next rule for each choice."""
    rules: dict[str, list[tuple[re.Pattern | None, str]]] = {}
    for line in grammar.splitlines():
        name, _, choices = line.partition(" ::= ")
        rules[name] = [(re.compile(c.rpartition(" ")[0]), c.rpartition(" ")[2]) if c.startswith("[") else (None, c.strip('"'))
                       for c in choices.split(" | ")]
    here = "s1"
    for character in text:
        ways = [target for pattern, target in rules[here] if pattern is not None and pattern.fullmatch(character)]
        assert len(ways) <= 1, "a character leads on in two ways"
        if not ways:
            return False
        here = ways[0]
    return (None, "") in rules[here]


@pytest.mark.parametrize("regex, yes, no", [
    ("(yes|no)!?", ["yes", "no!"], ["", "ye", "yes!!", "maybe"]),
    (r"[^\"\\]{1,3}", ["ä", "日本語", "😀a\n"], ["", '"', "\\", "abcd"]),
    (r"[α-ω]+[\]\-^]", ["λ]", "αβ-", "ω^"], ["a]", "λ", "]"]),
    (r"\d{4}-\d{2}", ["1999-12"], ["199-12", "1999-1x"]),
    (r"[\u0080-\u07ff]", ["\u0080", "é", "\u07ff"], ["\x7f", "\u0800"]),
    (r"[\ud7ff\ue000\uffff\U00010000\U0010ffff]", ["\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"], ["a", "\U00010001"]),
])
def test_what_is_accepted(regex, yes, no):
    grammar = gbnf(compile_regex(regex))
    assert [matches(grammar, text) for text in yes + no] == [True] * len(yes) + [False] * len(no)


@given(st.text(max_size=6))
def test_any_text_is_judged_as_by_the_automaton(text):
    dfa = compile_regex(r'"([^"\\\x00-\x1f]|\\["\\n])*"|[^a-zé€]{0,3}')
    assert matches(gbnf(dfa), text) == dfa.matches(text.encode("utf-8", "surrogatepass"))


def test_a_rule_for_each_state_and_no_other():
    dfa = compile_schema('{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "yy"]}}, "required": ["a", "b"]}')
    grammar = gbnf(dfa)
    assert matches(grammar, '{"a":1,"b":"yy"}') == dfa.matches(b'{"a":1,"b":"yy"}')
    used = set(re.findall(r"\bs\d+\b", grammar))
    assert used == {line.split()[0] for line in grammar.splitlines()[1:]} and len(used) < dfa.states
