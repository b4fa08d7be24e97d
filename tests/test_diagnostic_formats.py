"""JSON lines and SARIF hold what the text shows."""

import json

from lmc.cli.entry import run_command
from lmc.codes import CODES
from lmc.diagnostic_formats import as_json_lines, as_sarif
from lmc.diagnostics import Diagnostic, Severity, Span, render

ERROR = Diagnostic("E0201", "undefined name `revew`", Span("dir with space/é.lmp", 3, 10, 3, 15), "not found", "did you mean `review`?")
WARNING = Diagnostic("W103", "braces", Span("a.lmp", 1, 2, 2, 4), severity=Severity.WARNING, notes=("one",))
NOWHERE = Diagnostic("E0801", "no model", None)


def test_json_lines():
    lines = [json.loads(line) for line in as_json_lines([NOWHERE, ERROR, WARNING]).splitlines()]
    assert [line["code"] for line in lines] == ["W103", "E0201", "E0801"]
    assert lines[1] == {
        "code": "E0201", "severity": "error", "message": "undefined name `revew`", "file": "dir with space/é.lmp", "line": 3,
        "column": 10, "end_line": 3, "end_column": 15, "label": "not found", "help": "did you mean `review`?", "notes": [],
    }
    assert lines[0]["notes"] == ["one"] and lines[0]["severity"] == "warning"
    assert "file" not in lines[2]
    assert as_json_lines([]) == ""


def test_sarif():
    log = json.loads(as_sarif([ERROR, WARNING, NOWHERE, ERROR], "1.2.3"))
    assert log["version"] == "2.1.0" and len(log["runs"]) == 1
    run = log["runs"][0]
    driver = run["tool"]["driver"]
    assert driver["name"] == "lmc" and driver["version"] == "1.2.3"
    assert [rule["id"] for rule in driver["rules"]] == ["E0201", "E0801", "W103"]
    assert all(rule["shortDescription"]["text"] == CODES[rule["id"]] for rule in driver["rules"])
    assert len(run["results"]) == 4
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning") and result["message"]["text"]
    place = run["results"][1]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "dir%20with%20space/%C3%A9.lmp"
    assert place["region"] == {"startLine": 3, "startColumn": 10, "endLine": 3, "endColumn": 15}
    assert run["columnKind"] == "unicodeCodePoints"
    assert "locations" not in run["results"][3]


def test_check_prints_them(tmp_path, monkeypatch, capsys):
    (tmp_path / "a.lmp").write_text('def f(review: str) -> str:\n    return revew\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert run_command(["check", "a.lmp", "--format=json"]) == 1
    out, err = capsys.readouterr()
    assert err == ""
    (found,) = map(json.loads, out.splitlines())
    assert (found["code"], found["file"], found["line"], found["column"]) == ("E0201", "a.lmp", 2, 12)
    assert run_command(["check", "a.lmp", "--format=sarif"]) == 1
    assert json.loads(capsys.readouterr().out)["runs"][0]["results"][0]["ruleId"] == "E0201"
    # The same object in its form for people.
    assert run_command(["check", "a.lmp"]) == 1
    text = capsys.readouterr().err
    assert found["message"] in text and found["help"] in text


def test_rendering_a_long_line_is_cut_around_the_caret():
    source = "x = \"" + "a" * 100_000 + "${y}\"\n"
    column = source.index("y}") + 1
    shown = render(Diagnostic("E0201", "undefined name `y`", Span("a.lmp", 1, column, 1, column + 1)), source.split("\n"))
    assert len(shown) < 600
    lines = shown.splitlines()
    assert lines[-2][lines[-1].index("^")] == "y"
