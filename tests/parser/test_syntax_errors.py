"""Golden syntax errors: `golden/NAME.lmp` and what is printed for it, `golden/NAME.err`; `--update` rewrites the latter."""

from pathlib import Path

import pytest

from lmc.codes import CODES
from lmc.diagnostics import render_all
from lmc.parser.ast import BrokenItem
from lmc.parser.parse import parse_file

GOLDEN = Path(__file__).parent / "golden"
PROGRAMS = sorted(GOLDEN.glob("*.lmp"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_golden(path, update):
    text = path.read_bytes().decode("utf-8")
    result = parse_file(path.name, text)
    printed = render_all(result.diagnostics, {path.name: result.text}) + "\n"
    expected = path.with_suffix(".err")
    if update:
        expected.write_text(printed, encoding="utf-8")
    assert printed == expected.read_text(encoding="utf-8")
    assert result.diagnostics, "a golden error program without an error"


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_every_diagnostic_is_whole(path):
    result = parse_file(path.name, path.read_bytes().decode("utf-8"))
    for diagnostic in result.diagnostics:
        assert diagnostic.code in CODES
        assert diagnostic.message and diagnostic.label and diagnostic.help and diagnostic.span


def test_one_report_for_one_place():
    for path in PROGRAMS:
        result = parse_file(path.name, path.read_bytes().decode("utf-8"))
        places = [(d.span.line, d.span.column) for d in result.diagnostics]
        assert len(places) == len(set(places)), path.name


def test_a_broken_item_keeps_its_name_and_its_neighbours():
    text = (
        "def first(x: str) -> str:\n    return x +\n\ntype Broken:\n    x: = 3\n\nextern def tool(x: str\n\nK = [1 2]\n\n"
        "def last() -> int:\n    return 1\n"
    )
    items = parse_file("a.lmp", text).file.items
    broken = [(item.kind, item.names[0].text) for item in items if isinstance(item, BrokenItem)]
    assert broken == [("def", "first"), ("type", "Broken"), ("extern", "tool"), ("constant", "K")]
    assert items[-1].name.text == "last"


def test_the_name_of_a_broken_item_has_its_place():
    item = parse_file("a.lmp", "X = 1\n\npure extern def tool(x:\n").file.items[1]
    assert isinstance(item, BrokenItem)
    assert (item.names[0].text, item.names[0].span.line, item.names[0].span.column) == ("tool", 3, 17)


def test_several_errors_in_one_function_are_all_reported():
    text = "def f(x: int) -> int:\n    y = x +\n    if y == 1\n        z = (1, 2)\n    return x++\n"
    assert [d.code for d in parse_file("a.lmp", text).diagnostics] == ["E0101", "E0104", "E0119", "E0103"]
