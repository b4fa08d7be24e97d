"""docs/language.md: its programs compile without a warning, and its lists are those of the compiler."""

import re
from pathlib import Path

import pytest

from lmc.codes import CODES
from lmc.compiler import compile_file
from lmc.diagnostics import CompileError
from lmc.parser import words

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "language.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```lmp\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.split("\n")[0])
def test_programs_compile(program, tmp_path):
    path = tmp_path / "page.lmp"
    path.write_text(program, encoding="utf-8")
    assert [d.message for d in compile_file(str(path)).warnings] == []


def test_there_is_a_program_in_every_chapter_that_needs_one():
    assert len(PROGRAMS) >= 9


NOT_EXECUTED = {
    "contain themselves": "type Node:\n    below: list[Node]\n\ndef f(node: Node) -> str:\n    return json(node)\n",
}


@pytest.mark.parametrize("name", NOT_EXECUTED)
def test_what_is_not_executed_is_listed_and_refused(name, tmp_path):
    chapter = PAGE[PAGE.index("\n## Not executed yet") :]
    assert name in chapter and chapter.count("\n- ") == len(NOT_EXECUTED)
    path = tmp_path / "page.lmp"
    path.write_text(NOT_EXECUTED[name], encoding="utf-8")
    with pytest.raises(CompileError) as caught:
        compile_file(str(path))
    assert [d.code for d in caught.value.diagnostics] == ["E0901"] and caught.value.diagnostics[0].span


def test_every_warning_of_the_compiler_is_listed():
    listed = set(re.findall(r"^\| (W\d+) \|", PAGE, re.MULTILINE))
    # W18x is about models, not about programs.
    assert listed == {code for code in CODES if code.startswith("W1") and not code.startswith("W18")}


def test_the_keywords_are_listed():
    listed = re.search(r"the keywords\n`([a-z ]+)`", PAGE)
    assert set(listed[1].split()) == words.KEYWORDS


def test_links_lead_somewhere():
    headings = {re.sub(r"[^\w\s-]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^## (.*)$", PAGE, re.MULTILINE)}
    assert set(re.findall(r"\]\(#([^)]+)\)", PAGE)) <= headings
