"""The regex corpus of ../shared: every string judged right, or the pattern refused."""

import json
from pathlib import Path

import pytest

from lmc.regex.build import compile_regex
from lmc.regex.parse import RegexError

CORPUS = Path(__file__).parents[3] / "shared" / "data" / "constraints" / "regex_fullmatch.jsonl"


def test_every_string_of_the_corpus_is_judged_right_or_the_pattern_refused():
    if not CORPUS.exists():
        pytest.skip("the shared data are not here")
    rows = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
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
    assert len(refused) < 12, refused
