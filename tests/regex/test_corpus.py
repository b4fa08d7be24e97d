"""The corpora of ../shared: every string judged right, or the pattern or schema refused."""

import json
from pathlib import Path

import pytest

from lmc.regex.build import compile_regex
from lmc.regex.json_nodes import json_text
from lmc.regex.json_schema import SchemaError
from lmc.regex.parse import RegexError, parse_regex
from lmc.regex.schema import compile_schema

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
    assert wrong == []
    assert len(rows) > 250
    assert [pattern for pattern, _ in refused] == ["a[]]b", "a[^]b]c"]  # classes that begin with `]`


def test_patterns_of_real_schemas_compile():
    rows = rows_of("jsonschemabench_patterns.jsonl")
    refused = []
    for number, row in enumerate(rows):
        try:
            parse_regex(row["pattern"])
            if number % 10 == 0:  # all of them take 15 seconds
                compile_regex(row["pattern"])
        except RegexError as error:
            refused.append(error.message)
    assert len(rows) > 1900
    assert set(refused) <= {"look-around is not supported", "a back-reference is not supported",
        "a word boundary is not supported"}
    assert len(refused) <= 15


@pytest.mark.parametrize(
    "name, least",
    [("jsonschemabench_permissive.jsonl", 60), ("jsonschemabench_github.jsonl", 10),
        ("json_schema_test_suite_draft2020-12.jsonl", 40)],
)
def test_no_schema_that_compiles_accepts_what_it_forbids(name, least):
    compiled = accepted = 0
    for row in rows_of(name):
        if row.get("description", "").startswith("ECMA 262"):
            continue  # `\s` is ASCII here
        try:
            dfa = compile_schema(json.dumps(row["schema"]))
        except SchemaError:
            continue
        compiled += 1
        for case in row["tests"]:
            fits = dfa.matches(json_text(case["data"]).encode())
            assert case["valid"] or not fits, (row["schema"], case)
            accepted += fits
    assert compiled >= least and accepted > least / 2
