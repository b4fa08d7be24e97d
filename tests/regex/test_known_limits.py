"""What other engines got wrong, in small: the entries of the design's list of known bugs that concern how automata are built."""

import json
import time

import pytest

from lmc.regex.build import compile_regex
from lmc.regex.compress import compress
from lmc.regex.parse import RegexError
from lmc.regex.schema import compile_schema


def judged(dfa, good, bad):
    assert [t for t in good if not dfa.matches(t.encode())] == []
    assert [t for t in bad if dfa.matches(t.encode())] == []


@pytest.mark.parametrize(
    "regex, good, bad",
    [
        ("", [""], ["a"]),
        ("a|ab", ["a", "ab"], ["b"]),
        ("1|12|123", ["1", "12", "123"], ["13"]),
        ("yes|yes please", ["yes", "yes please"], ["please"]),
        ("a+?", ["a", "aaa"], [""]),
        (r"[a-z0-9.]+@[a-z0-9]+(\.[a-z]+)+", ["a@b.co.uk"], ["a@b"]),
        ("(a|abq|c)(bQ)?", ["abq", "abQ", "c", "cbQ"], ["abqb", "bQ"]),
        ("[😀-🙏]+", ["😨😨"], ["a", ""]),
        ("[😨]+", ["😨"], ["😀"]),
        (r"[\x00-\u2e7f]+", ["\x00a\u2e7f"], ["\u2e80"]),
        ("霍格沃茨特快列车|霍比特人比尔博", ["霍格沃茨特快列车", "霍比特人比尔博"], ["霍"]),
    ],
)
def test_regexes(regex, good, bad):
    judged(compile_regex(regex), good, bad)


def test_what_must_be_refused():
    for regex in (r"(not(?=\s)|not(?=\()|-)", "(?!a).", "a++", "[]a]", r"(a)\1", r"\bword"):
        with pytest.raises(RegexError):
            compile_regex(regex)


def test_an_end_is_no_completion():
    dfa = compile_regex("ab?")
    state = dfa.step(1, b"a")
    assert dfa.accepting[state] and not dfa.complete(state)


def test_no_run_leaves_an_accepting_state():
    for regex in ("[-+]?[0-9]+[ ]*", "ab?", "a(bc)?"):
        dfa = compile_regex(regex)
        assert not any(dfa.accepting[run.start] for run in compress(dfa).runs)


@pytest.mark.parametrize(
    "schema, good, bad",
    [
        ({"type": "string", "pattern": "abcd"}, ['"xabcdx"'], ['"abc"']),
        ({"type": "string", "pattern": "^cat$|^dog$"}, ['"cat"', '"dog"'], ['"cats"', "cat"]),
        ({"type": "integer", "minimum": 0, "maximum": 5}, ["0", "5"], ["7", "-1"]),
        ({"type": "object", "properties": {}}, ["{}"], ["[]"]),
        ({"type": "string", "pattern": r"^\d{2}$"}, ['"12"'], ['"1"']),
        ({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "null"}}, "additionalProperties": {}},
            ['{"a":1,"b":null,"c":2}', '{"b":null}'], ['{"b":null,"a":"BAD"}']),
        ({"type": "object", "properties": {"a": {"type": "null"}}}, ['{"a":null}'], ['{"a": null}', '{\n"a":null}']),
    ],
)
def test_schemas(schema, good, bad):
    judged(compile_schema(json.dumps(schema)), good, bad)


def test_exact_counts():
    dfa = compile_schema(json.dumps({"type": "string", "maxLength": 2000}))
    judged(dfa, ['"' + "a" * 2000 + '"'], ['"' + "a" * 2001 + '"'])


def test_an_enumeration_accepts_its_members_only():
    names = [f"member {n * n % 7919} of {n}" for n in range(1200)]
    dfa = compile_schema(json.dumps({"enum": names}))
    for n in range(0, 1200, 7):
        judged(dfa, [json.dumps(names[n])], [json.dumps(names[n] + "0x"), json.dumps(names[n][:-1] + "x")])


def test_six_nested_lists_with_lengths():
    fields = {f"f{n}": {"type": "array", "items": {"type": "string", "maxLength": 30}, "maxItems": 3} for n in range(6)}
    started = time.thread_time()
    compile_schema(json.dumps({"type": "object", "properties": fields}))
    assert time.thread_time() - started < 10


def test_a_regex_that_took_minutes_elsewhere():
    line = r"(Path: [a-z/]+\n```\n([^`].*?\n)*```\n)?"
    compile_regex(line * 6 + "END")


def test_hostile_counts_end_soon():
    started = time.thread_time()
    for regex in ("((a{1,99}){1,99}){1,99}", "(.{1,999}){1,999}", ".*a.{40}"):
        with pytest.raises(RegexError, match="lower the counts|simplify"):
            compile_regex(regex)
    with pytest.raises(RegexError, match="4,000,000 characters"):
        compile_schema(json.dumps({"enum": ["x" * 50_000_000]}))
    assert time.thread_time() - started < 15
