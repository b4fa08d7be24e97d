"""`lmc bench json` on the stand-in model: a row for each way, equal tokens, and what is said where data are missing or tokens differ."""

import json
from dataclasses import replace

import pytest

from lmc.cli import bench_json
from lmc.cli.bench_json import Bench, read_documents
from lmc.cli.entry import run_command

SCHEMA = {"type": "object", "properties": {"kind": {"enum": ["north", "south"]}, "count": {"type": "integer"}}, "required": ["kind"]}


@pytest.fixture
def data(tmp_path):
    rows = {
        "regex_constraints.jsonl": [{"id": "character", "regex": r'\{"name": "[a-z ]{1,9}", "alive": (true|false)\}'},
                                    {"id": "city", "regex": r'\{"name": "[a-z]{1,6}"\}'}],
        "character_names.jsonl": [{"name": f"Person {i}"} for i in range(6)],
        "wiki_docs.jsonl": [{"document": "A town. " * 300}, {"document": "Another town. " * 300}],
        "json_schemas.jsonl": [{"title": "one", "schema": SCHEMA}, {"title": "two", "schema": {"unevaluatedProperties": False}}],
    }
    for name, lines in rows.items():
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


def test_further_schemas_come_from_the_public_benchmark(data):
    (data / "constraints").mkdir()
    more = [{"id": f"more {i}", "schema": SCHEMA} for i in range(9)]
    (data / "constraints" / "jsonschemabench_permissive.jsonl").write_text("".join(json.dumps(row) + "\n" for row in more))
    documents = read_documents(data, ("schemas",), 4)["schemas"]
    assert [document.question.split(": ")[1] for document in documents] == ["one.", "more 0.", "more 1.", "more 2."]


def test_of_several_rounds_the_medians_are_printed(data, monkeypatch):
    bench, seconds = Bench("", dry=True), iter((1, 10, 100, 3, 30, 300, 2, 20, 200))
    run = bench._run
    monkeypatch.setattr(bench, "_run", lambda *given: replace(run(*given), seconds=next(seconds)))
    _, off, exact, canonical = bench.table(read_documents(data, ("character",), 2), (2,), rounds=3)
    assert (off.split()[5], exact.split()[6:8], canonical.split()[6:8]) == ("2.0", ["20.0", "10.00"], ["200.0", "100.00"])


def test_a_row_for_each_way_and_batch(data, capsys):
    assert run_command(["bench", "json", "--dry", "--data", str(data), "--documents", "5", "--batch", "1", "--batch", "3"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    cells = [row.split() for row in rows]
    assert [(c[0], c[1], c[2], c[3]) for c in cells] == [
        (name, count, batch, jump) for name, count in (("character", "5"), ("city", "4"), ("schemas", "1")) for batch in "13"
        for jump in ("off", "exact", "canonical")]
    assert head.split()[:4] == ["object", "documents", "batch", "jump"]
    for off, exact, _ in zip(cells[::3], cells[1::3], cells[2::3]):
        assert int(exact[4].replace(",", "")) < int(off[4].replace(",", "")), "drafts save passes"
        assert exact[-3] == exact[-1] == exact[1], "all tokens are the same"


def test_missing_data_are_named(tmp_path, capsys, monkeypatch):
    assert run_command(["bench", "json", "--dry", "--data", str(tmp_path), "--only", "city"]) == 2
    assert "regex_constraints.jsonl` does not exist" in capsys.readouterr().err
    inner = tmp_path / "repository" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "repository" / ".git").mkdir()
    monkeypatch.chdir(inner)
    assert run_command(["bench", "json", "--dry"]) == 2
    assert str(tmp_path / "shared" / "data") in capsys.readouterr().err


def test_tokens_that_differ_are_looked_at(data):
    """`canonical` differs: were it `exact`, its first other token would be listed with how far off it is."""
    bench = Bench("", dry=True)
    requests = [bench._request(document) for document in read_documents(data, ("character",), 4)["character"]]
    off, other = (bench._run(requests, 2, jump) for jump in ("off", "canonical"))
    lines = list(bench._differences(requests, other, off))
    assert lines and all("NOT a near-tie" in line for line in lines)
    assert list(bench._differences(requests, off, off)) == []


def test_refused_requests_are_counted(data, capsys, monkeypatch):
    monkeypatch.setattr(bench_json, "_MAX_TOKENS", 2)
    assert run_command(["bench", "json", "--dry", "--data", str(data), "--only", "character", "--batch", "1", "--documents", "2"]) == 0
    assert "2 refused\n" in capsys.readouterr().out
