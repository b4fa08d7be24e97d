"""`lmc bench ablation` on the stand-in model, and the switches of `lmc run` that it compares."""

import json
from collections import Counter

import pytest

from lmc import UsageError, load
from lmc.cli.ablation_programs import PROGRAMS
from lmc.cli.bench_ablation import ABLATIONS, Compared, _compiled, compare
from lmc.cli.entry import run_command
from lmc.runtime.instructions import program_instructions

DRY = {"model": "", "dry": True, "cache": None, "pool_tokens": 2048}


def compared(name: str, rows: int) -> dict[str, Compared]:
    """By what is left out."""
    found = list(compare(name, DRY, rows))
    assert [one.left_out for one in found] == list(ABLATIONS) and not any(one.differ for one in found)
    return {one.left_out: one for one in found}


def passes(table: dict[str, Compared], left_out: str) -> int:
    return table[left_out].outcome.passes


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_no_part_changes_a_text_and_the_cache_saves_most(name):
    table = compared(name, 4)
    tokens = {left_out: one.outcome.computed for left_out, one in table.items()}
    assert table["cache"].outcome.found == 0 < table["nothing"].outcome.found
    assert tokens["cache"] == max(tokens.values()) > 1.5 * tokens["nothing"]
    assert passes(table, "parallelism") > passes(table, "nothing") or name in ("few-shot", "chat"), "those have one call at a time anyway"


def test_few_shots_are_found_by_the_tree_where_no_whole_prompt_is():
    table = compared("few-shot", 6)
    assert table["tree"].outcome.computed > 1.5 * table["nothing"].outcome.computed


def test_forced_text_takes_passes_where_nothing_jumps():
    table = compared("json", 2)
    assert passes(table, "jump-forward") > 1.3 * passes(table, "nothing")


def test_what_the_compiler_leaves_out_is_left_out():
    with_all, without = (_compiled("json", PROGRAMS["json"], part) for part in ((), ("split_prefix", "hoist_prefix", "lifetimes")))
    opcodes = [Counter(step.opcode for step in program_instructions(program)) for program in (with_all, without)]
    assert opcodes[0] != opcodes[1] and "hint.keep" not in opcodes[1] and "hint.release" not in opcodes[1]


def test_the_command_prints_a_row_for_each_part(tmp_path, capsys):
    out = tmp_path / "out.json"
    assert run_command(["bench", "ablation", "--program", "chat", "--rows", "2", "--rounds", "2", "--out", str(out)]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[:4] == ["program", "left", "out", "found"] and len(rows) == len(ABLATIONS)
    data = json.loads(out.read_text())
    assert [outcome["left_out"] for outcome in data["outcomes"]] == list(ABLATIONS) and data["outcomes"][0]["throughput"] == 1
    assert data["model"] == "the stand-in model" and data["rounds"] == 2


@pytest.mark.parametrize("flags", [["--policy", "random"], ["--without", "parallelism", "--without", "fork-hints"], ["--without", "narrow-head"]])
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
