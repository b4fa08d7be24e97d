"""Builtins that write and read JSON, and that describe a type in a prompt.

    json_((1, 2)) == "[1,2]"
    parse_json('{"a": 1}', need=Need(result=DictT(STR, INT))) == {"a": 1}
    fields("@Verdict", need=Need(named={"Verdict": …})) == "grade, overall and summary"

A type that is an argument comes as its text form, with the named types in `need`.
"""

from __future__ import annotations

import json
from typing import Any

from lmc.json_schema import field_list, json_schema
from lmc.pure.core import Need, PureError, expect_str, kind_of
from lmc.type_text import parse_type
from lmc.values import ValueMismatch, from_data, to_json


def json_(value: Any, type_text: Any = None, *, need: Need) -> str:
    """The value as compact JSON.  `type_text` is its static type, which says where a union's tag is written."""
    try:
        return to_json(value, None if type_text is None else parse_type(type_text, need.named))
    except TypeError:
        raise PureError("type", f"{kind_of(value)} cannot be written as JSON") from None


def parse_json(text: Any, *, need: Need) -> Any:
    """The value that a JSON text stands for, checked against the type that is wanted here."""
    assert need.result is not None, "`parse_json` needs the type of its result"
    try:
        data = json.loads(expect_str(text, "parse_json"), parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise PureError("value", f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except ValueError as error:  # NaN, or an int of thousands of digits
        raise PureError("value", f"not JSON: {error}") from None
    except RecursionError:
        raise PureError("value", "not JSON: nested too deeply") from None
    try:
        return from_data(data, need.result)
    except ValueMismatch as error:
        raise PureError("value", f"the JSON does not fit: {error}") from None


def schema(type_text: Any, *, need: Need) -> str:
    """The JSON Schema of a type, compact."""
    return json.dumps(json_schema(parse_type(type_text, need.named)), ensure_ascii=False, separators=(",", ":"))


def fields(type_text: Any, *, need: Need) -> str:
    """The names of a record's fields: `grade, overall and summary`."""
    return field_list(parse_type(type_text, need.named))


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")
