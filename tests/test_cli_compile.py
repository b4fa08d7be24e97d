"""What `lmc compile` prints about the passes."""

import re

import pytest

from lmc.cli.entry import run_command
from lmc.ir.printer import print_module
from lmc.ir.reader import read_module
from lmc.levels import DEFAULT_LEVEL
from lmc.passes import passes_of

PROGRAM = '''def f(name: str) -> str:
    user: "Hello "
    user: "${name}"
    assistant: a = gen(max_tokens=1 + 2)
    return a
'''


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.lmp").write_text(PROGRAM, encoding="utf-8")
    return "f.lmp"


def modules(text: str) -> dict[str, str]:
    """The printed modules by what is said before each."""
    return dict(re.findall(r"^; after (\w+ \([\w ]+\))\n(module .*?^})$", text, re.M | re.S))


def test_print_after_each_that_changed(program, capsys):
    assert run_command(["compile", program, "--emit-ir", "--print-after=changed"]) == 0
    out, err = capsys.readouterr()
    printed = modules(err)
    assert "lower (changed)" in printed and "merge_text (changed)" in printed
    assert not any("nothing" in name for name in printed)
    for text in printed.values():
        assert print_module(read_module(text)).rstrip() == text.rstrip()
    assert list(printed.values())[-1].strip() == out.strip()


def test_print_after_all_and_one(program, capsys):
    assert run_command(["compile", program, "--emit-ir", "--print-after=all"]) == 0
    everything = modules(capsys.readouterr().err)
    assert run_command(["compile", program, "--emit-ir", "--print-after=fold"]) == 0
    one = modules(capsys.readouterr().err)
    assert len(one) == 1 and len(everything) > 2 and one.items() <= everything.items()


@pytest.mark.parametrize("options", [["-O1", "--print-after=hoist_prefix"], ["--target=api", "--print-after=lifetimes"], ["--print-after=reorder"]])
def test_a_pass_that_does_not_run_is_said_not_to(program, capsys, options):
    assert run_command(["compile", program, "--emit-ir", *options]) == 0
    name = options[-1].partition("=")[2]
    assert capsys.readouterr().err == f"; {name} did not run: it is not among the passes of this level and target\n"


def test_passes_are_chosen_by_name(program, capsys):
    assert run_command(["compile", program, "--emit-ir", "--passes=merge_text"]) == 0
    merged = capsys.readouterr().out
    assert merged.count("context.append") == 1 and "pure.call(1, 2)" in merged
    assert run_command(["compile", program, "--emit-ir", "-O0"]) == 0
    assert capsys.readouterr().out.count("context.append") == 2


@pytest.mark.parametrize("option", ["--passes=fold,hoist", "--print-after=hoist"])
def test_an_unknown_pass(program, capsys, option):
    assert run_command(["compile", program, "--emit-ir", option]) == 2
    assert "E0854" in (err := capsys.readouterr().err) and "`hoist`" in err and "merge_text" in err


def test_times_and_counts(program, capsys):
    assert run_command(["compile", program, "--emit-ir", "--time-passes", "--stats"]) == 0
    err = capsys.readouterr().err
    rows = re.findall(r"^(\w+) +([\d.]+) +(\d+)$", err, re.M)
    assert [name for name, _, _ in rows] == ["lower", *passes_of(DEFAULT_LEVEL)]
    ops = {name: int(count) for name, _, count in rows}
    assert ops["dead_code"] < ops["lower"]


FORM = '''def f(name: str) -> str:
    user: "Who is ${name}?"
    assistant:
        """
        Born: ${born := gen(stop="\\n", max_tokens=6)}
        Lives: ${lives := gen(stop="\\n", max_tokens=6)}
        """
    return "${born} | ${lives}"
'''


def test_what_was_compiled_for_an_api_runs_and_answers_as_the_source(tmp_path, monkeypatch, capsys):
    """From the source over the artifact to the answer; here our own engine stands behind the interface."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.lmp").write_text(FORM, encoding="utf-8")
    assert run_command(["compile", "f.lmp", "--target=api", "--emit=program"]) == 0
    assert "lm.speculate" in capsys.readouterr().out
    assert run_command(["compile", "f.lmp", "--target=api", "-o", "api.lmpc"]) == 0
    answers = []
    for run in (["f.lmp", "-O0"], ["api.lmpc"]):
        capsys.readouterr()
        assert run_command(["run", *run, "--name", "Ada", "--dry", "--quiet"]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1] != ""
