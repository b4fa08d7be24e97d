"""The JSON Schema of a type, for prompts (`schema(T)`), tools and people, and the list of a record's fields.

    json_schema(OptionalT(RangeT(1, 5))) == {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 5}, {"type": "null"}]}
    field_list(verdict) == "grade, overall and summary"

Only the last component of a qualified name is shown.  What a schema means for generation is `lmc.regex.schema`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from lmc.types import (
    ERROR, BoolT, DictT, FallibleT, FloatT, IntT, ListT, LiteralT, NoneT, OptionalT, RangeT, RecordT, StrT, TupleT, Type, UnionT,
)


class NoSchema(AssertionError):
    """A type that JSON cannot hold, such as a context."""


def json_schema(t: Type) -> dict[str, Any]:
    """The schema that JSON of this type fulfils.  A context has none: asking is a broken promise of the checker."""
    match t:
        case StrT():
            return _string(t)
        case IntT():
            return {"type": "integer"}
        case RangeT(low, high):
            return {"type": "integer", "minimum": low, "maximum": high}
        case FloatT():
            return {"type": "number"}
        case BoolT():
            return {"type": "boolean"}
        case NoneT():
            return {"type": "null"}
        case LiteralT(values):
            return {"enum": list(values)}
        case ListT():
            return {"type": "array", "items": json_schema(t.element), **_given(minItems=t.min_items, maxItems=t.max_items)}
        case TupleT(items):
            return {"type": "array", "prefixItems": [json_schema(i) for i in items], "items": False}
        case DictT():
            return {"type": "object", "additionalProperties": json_schema(t.value)}
        case OptionalT(inner):
            return _or(json_schema(inner), {"type": "null"})
        case FallibleT(inner):
            return _or(json_schema(inner), _record(ERROR, tag=short_name(ERROR)))
        case RecordT():
            return _record(t)
        case UnionT():
            return {"anyOf": [_record(m, tag=short_name(m)) for m in t.members]}
    raise NoSchema(f"`{t}` has no JSON Schema")


def argument_schema(t: Type) -> dict[str, Any]:
    """The schema of what is taken as a value of the type: as `json_schema`, but a field with a default may be left out, an int has 64
    bits, and the keys of a dict are of its key type.
    """
    match t:
        case IntT():
            return {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}
        case ListT():
            return json_schema(t) | {"items": argument_schema(t.element)}
        case TupleT(items):
            return json_schema(t) | {"prefixItems": [argument_schema(i) for i in items]}
        case DictT(key, value):
            return {"type": "object", "additionalProperties": argument_schema(value), "propertyNames": _key(key)}
        case OptionalT(inner):
            return _or(argument_schema(inner), {"type": "null"})
        case FallibleT(inner):
            return _or(argument_schema(inner), _record(ERROR, tag=short_name(ERROR)))
        case RecordT():
            return _record_argument(t)
        case UnionT():
            return {"anyOf": [_record_argument(m, tag=short_name(m)) for m in t.members]}
    return json_schema(t)


def signature_schema(params: Iterable[tuple[str, Type, str | None]], result: Type, description: str) -> dict[str, Any]:
    """A function's schema in the form of tools: `parameters` (one object), `returns`, and `description` where there is one.

    params: name, type and the default as JSON text, None where the argument is required
    Raises `NoSchema` where a parameter or the result holds a context.
    """
    params = tuple(params)
    properties = {name: json_schema(type) | ({} if default is None else {"default": json.loads(default)})
                  for name, type, default in params}
    required = [name for name, _, default in params if default is None]
    about = {"description": description} if description else {}
    return about | {
        "parameters": {"type": "object", "properties": properties, "required": required, "additionalProperties": False},
        "returns": json_schema(result),
    }


def field_list(t: Type) -> str:
    """The names of a record's fields as words: `grade, overall and summary`; a union's begin with `type`."""
    match t:
        case OptionalT(inner):
            return field_list(inner)
        case UnionT():
            return "; or ".join(_words(["type", *(f.name for f in m.fields)]) for m in t.members)
        case RecordT():
            return _words([f.name for f in t.fields])
    raise AssertionError(f"{t} has no fields")


def short_name(t: RecordT | UnionT) -> str:
    """The name without its module: the tag of a union's member, the title for people."""
    return t.name.rpartition(".")[2]


def _string(t: StrT) -> dict[str, Any]:
    pattern = None if t.regex is None else _whole(t.regex)
    return {"type": "string", **_given(minLength=t.min_len, maxLength=t.max_len, pattern=pattern)}


def _whole(regex: str) -> str:
    """JSON Schema searches for its pattern, a `regex` of ours matches the whole value.  Its flags move into the group."""
    flags = re.match(r"\(\?([is]+)\)", regex)
    return f"^(?{flags[1]}:{regex[flags.end():]})$" if flags else f"^(?:{regex})$"


def _or(inner: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [*(inner["anyOf"] if set(inner) == {"anyOf"} else [inner]), other]}


def _record(t: RecordT, *, tag: str | None = None) -> dict[str, Any]:
    properties: dict[str, Any] = {} if tag is None else {"type": {"const": tag}}
    properties |= {f.name: json_schema(f.type) for f in t.fields}
    # Generated records hold every declared key (LANGUAGE §8), so all are required, whatever has a default.
    doc = {"description": t.doc} if t.doc else {}
    return {"type": "object", **doc, "properties": properties, "required": list(properties), "additionalProperties": False}


def _record_argument(t: RecordT, *, tag: str | None = None) -> dict[str, Any]:
    schema = _record(t, tag=tag)
    for field in t.fields:
        schema["properties"][field.name] = argument_schema(field.type)
        if field.default is not None:
            schema["properties"][field.name]["default"] = json.loads(field.default)
            schema["required"].remove(field.name)
    return schema


def _key(t: Type) -> dict[str, Any]:
    # JSON has only names; those of an int are its digits.
    return {"pattern": r"^-?[0-9]{1,18}$"} if isinstance(t, (IntT, RangeT)) else json_schema(t)


def _given(**keywords: object) -> dict[str, object]:
    return {name: value for name, value in keywords.items() if value is not None}


def _words(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
