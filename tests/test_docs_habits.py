"""The table of Python's habits in docs/language.md: each snippet gives the code and the message beside it, and a help."""

import re
from pathlib import Path

import pytest

from lmc.parser.check import check

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "language.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(.+?)` \| (E\d{4}) \| (.+?) \|$", PAGE.split("as written in a function", 1)[1].split("\n## ", 1)[0], re.M)


def test_there_are_more_than_twenty():
    assert len(ROWS) == len({snippet for snippet, _, _ in ROWS}) > 20


@pytest.mark.parametrize("snippet, code, message", ROWS)
def test_the_habit_has_its_message(snippet, code, message, tmp_path):
    path = tmp_path / "habit.lmp"
    path.write_text(f"def f(s: str, xs: list[int], n: int) -> str:\n    {snippet}\n    return s\n", encoding="utf-8")
    found = next(d for d in check(str(path)).diagnostics if d.code == code)
    assert found.message.startswith(message) and found.help


def test_tabs_and_untyped_parameters(tmp_path):
    path = tmp_path / "habit.lmp"
    path.write_text("def f(x):\n    return\n\ndef g():\n\treturn\n", encoding="utf-8")
    assert [d.code for d in check(str(path)).diagnostics if d.code.startswith("E")] == ["E0306", "E0003"]
