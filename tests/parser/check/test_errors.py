"""Each program of `errors/` beside what the checker says of it, as the user sees it (`.err`); empty where it is right."""

import os
from pathlib import Path

import pytest

from lmc.diagnostics import render_all
from lmc.parser.check import check

PROGRAMS = sorted((Path(__file__).parent / "errors").glob("*.lmp"))


def said(program: Path) -> str:
    """What is said when the program is checked from its own folder, so that no path of this machine is in it."""
    before = os.getcwd()
    os.chdir(program.parent)
    try:
        checked = check(program.name)
    finally:
        os.chdir(before)
    text = render_all(checked.diagnostics, checked.sources)
    return text + "\n" if text else ""


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_errors(program, update):
    golden = program.with_suffix(".err")
    found = said(program)
    if update:
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8")


def test_there_are_programs():
    assert len(PROGRAMS) > 80


def test_all_golden_files_have_a_program():
    assert {p.stem for p in PROGRAMS} == {p.stem for p in (Path(__file__).parent / "errors").glob("*.err")}
