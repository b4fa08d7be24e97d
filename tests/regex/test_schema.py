"""Automata of types and of JSON Schemas: what is written fits, what fits is read."""

import json
import random
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lmc.json_schema import json_schema
from lmc.regex.dfa import DEAD, START
from lmc.regex.json_schema import SchemaError
from lmc.regex.parse import RegexError
from lmc.regex.schema import compile_schema, compile_type
from lmc.types import (
    BOOL, CONTEXT, FLOAT, INT, NONE, STR, DictT, Field, ListT, LiteralT, OptionalT, RangeT, RecordT, StrT, TupleT, UnionT,
)
from lmc.values import from_text, text_of, to_json
from tests.strategies import types, values


def written(value, t):
    """A value's text as a constrained `gen` writes it."""
    return text_of(value) if isinstance(t, (StrT, LiteralT)) else to_json(value, t)


def some_text(dfa, generator):
    """A text that the automaton accepts, by a random walk that is drawn to the end after a while."""
    steps = _distance(dfa)
    state, data = START, bytearray()
    while not (dfa.accepting[state] and generator.random() < 0.3):
        row = dfa.table[state, dfa.byte_class]
        options = np.flatnonzero(row != DEAD)
        if not len(options):
            break
        if len(data) > 40:
            options = options[steps[row[options]] == steps[row[options]].min()]
        byte = int(generator.choice(options.tolist()))
        data.append(byte)
        state = int(row[byte])
    while not dfa.accepting[state]:
        row = dfa.table[state, dfa.byte_class]
        byte = int(np.where(row != DEAD, steps[row], 10**9).argmin())
        data.append(byte)
        state = int(row[byte])
    return bytes(data).decode()


def _distance(dfa):
    steps = np.where(dfa.accepting, 0, 10**8)
    while True:
        nearer = np.minimum(steps, np.where(dfa.table != DEAD, steps[dfa.table], 10**8).min(axis=1) + 1)
        if (nearer == steps).all():
            return steps
        steps = nearer


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_values_written_are_accepted_and_read_back(data):
    t = data.draw(types)
    value = data.draw(values(t))
    text = written(value, t)
    assert compile_type(t).matches(text.encode()), (t, text)
    assert from_text(text, t) == value


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(types, st.randoms(use_true_random=False))
def test_accepted_text_is_a_value(t, generator):
    dfa = compile_type(t)
    for _ in range(5):
        text = some_text(dfa, generator)
        value = from_text(text, t)
        if "FloatT" not in repr(t) and "DictT" not in repr(t):  # 1.50 and repeated keys have other spellings
            assert written(value, t) == text


@pytest.mark.parametrize(
    "t, good, bad",
    [
        (STR, ["", 'a "quoted"\nline', "é😀"], []),
        (StrT(max_len=2), ["", "é😀"], ["abc"]),
        (StrT(min_len=2), ["ab", "abc"], ["a"]),
        (StrT(min_len=1, max_len=3, regex="a*"), ["a", "aaa"], ["", "aaaa", "b"]),
        (LiteralT(("A", "B c")), ["A", "B c"], ['"A"', "B", "C"]),
        (LiteralT((1, 12, True)), ["1", "12", "true"], ["True", "2"]),
        (INT, ["0", "-7", "999999999999999999"], ["-0", "01", "1.0", "+1", "", "1000000000000000000", " 1"]),
        (FLOAT, ["0", "-0.5", "12", "3.140", "123456789012345.123456789012345"],
            [".5", "1.", "1e5", "00", "1234567890123456", "NaN"]),
        (BOOL, ["true", "false"], ["True", "1"]),
        (NONE, ["null"], ["None", ""]),
        (RangeT(1, 5), ["1", "5"], ["0", "6", "01", "1.0"]),
        (OptionalT(STR), ["null", '"null"', '""'], ["", "x"]),
        (OptionalT(LiteralT(("A",))), ['"A"', "null"], ["A"]),
        (ListT(INT), ["[]", "[1]", "[1,-2,3]"], ["[1, 2]", "[1,]", "[,1]", "1"]),
        (ListT(INT, 2, 3), ["[1,2]", "[1,2,3]"], ["[]", "[1]", "[1,2,3,4]"]),
        (ListT(INT, None, 0), ["[]"], ["[1]"]),
        (ListT(STR), ['["a\\n\\"\\\\\\u001f","é"]'], ['["\n"]', '["\\/"]', '["\\u00e9"]', '["\\ud800"]', '["\\x"]']),
        (ListT(StrT(max_len=2)), ['["\\n\\""]'], ['["\\n\\"a"]']),
        (ListT(StrT(regex=r'["\\\n]{2}')), ['["\\"\\\\"]', '["\\n\\n"]'], ['["\\n"]', '["n\\"\\""]']),
        (ListT(StrT(regex=r"^a|b$")), ['["a"]', '["b"]'], ['["ab"]']),
        (DictT(STR, INT), ["{}", '{"a":1,"b":2}'], ['{"a":1,}', "{a:1}"]),
        (DictT(INT, BOOL), ['{"-3":true}'], ["{3:true}", '{"x":true}']),
    ],
    ids=str,
)
def test_examples(t, good, bad):
    dfa = compile_type(t)
    assert [text for text in good if not dfa.matches(text.encode())] == []
    assert [text for text in bad if dfa.matches(text.encode())] == []


WAND = RecordT("lib.Wand", (Field("wood", StrT(max_len=16)), Field("length", FLOAT, "1.0")))
OWNER = RecordT("Owner", (Field("name", StrT(max_len=8)), Field("wand", WAND), Field("pet", OptionalT(STR), "null")))


def test_a_record_has_every_key_in_order():
    dfa = compile_type(OWNER)
    assert dfa.matches(b'{"name":"Ron","wand":{"wood":"ash","length":12.5},"pet":null}')
    assert not dfa.matches(b'{"name":"Ron","wand":{"wood":"ash","length":12.5}}')
    assert not dfa.matches(b'{"wand":{"wood":"ash","length":12.5},"name":"Ron","pet":null}')
    assert compile_type(RecordT("Empty", ())).matches(b"{}")


def test_a_union_has_its_tag_first():
    union = UnionT("Act", (RecordT("lib.Search", (Field("query", STR),)), RecordT("Stop", ())))
    dfa = compile_type(union)
    assert dfa.matches(b'{"type":"Search","query":"x"}') and dfa.matches(b'{"type":"Stop"}')
    assert not dfa.matches(b'{"query":"x","type":"Search"}') and not dfa.matches(b'{"type":"lib.Search","query":"x"}')
    assert not dfa.matches(b'{"type":"Stop","query":"x"}')


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(-(10**4), 10**4), st.integers(0, 3000), st.lists(st.integers(-(2 * 10**4), 2 * 10**4), max_size=30))
def test_ranges_are_exact(low, width, others):
    dfa = compile_type(RangeT(low, low + width))
    for number in [low - 1, low, low + 1, low + width - 1, low + width, low + width + 1, *others]:
        assert dfa.matches(str(number).encode()) == (low <= number <= low + width)


def test_a_range_is_not_enumerated():
    dfa = compile_type(RangeT(-(2**63), 2**63 - 1))
    assert dfa.states < 100
    for number in (-(2**63), 2**63 - 1, 0, 10**18):
        assert dfa.matches(str(number).encode())
    for number in (-(2**63) - 1, 2**63):
        assert not dfa.matches(str(number).encode())


def test_literals_are_byte_exact():
    choices = ("Dr. Smith", "a*b", "(x)", "[y]", "{z}", "p|q", "\\d", "^$", '"quoted"', "tab\t", "line\n", "trailing ",
        "Case", "case")
    for t, write in ((LiteralT(choices), str), (ListT(LiteralT(choices)), lambda v: json.dumps([v], separators=(",", ":")))):
        dfa = compile_type(t)
        assert all(dfa.matches(write(c).encode()) for c in choices)
        assert not any(dfa.matches(write(c).encode()) for c in ("Dru Smith", "aab", "x", "trailing", "CASE", "Dr. Smit", ""))


def test_thousands_of_literals():
    generator = random.Random(7)
    names = tuple({"".join(generator.choices("abcdefgh XYZ'", k=generator.randint(3, 12))) for _ in range(5000)})
    dfa = compile_type(ListT(LiteralT(names)))
    assert all(dfa.matches(json.dumps([n]).encode()) for n in names)
    assert not dfa.matches(json.dumps([names[0] + names[1]]).encode()) or names[0] + names[1] in names


@pytest.mark.parametrize(
    "t, message",
    [
        (CONTEXT, "a value of type context cannot be generated"),
        (TupleT((INT,)), "cannot be generated"),
        (DictT(FLOAT, INT), "keys are str or int"),
        (StrT(min_len=3, max_len=2), "no text has at least 3 and at most 2 characters"),
        (StrT(max_len=2, regex="aaa"), "nothing matches it"),
        (ListT(INT, 3, 2), "no list has at least 3 and at most 2 elements"),
        (RangeT(5, 1), "the range 5..1 is empty"),
        (StrT(regex="(?=a)"), "look-around is not supported"),
        (RecordT("R", (Field("when", StrT(regex="(")),)), "in the field `when` of R: missing"),
        (ListT(ListT(StrT(max_len=3000), None, 20), None, 20), "too large"),
    ],
)
def test_types_that_cannot_be_generated(t, message):
    with pytest.raises(RegexError, match=re.escape(message)):
        compile_type(t)


SCHEMA = {
    "title": "T", "type": "object", "additionalProperties": False, "required": ["m"],
    "properties": {
        "z": {"type": "integer", "minimum": 3, "exclusiveMaximum": 10},
        "a": {"type": "array", "items": {"type": ["string", "null"], "maxLength": 2}, "minItems": 1},
        "m": {"anyOf": [{"const": "x"}, {"enum": [1, None, {"k": [1.5]}]}, {"$ref": "#/$defs/flag"}]},
    },
    "$defs": {"flag": {"type": "boolean", "description": "d"}},
}


@pytest.mark.parametrize(
    "text, fits",
    [
        ('{"z":3,"a":["ab",null],"m":"x"}', True), ('{"m":true}', True), ('{"a":["a"],"m":{"k":[1.5]}}', True),
        ('{"z":9,"m":null}', True),
        ('{"z":2,"m":"x"}', False), ('{"z":10,"m":"x"}', False), ('{"a":[],"m":"x"}', False), ('{"a":["abc"],"m":"x"}', False),
        ('{"z":3}', False), ('{"m":"x","z":3}', False), ('{"m":"x","q":1}', False), ('{"m":"x",}', False), ("{}", False),
        ('{"z":3,}', False),
    ],
)
def test_a_schema(text, fits):
    assert compile_schema(json.dumps(SCHEMA)).matches(text.encode()) == fits


def test_keys_of_a_schema_keep_their_order_and_may_all_be_missing():
    dfa = compile_schema(json.dumps({"type": "object", "properties": {k: {"type": "null"} for k in "zam"}}))
    keys = ["z", "a", "m"]
    for chosen in range(8):
        there = [k for n, k in enumerate(keys) if chosen >> n & 1]
        assert dfa.matches(json.dumps({k: None for k in there}, separators=(",", ":")).encode())
        if len(there) > 1:
            assert not dfa.matches(json.dumps({k: None for k in there[::-1]}, separators=(",", ":")).encode())


def test_hundreds_of_optional_properties():
    names = [f"property{n}" for n in range(400)]
    dfa = compile_schema(json.dumps({"type": "object", "properties": {n: {"type": "null"} for n in names}}))
    assert dfa.matches(json.dumps({n: None for n in names[::7]}, separators=(",", ":")).encode())
    assert not dfa.matches(b'{"property9":null,"property8":null}')


@pytest.mark.parametrize("pattern, good, bad",
    [("b", "abc", "ac"), ("^b", "bc", "ab"), ("b$", "ab", "ba"), ("^(cat|dog)$", "dog", "dogs"), ("cat|dog", "a dog", "cow")])
@pytest.mark.parametrize("nested", [False, True])
def test_a_pattern_is_searched_for_and_anchors_act_where_written(pattern, good, bad, nested):
    schema, wrap = {"type": "string", "pattern": pattern}, json.dumps
    if nested:
        schema = {"type": "object", "properties": {"o": {"type": "object", "properties": {"s": schema}}}}
        wrap = lambda text: json.dumps({"o": {"s": text}}, separators=(",", ":"))  # noqa: E731
    dfa = compile_schema(json.dumps(schema))
    assert dfa.matches(wrap(good).encode()) and not dfa.matches(wrap(bad).encode())


@pytest.mark.parametrize(
    "schema, path, message",
    [
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, "uniqueItems", "needs `items` with an `enum`"),
        ({"type": "object", "properties": {"a": {"type": "number", "minimum": "0"}}}, "properties.a.minimum", 'found "0"'),
        ({"type": "string", "format": "iri"}, "format", 'the format "iri" is not supported'),
        ({"anyOf": [{"type": "integer"}, {"type": "integer", "multipleOf": 0}]}, "anyOf.1.multipleOf", "above 0"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "oneOf", "the options 0 and 1 may both hold"),
        ({"oneOf": [{"type": "object", "properties": {"a": {"type": "null"}}}, {"type": "object", "maxProperties": 3}]}, "oneOf",
            "may both hold"),
        ({"type": "string", "minlength": 3}, "minlength", "no keyword of JSON Schema"),
        ({"type": "array", "contains": {"type": "null"}}, "contains", "not supported"),
        ({"not": {"contains": {}}}, "not.contains", "not supported inside `not`"),
        ({"type": "object", "properties": {"self": {"$ref": "#"}}}, "properties.self.$ref.properties.self", "contains itself"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "$ref.$ref", "refers to itself without anything between"),
        ({"$ref": "https://example.com/s.json"}, "$ref", "only references inside the document"),
        ({"$ref": "#/$defs/none"}, "$ref", "there is no #/$defs/none"),
        ({"type": "integer", "minimum": 5, "maximum": 3}, "", "no value fulfils it"),
        ({"type": "string", "maxLength": -1}, "maxLength", "expected a count"),
        ({"type": "string", "pattern": "(?=a)"}, "pattern", "look-around is not supported"),
        ({"type": "text"}, "type", 'found "text"'),
        ({"enum": []}, "enum", "expected a list of values"),
        ({"enum": ["a"], "type": "integer"}, "", "no value fulfils it"),
        ({"x-lmc-depth": 9}, "x-lmc-depth", "expected 0 to 6"),
        (7, "", "expected a schema, found 7"),
    ],
)
def test_what_is_not_enforced_is_refused_with_its_path(schema, path, message):
    with pytest.raises(SchemaError) as caught:
        compile_schema(json.dumps(schema))
    assert caught.value.path == path and message in caught.value.message


def test_a_schema_that_is_not_json():
    with pytest.raises(SchemaError, match="not JSON: Expecting value at line 2, column 1"):
        compile_schema('{"type":\n}')
    with pytest.raises(SchemaError, match="nested too deeply"):
        compile_schema('{"type":"array","items":' * 2000 + '{"type":"null"}' + "}" * 2000)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_the_schema_shown_for_a_type_means_the_type(data):
    """`schema(T)` compiled back accepts what the type's own automaton does, for JSON that is not at the top a bare string."""
    t = data.draw(types.filter(lambda t: not isinstance(t, (StrT, LiteralT)) and "DictT" not in repr(t)))
    value = data.draw(values(t))
    dfa = compile_schema(json.dumps(json_schema(t)))
    assert dfa.matches(to_json(value, t).encode())
