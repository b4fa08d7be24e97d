"""`not` and `if` as schemas without them: what must hold instead.

    negated({"type": "object", "required": ["a"]})
        ->  {"anyOf": [{"$not-types": "object"}, {"type": "object", "properties": {"a": false}}]}

A schema is the conjunction of its keywords, so one of them must fail.  Where no keywords of ours say that one fails, it is refused.
"""

from __future__ import annotations

from typing import Any

from lmc.regex.schema_flat import NOT_PATTERN, NOT_REFERENCE, NOT_TYPES, NOT_VALUES
from lmc.regex.schema_keywords import BeyondAutomata, is_annotation, under

#: Keyword -> its type, the keyword that says the opposite, and how far the bound moves.
_OPPOSITES = {
    "minLength": ("string", "maxLength", -1), "maxLength": ("string", "minLength", 1),
    "minItems": ("array", "maxItems", -1), "maxItems": ("array", "minItems", 1),
    "minProperties": ("object", "maxProperties", -1), "maxProperties": ("object", "minProperties", 1),
    "minimum": ("number", "exclusiveMaximum", 0), "maximum": ("number", "exclusiveMinimum", 0),
    "exclusiveMinimum": ("number", "maximum", 0), "exclusiveMaximum": ("number", "minimum", 0),
}


def negated(schema: Any, path: str) -> Any:
    """A schema that holds where this one does not.  Raises `BeyondAutomata` where there is none of ours."""
    if isinstance(schema, bool):
        return not schema
    if not isinstance(schema, dict):
        return False
    keywords = {name: value for name, value in schema.items() if not is_annotation(name)}
    if not keywords:
        return False
    options = [option for name, value in keywords.items() for option in _fails(name, value, under(path, name), keywords)]
    return options[0] if len(options) == 1 else {"anyOf": options} if options else False


def conditional(schema: dict[str, Any]) -> Any:
    """`if`, `then` and `else` as alternatives."""
    condition = schema["if"]
    return {"anyOf": [
        {"allOf": [condition, schema.get("then", True)]}, {"allOf": [{"not": condition}, schema.get("else", True)]},
    ]}


def _fails(name: str, value: Any, path: str, keywords: dict[str, Any]) -> list[Any]:
    """What may hold where one keyword does not."""
    if name in _OPPOSITES and isinstance(value, (int, float)) and not isinstance(value, bool):
        kind, opposite, step = _OPPOSITES[name]
        return [] if step and value + step < 0 else [{"type": kind, opposite: value + step}]
    match name:
        case "type":
            return [{NOT_TYPES: value}]
        case "not":
            return [value]
        case "$ref":
            return [{NOT_REFERENCE: value}]
        case "required":
            return [{"type": "object", "properties": {key: False}} for key in value]
        case "properties":
            return [
                {"type": "object", "required": [key], "properties": {key: {"not": inner}}}
                for key, inner in value.items()
            ]
        case "allOf":
            return [{"not": inner} for inner in value]
        case "anyOf":
            return [{"allOf": [{"not": inner} for inner in value]}]
        case "pattern":
            return [{"type": "string", NOT_PATTERN: value}]
        case "enum" | "const":
            values = value if name == "enum" else [value]
            if all(isinstance(one, str) for one in values):
                return [{NOT_VALUES: values}]
    raise BeyondAutomata(path, f"the keyword `{name}` is not supported inside `not`")
