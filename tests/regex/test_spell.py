"""Regexes spelled from syntax trees read back as the same automata."""

import pytest

from lmc.regex import json_nodes
from lmc.regex.build import compile_node, compile_regex
from lmc.regex.nodes import Chars, Words, alternate, concat, text
from lmc.regex.numbers import FLOAT, INT, int_range
from lmc.regex.parse import parse_regex
from lmc.regex.spell import NoSpelling, spell


def same(a, b) -> bool:
    """Minimal automata of the same language are equal, but for the order of their byte classes."""
    return a.states == b.states and all(_row(a, s) == _row(b, s) for s in range(a.states)) and list(a.accepting) == list(b.accepting)


def _row(dfa, state):
    return [int(dfa.table[state][c]) for c in dfa.byte_class]


@pytest.mark.parametrize("node, written", [
    (int_range(1, 5), "[1-5]"), (int_range(8, 12), None), (int_range(-40, 1007), None), (INT, r"-?[1-9][0-9]{0,17}|0"), (FLOAT, None),
    (json_nodes.bare_string(None, 5), r"[\s\S]{0,5}"), (json_nodes.bare_string(2, None), r"[\s\S]{2,}"),
    (Words(("a.b", "c|d", "")), r"a\.b|c\|d|"), (concat(text("-"), Words(("x", "yy"))), None), (text("a(b)*\n"), None),
    (Chars(((45, 45), (91, 94), (0x1F600, 0x1F64F))), None), (alternate([text("ab"), concat(text("a"), Chars(((48, 57),)))]), None),
    (parse_regex(r"(ab|c)+x{2,3}(é|[^a-z])?"), None),
])
def test_what_is_spelled_reads_back(node, written):
    spelled = spell(node)
    assert written in (None, spelled)
    assert same(compile_regex(spelled), compile_node(node, "")), spelled


def test_an_embedded_automaton_has_no_text():
    with pytest.raises(NoSpelling):
        spell(json_nodes.bare_string(1, 5, "[a-z]+"))
