"""The twenty constraints of `lmc bench masks`: ten regexes and ten JSON schemas, each with a text that it accepts.

    date      \\d{4}-\\d{2}-\\d{2}      2025-03-14

The regexes are those of `lmc bench regex`.  What is written is compact JSON with the keys in their order, which every engine accepts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from lmc.cli.bench_regex import rows


@dataclass(frozen=True, slots=True)
class Measured:
    """kind: "regex" or "schema"; text: the pattern or the schema; sample: what is written under it"""

    name: str
    kind: str
    text: str
    sample: str


def suite() -> list[Measured]:
    patterns = {name: pattern for name, pattern, _ in rows()}
    regexes = [Measured(name, "regex", patterns[name], sample or patterns[name].split("|")[250]) for name, sample in _SAMPLES.items()]
    return regexes + [Measured(name, "schema", json.dumps(schema), json.dumps(value, separators=(",", ":"), ensure_ascii=False))
                      for name, schema, value in _schemas()]


_SAMPLES = {
    "date": "2025-03-14",
    "iso datetime": "2025-03-14T09:26:53.589Z",
    "ipv4": "192.168.10.254",
    "e-mail": "first.last@mail.example.co.uk",
    "url": "https://www.example.org:8080/path/to/page?query=1&more=2",
    "JSON string": '"A \\"quoted\\" word, and a line\\nbreak: naïve."',
    '"[^"]{0,200}"': '"The quick brown fox jumps over the lazy dog, and then it sleeps."',
    "500 words": "",  # one of the words
    "JSON object, depth 2": '{"name":"Ann","age":42,"address":{"street":"Main St","number":7,"tags":["a","b"]},"home":null}',
    "choice and prose tail": "maybe: nobody knows what the weather will be like next week.",
}


def _closed(properties: dict[str, Any], *, optional: bool = False) -> dict[str, Any]:
    required = [] if optional else list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _schemas() -> list[tuple[str, dict[str, Any], Any]]:
    text, whole, number, truth = ({"type": name} for name in ("string", "integer", "number", "boolean"))
    short, colours = {"type": "string", "maxLength": 30}, ["red", "green", "blue", "black"]
    place = _closed({"street": text, "city": text, "zip": {"type": "string", "pattern": "^[0-9]{5}$"}})
    leaf = _closed({"label": text, "weight": number})
    return [
        ("person", _closed({"name": text, "age": whole, "member": truth}), {"name": "Zoë Müller", "age": 42, "member": True}),
        ("address", _closed({"name": text, "home": place}),
            {"name": "Ann", "home": {"street": "12 Main St", "city": "Springfield", "zip": "12345"}}),
        ("enum of 40", _closed({"code": {"enum": [f"code-{n * n % 997}" for n in range(40)]}}), {"code": "code-400"}),
        ("16 optional", _closed({f"field{n}": whole for n in range(16)}, optional=True), {"field1": 1, "field7": 70, "field15": -3}),
        ("points", {"type": "array", "items": _closed({"x": number, "y": number}), "minItems": 1, "maxItems": 8},
            [{"x": 1.5, "y": -2}, {"x": 0, "y": 10.25}]),
        ("short strings", _closed({name: short for name in ("first", "second", "third")}),
            {"first": "one word", "second": "two", "third": "and thirty characters at most"}),
        ("null or text", _closed({"a": {"anyOf": [text, {"type": "null"}]}, "b": {"anyOf": [whole, {"type": "null"}]}}),
            {"a": "some text", "b": None}),
        ("tool call", _closed({"name": {"const": "search"}, "arguments": _closed({"query": text, "limit": whole})}),
            {"name": "search", "arguments": {"query": "constrained decoding", "limit": 10}}),
        ("colours", {"type": "array", "items": {"enum": colours}, "maxItems": 5}, ["red", "blue", "black"]),
        ("tree", _closed({"root": _closed({"left": leaf, "right": leaf}), "count": whole}),
            {"root": {"left": {"label": "l", "weight": 0.5}, "right": {"label": "r", "weight": 2}}, "count": 2}),
    ]
