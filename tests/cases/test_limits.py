"""Real failures of this field with regexes and schemas that ask for too much (`cases.jsonl` L-05): each ends in an error of its own."""

import json

import pytest

from lmc.regex import build
from lmc.regex.build import compile_regex
from lmc.regex.parse import RegexError
from lmc.regex.schema import compile_schema
from tests.processor_time import processor_seconds


def nested(depth: int) -> str:
    schema: dict = {"type": "string", "maxLength": 3}
    for _ in range(depth):
        schema = {"oneOf": [schema, {"type": "object", "properties": {"a": schema}, "required": ["a"]}]}
    return json.dumps(schema)


@pytest.mark.parametrize("compile, source, message", [
    (compile_regex, "(a", "missing"),
    (compile_regex, "((a{1,1000}){1,1000}){1,1000}", "too large; lower the counts"),
    (compile_regex, "(((a|b)*c){0,500}d){0,500}", "too large; lower the counts"),
    (compile_regex, "(x?){5000}", "took more than"),
    (compile_schema, nested(12), "oneOf"),
    (compile_schema, json.dumps({"type": "string", "maxLength": 10**6}), "too large; lower the counts"),
    (compile_schema, '{"enum": ["' + "x" * 50_000_000 + '"]}', "more than 4,000,000 characters"),
])
def test_what_asks_for_too_much_is_refused_within_its_limit(compile, source, message, monkeypatch):
    """The limit is lowered, so that the test is short; what counts is that nothing goes on far behind it."""
    monkeypatch.setattr(build, "MAX_SECONDS", 0.2)

    def refused():
        with pytest.raises(RegexError, match=message):
            compile(source)

    # Without a look at the clock between two closures, one of these takes 18 seconds.
    assert processor_seconds(refused, runs=1) < 5


def test_an_enumeration_of_8000_texts_accepts_them_and_nothing_else():
    names = [f"name {number * 7919}" for number in range(8000)]
    dfa = compile_schema(json.dumps({"enum": names}))
    assert all(dfa.matches(json.dumps(name).encode()) for name in names)
    assert not dfa.matches(b'"name 1"') and not dfa.matches(b'"name"') and not dfa.matches(b"")
