"""Parts of JSON Schema beyond the simple types: formats, bounds, combinations, keys, arrays, `not`."""

import json
import random
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmc.regex.schema import compile_schema


def accepts(schema, *texts):
    dfa = compile_schema(json.dumps(schema))
    return [dfa.matches(text.encode()) for text in texts]


def judged(schema, good, bad):
    dfa = compile_schema(json.dumps(schema))
    assert [t for t in good if not dfa.matches(t.encode())] == []
    assert [t for t in bad if dfa.matches(t.encode())] == []


FORMAT_CASES = {
    "date": (["2024-02-29", "2000-02-29", "1999-12-31", "0004-02-29"],
        ["2023-02-29", "1900-02-29", "2024-04-31", "2024-13-01", "2024-00-10", "24-01-01"]),
    "time": (["00:00:00Z", "23:59:59.123+05:30"], ["24:00:00Z", "12:60:00Z", "12:00:00", "12:00:00+24:00"]),
    "date-time": (["2024-02-29T12:00:00Z"], ["2024-02-30T12:00:00Z", "2024-02-29 12:00:00Z"]),
    "email": (["a@b.co.uk", "x+y.z@host"], ["a@", "@b", "a..b@c", "a@-b", "a b@c"]),
    "uuid": (["123e4567-e89b-12d3-a456-426614174000"], ["123e4567e89b12d3a456426614174000", "123e4567-e89b-12d3-a456-42661417400g"]),
    "ipv4": (["0.0.0.0", "255.255.255.255"], ["256.0.0.1", "1.2.3", "01.2.3.4"]),
    "ipv6": (["::", "::1", "1::", "2001:db8::8a2e:370:7334", "::ffff:1.2.3.4", "1:2:3:4:5:6:7:8"],
        [":", "1:2:3:4:5:6:7", "1::2::3", "12345::", "1:2:3:4:5:6:7:8:9", "::1.2.3", "fe80::1%eth0"]),
    "uri": (["https://a.b/c?d=e#f", "mailto:a@b", "urn:x:y", "http://[::1]:80/"], ["a", "//a.b", "http:// a", "http://a/%zz", "1a:b"]),
    "duration": (["P1Y", "PT1H2M", "P2W"], ["P", "PT", "P1H"]),
    "json-pointer": (["", "/a/b", "/~0~1"], ["a", "/~2"]),
}


@pytest.mark.parametrize("name", FORMAT_CASES)
def test_formats(name):
    good, bad = FORMAT_CASES[name]
    judged({"type": "string", "format": name}, map(json.dumps, good), map(json.dumps, bad))


def test_every_day_of_some_years():
    import datetime

    dfa = compile_schema('{"type":"string","format":"date"}')
    for year in (1900, 2000, 2023, 2024):
        for month in range(0, 14):
            for day in range(0, 33):
                try:
                    datetime.date(year, month, day)
                    real = True
                except ValueError:
                    real = False
                assert dfa.matches(f'"{year:04}-{month:02}-{day:02}"'.encode()) == real


decimals = st.decimals(-200, 200, places=2)


@settings(max_examples=60, deadline=None)
@given(st.none() | decimals, st.none() | decimals, st.booleans(), st.booleans(), st.lists(decimals, max_size=8))
def test_bounds_of_numbers_are_exact(low, high, low_strict, high_strict, others):
    schema = {"type": "number"}
    if low is not None:
        schema["exclusiveMinimum" if low_strict else "minimum"] = float(low)
    if high is not None:
        schema["exclusiveMaximum" if high_strict else "maximum"] = float(high)

    def fits(value):
        above = low is None or value > low or value == low and not low_strict
        return above and (high is None or value < high or value == high and not high_strict)

    edges = [v for v in (low, high) if v is not None]
    values = [*others, *edges, *(v + d for v in edges for d in (Decimal("0.01"), Decimal("-0.01"), 1, -1)), Decimal(0)]
    try:
        dfa = compile_schema(json.dumps(schema))
    except ValueError:
        assert not any(map(fits, values))
        return
    for value in values:
        texts = {f"{value:f}", f"{value:f}000", f"{value:.3f}"}
        if value == int(value):
            texts = {str(int(value)), f"{int(value)}.0", f"{int(value)}.00"}
        for text in texts - {"-0", "-0.0", "-0.00", "-0.000", "-0.00000"}:
            assert dfa.matches(text.encode()) == fits(value), (schema, text)


@pytest.mark.parametrize("step, whole", [(3, True), (7, False), (0.5, False), (0.01, False), (2.5, False), (1000, True)])
def test_multiples(step, whole):
    dfa = compile_schema(json.dumps({"type": "integer" if whole else "number", "multipleOf": step}))
    generator = random.Random(1)
    for _ in range(300):
        value = Decimal(generator.randint(-40000, 40000)) / (1 if whole else generator.choice([1, 10, 100, 1000]))
        assert dfa.matches(f"{value:f}".encode()) == (value % Decimal(str(step)) == 0), value
    assert dfa.matches(b"0") and not dfa.matches(b"") and not dfa.matches(b"-")


def test_an_integer_with_bounds_that_are_not_whole_and_switches_of_draft_4():
    judged({"type": "integer", "minimum": 0.5, "maximum": 3.5}, ["1", "3"], ["0", "4"])
    judged({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, ["2"], ["1"])
    judged({"type": "integer", "format": "int32"}, ["2147483647"], ["2147483648"])


def test_all_of_is_merged():
    schema = {"allOf": [
        {"type": "object", "properties": {"a": {"type": "string", "minLength": 2}}, "required": ["a"]},
        {"properties": {"a": {"maxLength": 3, "pattern": "^x"}, "b": {"type": "integer"}}},
    ]}
    judged(schema, ['{"a":"xy"}', '{"a":"xyz","b":1}'], ['{"a":"x"}', '{"a":"xyzz"}', '{"a":"ab"}', '{"b":1}', '{"a":"xy","c":1}'])


def test_siblings_of_any_of_hold_for_each_option():
    schema = {"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"], "anyOf": [
        {"properties": {"k": {"const": "a"}, "n": {"type": "integer"}}, "required": ["n"]}, {"properties": {"k": {"const": "b"}}}]}
    judged(schema, ['{"k":"a","n":1}', '{"k":"b"}'], ['{"k":"a"}', '{"k":"c"}', '{"k":"b","n":1}'])


def test_one_of_where_no_value_fits_two():
    schema = {"oneOf": [
        {"type": "object", "properties": {"kind": {"const": "a"}, "x": {"type": "integer"}}, "required": ["kind"]},
        {"type": "object", "properties": {"kind": {"const": "b"}}, "required": ["kind"]},
        {"type": "string", "pattern": "^a"}, {"type": "string", "pattern": "^b"}, {"type": "null"}]}
    judged(schema, ['{"kind":"a","x":1}', '{"kind":"b"}', '"abc"', '"b"', "null"], ['{"kind":"b","x":1}', '"c"'])


def test_keys_by_pattern_and_others():
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"],
        "patternProperties": {"^s": {"type": "string"}, "t$": {"maxLength": 1}}, "additionalProperties": {"type": "null"}}
    judged(schema, ['{"id":1}', '{"id":1,"sa":"long","x":null}', '{"id":1,"st":"a"}', '{"id":1,"xt":5}'],
        ['{"id":1,"st":"ab"}', '{"id":1,"sa":1}', '{"id":1,"x":1}', '{"id":1,"id":2}', '{"x":null}', '{"id":1,"xt":"ab"}'])
    judged({"type": "object", "patternProperties": {"^(yes|no)$": {"type": "string"}}, "additionalProperties": False},
        ["{}", '{"yes":"a"}', '{"no":"a","yes":"b"}'], ['{"maybe":"a"}', '{"yes":1}'])


def test_names_of_keys_and_counts():
    judged({"type": "object", "propertyNames": {"pattern": "^[a-c]+$"}, "additionalProperties": {"type": "null"}},
        ['{"abc":null}', "{}"], ['{"d":null}'])
    three = {"type": "object", "properties": {k: {"type": "null"} for k in "abc"}}
    judged(three | {"minProperties": 2}, ['{"a":null,"c":null}'], ["{}", '{"b":null}'])
    judged(three | {"maxProperties": 1}, ["{}", '{"b":null}'], ['{"a":null,"c":null}'])
    judged({"type": "object", "minProperties": 1, "additionalProperties": {"type": "null"}}, ['{"a":null}'], ["{}"])
    judged({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}}, "dependentRequired": {"a": ["b"]}},
        ["{}", '{"b":null}', '{"a":null,"b":null}'], ['{"a":null}'])


def test_arrays_by_place():
    judged({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "null"}], "items": {"const": "x"}, "maxItems": 3},
        ["[]", "[1]", "[1,null]", '[1,null,"x"]'], ["[null]", '[1,null,"x","x"]', "[1,1]"])
    judged({"type": "array", "prefixItems": [{"type": "integer"}], "items": False, "minItems": 1}, ["[1]"], ["[]", "[1,2]"])
    judged({"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True, "minItems": 2},
        ['["a","b"]', '["c","a","b"]'], ['["a","a"]', '["a"]'])


def test_not_and_if():
    judged({"type": "string", "not": {"pattern": "b"}}, ['"ac"', '""'], ['"abc"'])
    judged({"type": "string", "not": {"enum": ["a", "b"]}}, ['"c"', '"ab"'], ['"a"', '"b"'])
    judged({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}}, "not": {"required": ["a", "b"]}},
        ["{}", '{"a":null}', '{"b":null}'], ['{"a":null,"b":null}'])
    judged({"type": "object", "properties": {"k": {"enum": ["a", "b"]}, "n": {"type": "integer"}}, "required": ["k"],
        "if": {"properties": {"k": {"const": "a"}}}, "then": {"required": ["n"]}}, ['{"k":"a","n":1}', '{"k":"b"}'], ['{"k":"a"}'])


def test_values_without_a_schema_nest_so_deep():
    judged({}, ["1.5", '"a"', "[[[[1]]]]", '{"a":{"b":[{"c":null}]}}'], ["[[[[[1]]]]]", "[1,]", "{a:1}"])
    judged({"x-lmc-depth": 1}, ["[1]", "{}"], ["[[1]]"])
    judged({"type": "object"}, ['{"a":1,"b":[2]}'], ["[]"])


def test_blanks_only_where_asked_for():
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}, "required": ["a"]}
    assert accepts(schema, '{"a":[1,2]}', '{"a": [1, 2]}') == [True, False]
    assert accepts(schema | {"x-lmc-spaces": True}, '{"a":[1,2]}', '{"a": [1, 2]}', '{"a":  [1]}') == [True, True, False]


def test_references():
    definitions = {"n": {"type": "null"}, "a/b": {"$ref": "#/$defs/n"}, "anchored": {"$anchor": "here", "type": "boolean"}}
    for target, text in (("#/$defs/a~1b", "null"), ("#here", "true"), ("http://x.y/z#/$defs/n", "null")):
        assert accepts({"$id": "http://x.y/z", "$ref": target, "$defs": definitions}, text, "1") == [True, False]


def test_eight_thousand_names():
    names = [f"name {n * 7919 % 100003}" for n in range(8000)]
    dfa = compile_schema(json.dumps({"type": "object", "properties": {"n": {"type": "string", "enum": names}}, "required": ["n"]}))
    assert dfa.matches(json.dumps({"n": names[777]}, separators=(",", ":")).encode())
    assert not dfa.matches(b'{"n":"name"}')


def test_a_pattern_reads_white_space_as_javascript_does():
    judged({"type": "string", "pattern": r"^\s[^\s]$"}, ['"\u00a0a"', '"\u2003b"'], ['"aa"', '"  "'])
    judged({"type": "string", "pattern": "^.$"}, ['"a"'], ['"\u2028"'])
