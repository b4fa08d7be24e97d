"""`lmc bench regex`: a row for each regex of the design, and refusals at the end."""

from lmc.cli import bench_regex
from lmc.cli.entry import run_command


def test_rows_and_refusals(monkeypatch, capsys):
    monkeypatch.setattr(bench_regex, "rows", lambda: [("date", r"\d{4}-\d{2}", 1000.0), ("slow", "a{50}", 0.0)])
    monkeypatch.setattr(bench_regex, "REFUSED", ["((a{1,99}){1,99}){1,99}"])
    assert run_command(["bench", "regex", "--repeat", "1"]) == 0
    first, slow, refused = capsys.readouterr().out.splitlines()
    assert first.startswith("date ") and first.endswith("8 states    3 classes")
    assert slow.endswith("over twice the design")
    assert "too large; lower the counts" in refused


def test_names_are_told_apart():
    assert len({name for name, _, _ in bench_regex.rows()}) == 17
