"""The 29 known bugs of other engines (design, CONSTRAINTS §7) and the cases of kind c: which test shows that ours has none of them.

Those that stand nowhere else are at the end of this file.
"""

import ast
import json
from pathlib import Path

import pytest

from lmc.regex.build import compile_regex
from lmc.regex.dfa import START
from lmc.regex.grammar import Grammar
from lmc.regex.schema import compile_schema, schema_constraint
from lmc.runtime.constraint import TokenConstraint, TokenIndex
from lmc.runtime.grammar import GrammarConstraint
from lmc.runtime.tokenizer import load_tokenizer
from tests.runtime.folders import sentencepiece_json, write_folder

ROOT = Path(__file__).parents[2]
BYTES = [bytes([b]) for b in range(256)]
JUMP, LIMITS, CASES, HERE = "runtime/test_jump.py", "regex/test_known_limits.py", "cases/test_constraints.py", "cases/test_known_bugs.py"

WHERE = {
    "1 a jump changes the greedy answer": ("runtime/test_jump_model.py", "test_objects_have_the_tokens_of_plain_masking"),
    "2 jumps garble values": ("runtime/test_drafts_driver.py", "test_answers_with_drafts_are_those_without"),
    "3 a final state is jumped over": (JUMP, "test_3_a_number_is_not_jumped_out_of_and_does_not_loop"),
    "4 a jump inside a character": (JUMP, "test_4_a_jump_ends_in_the_middle_of_a_character_only_where_tokens_do"),
    "5 the empty regex hangs": (JUMP, "test_5_an_empty_regex_gives_the_empty_text"),
    "6 jumped tokens run past max_tokens": (JUMP, "test_jumped_tokens_count_towards_max_tokens"),
    "7 only one end token is known": (JUMP, "test_7_every_end_token_ends_where_the_value_may_end"),
    "8 a range that was not meant": ("regex/test_parse.py", "test_ranges_that_were_hardly_meant"),
    "9 characters of several tokens": (CASES, "test_c06_characters_of_several_tokens_are_written_whole"),
    "10 lists with lengths run out of memory": (LIMITS, "test_six_nested_lists_with_lengths"),
    "11 a regex that takes minutes": (LIMITS, "test_a_regex_that_took_minutes_elsewhere"),
    "12 a pattern without anchors": (LIMITS, "test_schemas"),
    "13 an alternation binds across the quotes": (HERE, "test_13_an_alternation_stays_inside_the_quotes"),
    "14 bounds are dropped": (LIMITS, "test_schemas"),
    "15 a guide is compiled for long": (HERE, "test_15_no_mask_is_made_before_it_is_asked_for"),
    "16 a final state is no completion": (JUMP, "test_16_a_value_that_may_go_on_ends_by_the_end_token_alone"),
    "17 patternProperties in a closed object": (HERE, "test_17_pattern_properties_in_a_closed_object"),
    "18 the leftmost alternative cuts the language": (LIMITS, "test_regexes"),
    "19 a very long maxLength": (HERE, "test_19_a_very_long_string_is_held"),
    "20 a long enumeration accepts strangers": (LIMITS, "test_an_enumeration_accepts_its_members_only"),
    "21 a refused token leaves a broken state": (JUMP, "test_21_a_token_that_was_refused_leaves_no_trace"),
    "22 a class that begins with NUL": (LIMITS, "test_regexes"),
    "23 endless white space": (CASES, "test_c01_a_model_that_likes_white_space_still_completes_the_value"),
    "24 counts and classes in patterns": (LIMITS, "test_exact_counts"),
    "25 one word begins another": (JUMP, "test_25_a_choice_that_begins_another"),
    "26 the tokenizer normalises forced text": (JUMP, "test_canonical_guesses_are_kept_only_where_they_spell_the_forced_text"),
    "27 look-ahead": (LIMITS, "test_what_must_be_refused"),
    "28 an optional property out of order": (LIMITS, "test_schemas"),
    "29 the space of SentencePiece": (HERE, "test_29_a_space_of_sentencepiece_is_a_space"),
    "C-01": (CASES, "test_c01_a_model_that_likes_white_space_still_completes_the_value"),
    "C-02": (CASES, "test_c02_half_a_value_is_an_error_that_can_be_caught_and_one_that_never_fits_is_not_begun"),
    "C-03": (HERE, "test_c03_keywords_mean_what_the_standard_says"),
    "C-06": (CASES, "test_c06_characters_of_several_tokens_are_written_whole"),
    "C-08": (CASES, "test_c08_a_regex_ends_where_nothing_more_is_legal"),
    "C-10": (CASES, "test_c10_the_same_text_with_jumps_in_a_stream_and_in_a_fork"),
    "C-11": (JUMP, "test_four_kinds_in_every_order_give_what_they_give_alone"),
}


@pytest.mark.parametrize("entry", WHERE)
def test_each_has_a_test(entry):
    file, name = WHERE[entry]
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_none_is_left_out():
    assert [entry.split()[0] for entry in WHERE if entry[0].isdigit()] == [str(n) for n in range(1, 30)]


def judged(schema, good, bad):
    dfa = compile_schema(json.dumps(schema))
    assert [t for t in good if not dfa.matches(t.encode())] == []
    assert [t for t in bad if dfa.matches(t.encode())] == []


def test_13_an_alternation_stays_inside_the_quotes():
    judged({"type": "string", "pattern": "cat|dog"}, ['"cat"', '"dog"', '"a dog"'], ["cat", '"cat', 'dog"', '"do"'])


def test_15_no_mask_is_made_before_it_is_asked_for(monkeypatch):
    made = []
    make = TokenConstraint._make_mask
    monkeypatch.setattr(TokenConstraint, "_make_mask", lambda self, state: made.append(state) or make(self, state))
    constraint = TokenConstraint(compile_schema(json.dumps({"enum": [f"{n * n} names" for n in range(40)]})), TokenIndex(BYTES))
    assert made == [] and constraint.dfa.states > 30
    state = constraint.advance(START, b'"1')
    for _ in range(3):
        constraint.allowed(state)
    assert made == [state]


def test_17_pattern_properties_in_a_closed_object():
    schema = {"type": "object", "patternProperties": {"^(yes|no)$": {"type": "string"}}, "additionalProperties": False}
    judged(schema, ["{}", '{"yes":"a"}', '{"no":"b"}'], ['{"maybe":"a"}', '{"yes":1}', '{"yes or no":"a"}'])


def test_19_a_very_long_string_is_held():
    """By a grammar: it is too large for an automaton."""
    pytest.importorskip("llguidance")
    grammar = schema_constraint(json.dumps({"type": "object", "properties": {"content": {"type": "string", "maxLength": 100_000}},
                                            "required": ["content"], "additionalProperties": False}))
    assert isinstance(grammar, Grammar)
    constraint = GrammarConstraint(grammar, BYTES)
    within = constraint.advance(START, b'{"content":"' + b"a" * 10_000)  # more than a model writes; 100,000 are too many for llguidance
    assert {ord("a"), ord('"')} <= set(constraint.allowed(within).tolist())
    assert constraint.complete(constraint.advance(within, b'"}'))


def test_29_a_space_of_sentencepiece_is_a_space(tmp_path):
    tokenizer = load_tokenizer(write_folder(tmp_path, sentencepiece_json()))
    constraint = TokenConstraint(compile_regex("[a-z]+ [a-z]+"), TokenIndex(tokenizer.token_bytes))
    assert not any(tokenizer.token_bytes[i].startswith((b" ", "▁".encode())) for i in constraint.allowed(START))
    state = constraint.advance(START, b"hi")
    spaces = {tokenizer.token_bytes[i] for i in constraint.allowed(state) if b" " in tokenizer.token_bytes[i]}
    assert {b" ", b" h", b" hi", b" w"} <= spaces
    state = constraint.advance(state, b" hi")
    assert constraint.accepting(state) and all(tokenizer.token_bytes[i].isalpha() for i in constraint.allowed(state))


def nested(schema, depth):
    """The schema, and how a text that it judges stands in an object of objects."""
    before = after = ""
    for _ in range(depth):
        schema = {"type": "object", "properties": {"in": schema}, "required": ["in"]}
        before, after = '{"in":' + before, after + "}"
    return schema, lambda text: before + text + after


@pytest.mark.parametrize("depth", [0, 2])
@pytest.mark.parametrize("schema, good, bad", [
    ({"type": "string", "pattern": "b"}, ['"abc"', '"b"'], ['"ac"', '""']),
    ({"type": "string", "pattern": "^b"}, ['"bc"'], ['"abc"']),
    ({"type": "string", "pattern": "b$"}, ['"ab"'], ['"abc"']),
    ({"type": "object", "properties": {"z": {"type": "null"}, "a": {"type": "null"}, "m": {"type": "null"}},
      "additionalProperties": False}, ['{"z":null,"a":null,"m":null}', '{"z":null,"m":null}'],
     ['{"a":null,"z":null}', '{"z":null,"b":null}']),
    ({"type": "object", "properties": {"z": {"type": "null"}}, "additionalProperties": True},
     ['{"z":null}', '{"z":null,"other":[1]}'], ['{"z":1}']),
])
def test_c03_keywords_mean_what_the_standard_says(schema, good, bad, depth):
    """What is not enforced is refused with its place: `tests/regex/test_schema.py` and the official suite."""
    outer, inside = nested(schema, depth)
    judged(outer, [inside(text) for text in good], [inside(text) for text in bad])
    with pytest.raises(ValueError) as caught:
        compile_schema(json.dumps(nested({"type": "array", "uniqueItems": True}, depth)[0]))
    assert "uniqueItems" in f"{caught.value} {caught.value.path}"
