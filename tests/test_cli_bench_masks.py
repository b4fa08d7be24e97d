"""`lmc bench masks`: the twenty constraints on the stand-in's bytes, peers that answer, refuse, hang and die, and the peers' script."""

import sys
from pathlib import Path

import pytest

from lmc.cli import bench_masks
from lmc.cli.bench_masks import Measurement, peer
from lmc.cli.entry import run_command
from lmc.cli.mask_suite import Measured, suite
from lmc.runtime.dry import dry_tokenizer

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "peers" / "masks.py"
TOKENIZER = dry_tokenizer()


def test_rows_without_peers(tmp_path, capsys, monkeypatch):
    few = [one for one in suite() if one.name in ("date", "person")]
    monkeypatch.setattr(bench_masks, "suite", lambda: few)
    assert run_command(["bench", "masks", "--dry", "--peers", str(tmp_path)]) == 0
    head, own, stored, missing = capsys.readouterr().out.splitlines()
    assert head.split()[0] == "engine" and own.split()[0] == "lmc" and own.split()[-1] == "0"
    assert stored.startswith("lmc, from disk") and "make bench-peers" in missing


def test_there_are_twenty_each_with_a_text_of_its_own():
    constraints = suite()
    assert len({one.name for one in constraints}) == 20 == len(constraints)
    assert [one.kind for one in constraints].count("schema") == 10
    for one in constraints:
        assert bench_masks._automaton(one).matches(one.sample.encode()), one.name


def test_peers_that_refuse_hang_or_die(tmp_path, monkeypatch):
    """`slow` never answers and `dead` ends the process: both count as refused, and what stands behind is measured."""
    monkeypatch.setattr(bench_masks, "_PATIENCE", 1.5)
    script = tmp_path / "peer.py"
    script.write_text('''
import json, sys, time
for one in json.load(sys.stdin)["constraints"]:
    if one["text"] == "slow":
        time.sleep(60)
    if one["text"] == "dead":
        sys.exit(3)
    answer = {"error": "no"} if one["text"] == "refused" else {"compile": 2.0, "first": [float(i) for i in one["ids"]], "again": [0.5]}
    print(json.dumps(answer), flush=True)
''')
    measured = [Measured(text, "regex", text, "ab") for text in ("one", "refused", "slow", "two", "dead", "three")]
    found = peer("any", measured, TOKENIZER, [sys.executable, str(script)])
    good = Measurement(2.0, tuple(float(i) for i in TOKENIZER.encode("ab")), (0.5,))
    assert found == [good, None, None, good, None, good]
    assert bench_masks._line("any", found).split() == ["any", "2.0", "2.0", "97.50", "98.0", "0.50", "0.5", "3"]
    assert "refused 2" in bench_masks._line("any", [None, None])


def test_the_script_of_the_peers():
    pytest.importorskip("llguidance")
    measured = [Measured("date", "regex", r"\d{4}-\d{2}", "2025-03"), Measured("wrong", "regex", "a", "b"),
                Measured("flag", "schema", '{"type":"boolean"}', "true")]
    date, wrong, flag = peer("llguidance", measured, TOKENIZER, [sys.executable, str(SCRIPT), "llguidance"])
    assert wrong is None, "its text is not allowed"
    assert len(date.first) == len(date.again) == 7 and len(flag.first) == 1 and min(date.first) > 0
