"""The keywords of JSON Schema: which are enforced, which say nothing about a value, which are refused.

    "minLength" in ENFORCED     is_annotation("title")     "contains" in REFUSED

All other names are mistakes.  This file does not know what a keyword means.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from lmc.regex.parse import RegexError

#: Say nothing about whether a value fits.  Names beginning with `x-` or `_` do not either.
ANNOTATIONS = frozenset({
    "title", "description", "default", "examples", "example", "$schema", "$id", "id", "$anchor", "$comment", "$defs", "definitions",
    "$vocabulary", "deprecated", "readOnly", "writeOnly", "readonly", "contentEncoding", "contentMediaType", "contentSchema",
    # What editors, generators and registries write beside them.
    "comment", "comment2", "comment3", "comments", "$file", "self", "links", "media", "faker", "name", "version", "vendor",
    "propertyOrder", "stability", "strictProperties", "markdownDescription", "deprecationMessage", "enumDescriptions",
    "markdownEnumDescriptions", "enumNames", "doNotSuggest", "errorMessage", "patternErrorMessage", "suggestSortText",
    "defaultSnippets", "allowTrailingCommas", "allowComments", "tsType", "javaType", "existingJavaType", "discriminator", "xml",
    "externalDocs", "order", "http_header", "options", "ui",
})
ENFORCED = frozenset({
    "type", "enum", "const", "$ref", "allOf", "anyOf", "oneOf", "properties", "required", "additionalProperties",
    "patternProperties", "propertyNames", "minProperties", "maxProperties", "dependencies", "dependentRequired",
    "dependentSchemas", "items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "minLength", "maxLength",
    "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "nullable", "not", "if",
})
#: Keywords of some draft that only a grammar may hold, or nothing does.
REFUSED = frozenset({
    "then", "else", "contains", "minContains", "maxContains", "unevaluatedProperties", "unevaluatedItems", "extends",
    "disallow", "divisibleBy", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor",
})

_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
_MAPS_USED = ("properties", "patternProperties", "dependentSchemas", "dependencies")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_SINGLE = (
    "items", "additionalItems", "additionalProperties", "propertyNames", "not", "if", "then", "else", "contains",
    "unevaluatedProperties", "unevaluatedItems",
)


class SchemaError(RegexError):
    """The schema is wrong or asks for what is not supported; `path` leads to the place (`properties.age.minimum`)."""

    def __init__(self, path: str, message: str):
        super().__init__(f"at `{path}`: {message}" if path else message, 0)
        self.path = path


class BeyondAutomata(SchemaError):
    """The schema may be right, but asks for what no finite automaton of ours holds; a grammar may."""


def is_annotation(name: str) -> bool:
    return name in ANNOTATIONS or name.startswith(("x-", "_"))


def subschemas(schema: Any, path: str, *, defined: bool = True) -> Iterator[tuple[dict[str, Any], str]]:
    """The schema and all schemas in it, each with its path; with `defined` also those that only references reach."""
    if not isinstance(schema, dict):
        return
    yield schema, path
    for name in _SINGLE:
        yield from subschemas(schema.get(name), under(path, name), defined=defined)
    for name in _LISTS:
        if isinstance(schema.get(name), list):
            for number, inner in enumerate(schema[name]):
                yield from subschemas(inner, under(path, f"{name}.{number}"), defined=defined)
    for name in _MAPS if defined else _MAPS_USED:
        if isinstance(schema.get(name), dict):
            for key, inner in schema[name].items():
                yield from subschemas(inner, under(path, f"{name}.{key}"), defined=defined)


def under(path: str, step: str) -> str:
    return f"{path}.{step}" if path else step


def shown(value: Any) -> str:
    """A value as it is quoted in messages."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:39] + "…"
