"""What the OpenAPI document says of programs' functions."""

from __future__ import annotations

import pytest

from lmc.json_schema import argument_schema, json_schema
from lmc.types import BOOL, FLOAT, INT, STR, DictT, Field, ListT, LiteralT, OptionalT, RangeT, RecordT, StrT, TupleT, UnionT
from tests.server.offered import KINDS, offering

POINT = RecordT("m.Point", (Field("x", INT), Field("y", INT, "0")), "A point.")
WHOLE = {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}


@pytest.mark.parametrize("type, schema", [
    (INT, WHOLE), (RangeT(1, 5), {"type": "integer", "minimum": 1, "maximum": 5}), (BOOL, {"type": "boolean"}), (FLOAT, {"type": "number"}),
    (StrT(max_len=3), {"type": "string", "maxLength": 3}), (LiteralT(("a", 1)), {"enum": ["a", 1]}),
    (ListT(INT, 1, 2), {"type": "array", "items": WHOLE, "minItems": 1, "maxItems": 2}),
    (OptionalT(INT), {"anyOf": [WHOLE, {"type": "null"}]}),
    (TupleT((INT, STR)), {"type": "array", "prefixItems": [WHOLE, {"type": "string"}], "items": False}),
    (DictT(STR, INT), {"type": "object", "additionalProperties": WHOLE, "propertyNames": {"type": "string"}}),
    (DictT(INT, STR), {"type": "object", "additionalProperties": {"type": "string"}, "propertyNames": {"pattern": "^-?[0-9]{1,18}$"}}),
    (POINT, {"type": "object", "description": "A point.", "properties": {"x": WHOLE, "y": {**WHOLE, "default": 0}}, "required": ["x"],
             "additionalProperties": False}),
    (UnionT("m.U", (POINT,)), {"anyOf": [{
        "type": "object", "description": "A point.", "properties": {"type": {"const": "Point"}, "x": WHOLE, "y": {**WHOLE, "default": 0}},
        "required": ["type", "x"], "additionalProperties": False}]}),
], ids=lambda value: None if isinstance(value, dict) else str(value))
def test_what_is_taken_as_a_value(type, schema):
    assert argument_schema(type) == schema


def test_what_a_model_writes_has_every_field():
    assert json_schema(POINT)["required"] == ["x", "y"] and argument_schema(POINT)["required"] == ["x"]


def test_an_operation(tmp_path):
    async def use(client, state):
        return (await client.get("/openapi.json")).json()

    document = offering(tmp_path, {"p.lmp": KINDS}, use)
    assert [path for path in document["paths"] if "programs" in path] == \
        ["/programs/p/everything", "/programs/p/label", "/programs/p/story", "/programs/p/nothing"]
    one = document["paths"]["/programs/p/everything"]["post"]
    assert (one["operationId"], one["summary"], one["description"]) == \
        ("p.everything", "All kinds of values come back.", "None of them is changed.")
    body = one["requestBody"]["content"]["application/json"]["schema"]
    assert body["required"] == ["wand", "action"] and body["additionalProperties"] is False
    assert body["properties"]["grade"] == {"enum": ["A", "B", "C"], "default": "A"}
    assert body["properties"]["tags"] == {"type": "array", "items": {"type": "string"}, "maxItems": 3, "default": ["a"]}
    assert body["properties"]["note"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}, "FastAPI leaves a default of null out"
    assert body["properties"]["wand"]["description"] == "A wand and what it is made of."
    assert body["properties"]["wand"]["required"] == ["wood"] and body["properties"]["wand"]["properties"]["core"]["default"] == "hair"
    answer = one["responses"]["200"]["content"]["application/json"]["schema"]
    assert set(answer["required"]) == {"value", "seed", "usage", "seconds", "warnings", "printed"}
    assert answer["properties"]["value"]["properties"]["wand"]["required"] == ["wood", "core", "length"]
    assert {"400", "401", "413", "422", "429", "500", "502", "503"} <= set(one["responses"])
    options = {option["name"]: option["schema"] for option in one["parameters"]}
    assert options["seed"] == {"type": "integer", "minimum": 0, "maximum": 2**64 - 1} and options["max_calls"]["maximum"] == 1_000
    assert document["paths"]["/programs/p/nothing"]["post"]["responses"]["200"]["content"]["application/json"]["schema"][
        "properties"]["value"] == {"type": "null"}
