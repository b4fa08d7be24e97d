"""Types: their text form, read back; their data; JSON Schema for people."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lmc.json_schema import field_list, json_schema
from lmc.type_text import TypeTextError, named_type_from_data, named_type_to_data, parse_type, type_to_data
from lmc.types import (
    BOOL, CONTEXT, ERROR, FLOAT, INT, NEVER, NONE, SCORED, STR, DictT, Field, ListT, LiteralT, OptionalT, RangeT, RecordT,
    StrT, TupleT,
    UnionT, base_type, named_types,
)
from tests.strategies import types

WAND = RecordT("lib.Wand", (Field("wood", StrT(max_len=16)), Field("length", FLOAT, "1.0")), "A wand.")
STOP = RecordT("Stop", ())
ACTION = UnionT("Action", (WAND, STOP))
NAMED = {t.name: t for t in (WAND, STOP, ACTION)}

TEXTS = [
    (STR, "str"),
    (StrT(1, 30, r'\d"+'), r'str(min_len=1, max_len=30, regex="\\d\"+")'),
    (RangeT(-3, 5), "-3..5"),
    (LiteralT(("A", 'b "c" | é', -1, True)), r'"A" | "b \"c\" | é" | -1 | true'),
    (ListT(StrT(max_len=30), None, 5), "list<str(max_len=30)>(max_items=5)"),
    (ListT(ListT(LiteralT(("a", "b")), 1)), 'list<list<"a" | "b">(min_items=1)>'),
    (DictT(STR, OptionalT(WAND)), "dict<str, optional<@lib.Wand>>"),
    (TupleT((INT, CONTEXT)), "tuple<int, context>"),
    (TupleT(()), "tuple<>"),
    (OptionalT(ACTION), "optional<@Action>"),
    (BOOL, "bool"), (NONE, "none"), (NEVER, "never"), (FLOAT, "float"), (ERROR, "@Error"), (SCORED, "@Scored"),
]


@pytest.mark.parametrize("t, text", TEXTS, ids=[text for _, text in TEXTS])
def test_text_form_is_read_back(t, text):
    assert str(t) == text and type_to_data(t) == text
    assert parse_type(text, NAMED) == t


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(types)
def test_every_type_is_read_back(t):
    # Named types of one name must be one type; the table is what this type is made of.
    table: dict = {}
    for named in named_types(t):
        if table.setdefault(named.name, named) != named:
            return
    assert parse_type(str(t), table) == t


@pytest.mark.parametrize(
    "text, position",
    [
        ("", 0), ("strr", 4), ("list", 4), ("list<int", 8), ("list<int>>", 9), ("@Nobody", 7), ("str(max_len=true)", 12),
        ("str(max_items=3)", 14),
        ("str(max_len=1, max_len=2)", 23), ("dict<str>", 9), ('"a" |"b"', 3), ("1 | ", 4), ("1..", 1),
        ("optional<int, int>", 18), ("1.5", 0),
        ("list<" * 3000 + "int" + ">" * 3000, 0),
    ],
)
def test_broken_text_is_refused_with_its_place(text, position):
    with pytest.raises(TypeTextError) as caught:
        parse_type(text, NAMED)
    assert caught.value.position == position


@given(st.text(alphabet='strin<>(),="| @.lo1-maxe_', max_size=20))
def test_any_text_is_read_or_refused(text):
    try:
        assert str(parse_type(text, NAMED)) == text
    except TypeTextError:
        return


@pytest.mark.parametrize("t", [WAND, STOP, ACTION, ERROR])
def test_definitions_are_read_back(t):
    assert named_type_from_data(named_type_to_data(t), NAMED) == t


@pytest.mark.parametrize(
    "data",
    [
        None, {}, {"name": 1}, {"name": "A"}, {"name": "A", "fields": [{"name": "x"}]},
        {"name": "A", "fields": [{"name": "x", "type": "?"}]},
        {"name": "A", "fields": [{"name": "x", "type": "int", "default": 1}]}, {"name": "A", "members": ["Nobody"]},
        {"name": "A", "members": []},
        {"name": "A", "members": [["x"]]}, {"name": "A", "fields": [], "doc": 3}, {"name": "A", "members": ["Action"]},
    ],
)
def test_broken_definitions_are_refused(data):
    with pytest.raises(TypeTextError):
        named_type_from_data(data, NAMED)


def test_base_types():
    assert base_type(RangeT(1, 5)) == INT and base_type(StrT(max_len=3)) == STR
    assert base_type(LiteralT(("a", "b"))) == STR and base_type(LiteralT((1, 2))) == INT and base_type(LiteralT((True,))) == BOOL
    assert base_type(LiteralT(("a", 1))) == LiteralT(("a", 1))
    assert base_type(OptionalT(ListT(RangeT(1, 2), 1, 2))) == OptionalT(ListT(INT))
    assert base_type(DictT(StrT(max_len=1), RangeT(1, 2))) == DictT(STR, INT)


def test_named_types_come_after_those_they_need():
    owner = RecordT("Owner", (Field("wands", ListT(WAND)), Field("acts", DictT(STR, ACTION)), Field("pair", TupleT((STOP,)))))
    names = [t.name for t in named_types(OptionalT(owner))]
    assert names[-1] == "Owner" and names.index("lib.Wand") < names.index("Action") and "Stop" in names


def test_json_schema_of_a_record():
    assert json_schema(WAND) == {
        "type": "object", "description": "A wand.",
        "properties": {"wood": {"type": "string", "maxLength": 16}, "length": {"type": "number"}},
        "required": ["wood", "length"], "additionalProperties": False,
    }


def test_json_schema_of_a_union_has_its_tag():
    first, second, third = json_schema(OptionalT(ACTION))["anyOf"]
    assert list(first["properties"]) == ["type", "wood", "length"] and first["properties"]["type"] == {"const": "Wand"}
    assert second["properties"] == {"type": {"const": "Stop"}} and third == {"type": "null"}


@pytest.mark.parametrize(
    "t, schema",
    [
        (StrT(1, None, "a|b"), {"type": "string", "minLength": 1, "pattern": "^(?:a|b)$"}),
        (StrT(regex="(?i)a"), {"type": "string", "pattern": "^(?i:a)$"}),
        (RangeT(1, 5), {"type": "integer", "minimum": 1, "maximum": 5}),
        (LiteralT(("a", 1)), {"enum": ["a", 1]}),
        (ListT(BOOL, 1, 2), {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 2}),
        (DictT(STR, INT), {"type": "object", "additionalProperties": {"type": "integer"}}),
        (TupleT((INT, NONE)), {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "null"}], "items": False}),
        (OptionalT(FLOAT), {"anyOf": [{"type": "number"}, {"type": "null"}]}),
    ],
)
def test_json_schemas(t, schema):
    assert json_schema(t) == schema


def test_field_lists():
    verdict = RecordT("Verdict", (Field("grade", INT), Field("overall", INT), Field("summary", STR)))
    assert field_list(verdict) == "grade, overall and summary"
    assert field_list(OptionalT(WAND)) == "wood and length" and field_list(STOP) == ""
    assert field_list(ACTION) == "type, wood and length; or type"
