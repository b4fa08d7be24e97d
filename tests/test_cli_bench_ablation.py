"""`lmc bench ablation` on the stand-in model, and the switches of `lmc run` that it compares."""

import json

import pytest

from lmc import UsageError, load
from lmc.cli.ablation_programs import PROGRAMS
from lmc.cli.bench_ablation import ABLATIONS, ablation_table
from lmc.cli.entry import run_command

DRY = {"model": "", "dry": True, "cache": None, "pool_tokens": 2048}


def rows_of(name: str, rows: int) -> dict[str, tuple[float, int, int]]:
    """What is left out -> tokens found (percent), tokens computed, passes."""
    _, *lines = ablation_table((name,), DRY, rows)
    assert len(lines) == len(ABLATIONS) and not any("differ" in line for line in lines)
    table = {}
    for line in lines:
        found, computed, passes, _ = line[26:].replace(",", "").split()
        table[line[10:26].strip()] = float(found), int(computed), int(passes)
    return table


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_no_part_changes_a_text_and_the_cache_saves_most(name):
    table = rows_of(name, 4)
    assert table["cache"][0] == 0 < table["nothing"][0]
    assert table["cache"][1] == max(computed for _, computed, _ in table.values()) > 1.5 * table["nothing"][1]
    assert table["parallelism"][2] > table["nothing"][2] or name in ("few-shot", "chat"), "those have one call at a time anyway"


def test_few_shots_are_found_by_the_tree_where_no_whole_prompt_is():
    table = rows_of("few-shot", 6)
    assert table["tree"][1] > 1.5 * table["nothing"][1]


def test_the_command_prints_a_row_for_each_part(capsys):
    assert run_command(["bench", "ablation", "--program", "chat", "--rows", "2"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[:4] == ["program", "left", "out", "found"] and len(rows) == len(ABLATIONS)


@pytest.mark.parametrize("flags", [["--policy", "random"], ["--without", "parallelism", "--without", "fork-hints"]])
def test_a_run_without_a_part_gives_the_same(flags, tmp_path, capsys):
    path = tmp_path / "judge.lmp"
    path.write_text(PROGRAMS["judge"].text)
    command = ["run", str(path), "--essay", "Once.", "--dry", "--seed", "1", "-q"]
    assert run_command(command) == 0
    whole = json.loads(capsys.readouterr().out)
    assert run_command([*command, *flags]) == 0
    assert json.loads(capsys.readouterr().out) == whole


@pytest.mark.parametrize("wrong", [{"policy": "last"}, {"without": ["model"]}])
def test_what_cannot_be_left_out_is_told_with_what_can(wrong, tmp_path):
    path = tmp_path / "judge.lmp"
    path.write_text(PROGRAMS["judge"].text)
    with pytest.raises(UsageError, match="lpm|parallelism"):
        load(path, dry=True, **wrong)
