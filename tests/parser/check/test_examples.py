"""The seven programs of LANGUAGE.md §1 and the bundled examples are right: the checker has nothing to say of them."""

from pathlib import Path

import pytest

from lmc.diagnostics import render_all
from lmc.parser.check import check

EXAMPLES = sorted((Path(__file__).resolve().parents[3] / "examples").glob("*.lmp"))
PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.lmp"))


def test_all_seven_are_there():
    names = {"character", "chat", "classify", "judge", "react", "tree", "vote"}
    assert names <= {p.stem for p in EXAMPLES} and names == {p.stem for p in PROGRAMS}


@pytest.mark.parametrize("path", EXAMPLES + PROGRAMS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_no_diagnostic(path):
    checked = check(str(path))
    assert render_all(checked.diagnostics, checked.sources) == ""
    assert checked.root.functions
