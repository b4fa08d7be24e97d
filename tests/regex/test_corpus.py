"""The corpora of ../shared: every string judged right, or the pattern or schema refused.

The suite judges samples of the two that take long; `python -m tests.regex.test_corpus` judges all, and prints the counts.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from lmc.regex.build import compile_regex
from lmc.regex.dfa import START
from lmc.regex.grammar import Grammar
from lmc.regex.json_nodes import json_text
from lmc.regex.json_schema import SchemaError
from lmc.regex.parse import RegexError, parse_regex
from lmc.regex.schema import schema_constraint
from lmc.regex.schema_keywords import subschemas
from lmc.runtime.grammar import GrammarConstraint

CORPUS = Path(__file__).parents[3] / "shared" / "data" / "constraints"


def rows_of(name):
    if not CORPUS.exists():
        pytest.skip("the shared data are not here")
    return [json.loads(line) for line in (CORPUS / name).read_text(encoding="utf-8").split("\n") if line]


def test_every_string_is_judged_right_or_the_pattern_refused():
    rows = rows_of("regex_fullmatch.jsonl")
    refused, wrong = [], []
    for row in rows:
        try:
            dfa = compile_regex(row["regex"])
        except RegexError as error:
            refused.append((row["regex"], error.message))
            continue
        wrong += [(row["regex"], text) for text in row["accept"] if not dfa.matches(text.encode())]
        wrong += [(row["regex"], text) for text in row["reject"] if dfa.matches(text.encode())]
    print(f"{len(rows) - len(refused)} of {len(rows)} regexes compiled, {len(wrong)} of their strings judged wrong")
    assert wrong == []
    assert len(rows) > 250
    assert [pattern for pattern, _ in refused] == ["a[]]b", "a[^]b]c"]  # classes that begin with `]`


def test_full_matches_of_another_engine():
    """Where its first match is the whole text, the whole text is accepted; its options and Unicode classes are not ours."""
    judged, refused = 0, []
    for row in rows_of("rust_regex_testdata.jsonl"):
        options = any(row.get(name) for name in ("unescape", "case-insensitive")) or row.get("utf8") is False
        # `[[:alpha:]]` is a set of characters in Python.
        if options or not isinstance(row["regex"], str) or not row["matches"] or "[:" in row["regex"]:
            continue
        text, first = row["haystack"], row["matches"][0]
        span = first.get("span") if isinstance(first, dict) else first[0] if isinstance(first[0], list) else first
        if span != [0, len(text.encode())] or not text.isascii() and set(row["regex"]) & set("\\"):
            continue
        try:
            assert compile_regex(row["regex"]).matches(text.encode()), row
            judged += 1
        except RegexError as error:
            refused.append((row["regex"], error.message))
    print(f"{judged} full matches of another engine's corpus accepted, {len(refused)} of its patterns refused")
    assert judged > 150
    # What Python's syntax lacks, and what no automaton of ours holds.
    assert len(refused) < judged


def test_patterns_of_real_schemas_compile():
    """All are parsed, each tenth is compiled: all of them take 15 seconds."""
    judge_patterns(every=10)


def judge_patterns(every):
    rows, refused = rows_of("jsonschemabench_patterns.jsonl"), []
    for number, row in enumerate(rows):
        try:
            parse_regex(row["pattern"])
            if number % every == 0:
                compile_regex(row["pattern"])
        except RegexError as error:
            refused.append(error.message)
    print(f"{len(rows) - len(refused)} of {len(rows)} patterns compiled; refused: {dict(Counter(refused))}")
    assert len(rows) > 1900
    assert set(refused) <= {"look-around is not supported", "a back-reference is not supported",
        "a word boundary is not supported"}
    assert len(refused) <= 15


def test_schemas_of_real_programs():
    """All 210: compiled or refused with the place; nothing invalid accepted; valid texts rejected only outside the subset."""
    rows = rows_of("jsonschemabench_permissive.jsonl") + rows_of("jsonschemabench_github.jsonl")
    automata, compiled, accepted, outside, refused = 0, 0, 0, 0, []
    for row in rows:
        schema = json.dumps(row["schema"])
        try:
            constraint = schema_constraint(schema)
        except SchemaError as error:
            assert error.path or "too large" in error.message or "more than" in error.message, error
            refused.append(f"{row['id']}: {error}")
            continue
        compiled += 1
        automata += not isinstance(constraint, Grammar)
        accepts = judge(constraint)
        for case in row["tests"]:
            fits = accepts(json_text(case["data"]).encode())
            assert case["valid"] or not fits, (row["id"], case["data"])
            accepted += fits
            if case["valid"] and not fits:
                assert outside_subset(row["schema"], case["data"]), (row["id"], case["data"])
                outside += 1
    print(f"{compiled} of {len(rows)} compiled, {automata} to automata; {accepted} valid accepted, {outside} outside the subset")
    print("\n".join(refused))
    assert compiled >= 185 and automata >= 178 and accepted >= 220 and outside <= 40


def test_the_official_suite():
    """A third of its groups: all take 20 seconds.  `python -m tests.regex.test_corpus` judges all."""
    compiled, wrong, _ = judge_suite(rows_of("json_schema_test_suite_draft2020-12.jsonl")[::3])
    assert compiled > 70 and wrong == []


def judge_suite(rows):
    """How many groups compile, the invalid instances that are accepted, and what was refused how often."""
    compiled, wrong, refused = 0, [], Counter()
    for row in rows:
        if row["file"] == "format.json":
            continue  # that a format says nothing, which is the other choice of the standard
        try:
            constraint = schema_constraint(json.dumps(row["schema"]))
        except SchemaError as error:
            refused[error.path.rpartition(".")[2] or error.message] += 1
            continue
        compiled += 1
        accepts = judge(constraint)
        wrong += [(row["file"], row["description"], case) for case in row["tests"]
            if not case["valid"] and accepts(json_text(case["data"]).encode())]
    return compiled, wrong, refused


def judge(constraint):
    if isinstance(constraint, Grammar):
        matched = GrammarConstraint(constraint, [bytes([b]) for b in range(256)])
        return lambda text: matched.accepting(matched.advance(START, text))
    return constraint.matches


def outside_subset(schema, value):
    """Whether an object in the value has keys that no `properties` of the document declares together and in that order."""
    declared = [list(inner["properties"]) for inner, _ in subschemas(schema, "") if isinstance(inner.get("properties"), dict)]
    return any(not any(_in_order(list(one), names) for names in declared) for one in _objects(value))


def _in_order(keys, names):
    left = iter(names)
    return all(key in left for key in keys)


def _objects(value):
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(inner)


def judge_all():
    test_every_string_is_judged_right_or_the_pattern_refused()
    test_full_matches_of_another_engine()
    judge_patterns(every=1)
    test_schemas_of_real_programs()
    rows = rows_of("json_schema_test_suite_draft2020-12.jsonl")
    compiled, wrong, refused = judge_suite(rows)
    print(f"{compiled} of {len(rows)} groups of the official suite compiled, {len(wrong)} invalid instances accepted; refused for:")
    for keyword, count in refused.most_common():
        print(f"{count:5}  {keyword}")
    assert wrong == []


if __name__ == "__main__":
    judge_all()
