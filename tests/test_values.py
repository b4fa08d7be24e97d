"""Values: their texts, and what is checked when they come from outside."""

import dataclasses
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lmc.types import (
    BOOL, FLOAT, INT, NONE, STR, DictT, Field, ListT, LiteralT, OptionalT, RangeT, RecordT, StrT, TupleT, UnionT,
)
from lmc.values import Record, ValueMismatch, from_data, from_text, text_of, to_data, to_json
from tests.strategies import types, values

POINT = RecordT("lib.Point", (Field("x", INT), Field("label", OptionalT(STR), '"none"'), Field("tags", ListT(STR), "[]")))
STOP = RecordT("Stop", ())
ACTION = UnionT("Action", (POINT, STOP))
HERE = Record(POINT, (1, "é", ("a", "b")))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_json_is_read_back(data):
    t = data.draw(types)
    value = data.draw(values(t))
    assert from_data(json.loads(to_json(value, t)), t) == value


def test_texts():
    assert [text_of(v) for v in ("a", True, False, -3, 2.0, 0.1)] == ["a", "true", "false", "-3", "2.0", "0.1"]
    assert to_json(HERE) == '{"x":1,"label":"é","tags":["a","b"]}'
    assert to_json((HERE, None, "é\n")) == '[{"x":1,"label":"é","tags":["a","b"]},null,"é\\n"]'
    assert to_json({3: True}) == '{"3":true}'


def test_a_tag_is_written_where_the_type_is_a_union():
    tagged = {"type": "Point", "x": 1, "label": "é", "tags": ["a", "b"]}
    assert to_data(HERE, ACTION) == tagged and next(iter(to_data(HERE, ACTION))) == "type"
    assert to_data(HERE, OptionalT(ACTION)) == tagged
    assert to_data((HERE,), ListT(ACTION)) == [tagged]
    assert to_data((HERE,), OptionalT(ListT(OptionalT(ACTION)))) == [tagged]
    assert to_data({"k": HERE}, OptionalT(DictT(STR, ACTION))) == {"k": tagged}
    assert to_data((1, HERE), TupleT((INT, ACTION))) == [1, tagged]
    assert to_data(HERE, POINT) == to_data(HERE)
    assert to_data(Record(RecordT("H", (Field("a", ACTION),)), (HERE,))) == {"a": tagged}


def test_missing_fields_take_their_defaults():
    assert from_data({"x": 3}, POINT) == Record(POINT, (3, "none", ()))
    assert from_data({"x": 3, "label": None}, POINT) == Record(POINT, (3, None, ()))


def test_records_from_objects():
    @dataclasses.dataclass
    class Point:
        x: int
        label: str | None
        tags: list[str]

    assert from_data(Point(1, "é", ["a", "b"]), POINT) == HERE
    assert from_data(Point(1, "é", ["a", "b"]), ACTION) == HERE
    assert from_data(HERE, POINT) is HERE and from_data(HERE, ACTION) is HERE


def test_numbers_from_outside():
    assert repr(from_data(3, FLOAT)) == "3.0"
    assert from_data({"1": "a"}, DictT(INT, STR)) == {1: "a"}
    assert from_data([1, 2], TupleT((INT, INT))) == (1, 2)


MISMATCHES = [
    (True, INT, "expected int, found true"),
    (1, BOOL, "expected bool, found 1"),
    (1.0, INT, "expected int, found 1.0"),
    (2**63, INT, "expected int, found 9223372036854775808"),
    (10**5000, INT, "expected int, found an int of 16610 bits"),
    (10**400, FLOAT, "expected float, found an int of"),
    (float("nan"), FLOAT, "expected float, found nan"),
    (float("inf"), FLOAT, "expected float, found inf"),
    ("\ud800", STR, "expected str"),
    ("abc", StrT(max_len=2), "expected str(max_len=2), found 'abc'"),
    ("a", StrT(min_len=2), "expected str(min_len=2)"),
    ("ab", StrT(regex="a"), "expected str(regex="),
    (6, RangeT(1, 5), "expected 1..5, found 6"),
    (True, RangeT(0, 5), "expected 0..5, found true"),
    (1, LiteralT((True,)), "expected True, found 1"),
    ("c", LiteralT(("a", "b")), 'expected "a" | "b", found \'c\''),
    (0, NONE, "expected None, found 0"),
    ("ab", ListT(STR), "expected a list, found 'ab'"),
    ([], ListT(STR, 1), "expected at least 1 elements"),
    ([1, 2], ListT(INT, None, 1), "expected at most 1 elements"),
    ([1, "x"], ListT(INT), "at `[1]`: expected int"),
    ({"a": [1, "x"]}, DictT(STR, ListT(INT)), "at `['a'][1]`: expected int"),
    ([], DictT(STR, INT), "expected a dict"),
    ([1], TupleT((INT, INT)), "expected 2 elements"),
    ({"label": "a"}, POINT, "expected a lib.Point with the field `x`"),
    ({"x": 1, "y": 2}, POINT, "at `y`: expected a field of lib.Point"),
    ({"x": 1, "tags": [1]}, POINT, "at `tags[0]`: expected str"),
    (None, POINT, "expected a lib.Point, found null"),
    ("x", POINT, "expected a lib.Point, found 'x'"),
    (Record(STOP, ()), POINT, "expected a lib.Point"),
    ({"x": 1}, ACTION, "expected one of Point, Stop"),
    ({"type": ["Point"]}, ACTION, "expected one of Point, Stop"),
    ({"type": "lib.Point", "x": 1}, ACTION, "expected one of Point, Stop"),
    ({"type": "Stop", "x": 1}, ACTION, "at `x`: expected a field of Stop"),
]


@pytest.mark.parametrize("data, t, message", MISMATCHES, ids=[m for _, _, m in MISMATCHES])
def test_what_does_not_fit_is_refused_with_its_place(data, t, message):
    with pytest.raises(ValueMismatch) as caught:
        from_data(data, t)
    assert message in str(caught.value) and len(str(caught.value)) < 250


@pytest.mark.parametrize(
    "text, t, value",
    [
        ('a"b', STR, 'a"b'), ("null", STR, "null"), ("B", LiteralT(("A", "B")), "B"), ("1", LiteralT((True, 1)), 1),
        ("true", LiteralT((1, True)), True),
        ("12", INT, 12), ("12", FLOAT, 12.0), ("null", OptionalT(STR), None), ('"x"', OptionalT(STR), "x"),
        ('[1,2]', ListT(INT), (1, 2)),
        ('{"type":"Stop"}', ACTION, Record(STOP, ())), ("true", BOOL, True),
    ],
)
def test_generated_text(text, t, value):
    found = from_text(text, t)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize("text, t",
    [("C", LiteralT(("A",))), ("{", ListT(INT)), ("", INT), ("x", BOOL), ("1.5", INT), ("[" * 100_000, ListT(INT)),
        ("abc", StrT(max_len=2))])
def test_generated_text_that_was_cut_or_is_wrong(text, t):
    with pytest.raises(ValueMismatch):
        from_text(text, t)
