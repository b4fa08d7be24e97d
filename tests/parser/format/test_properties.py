"""For any program: formatting twice is formatting once, and tree, comments and prompt text stay.

The formatter checks tree and comments itself; here they are compared by other means, so that its own check is tested too.
"""

import re
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings

from lmc.parser import ast
from lmc.parser.ast import Node, Text, TextPiece, walk
from lmc.parser.format import breaking, format_source
from lmc.parser.parse import parse_file
from tests.parser.random_programs import programs, random_program

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted(p for folder in ("examples", "tests") for p in (ROOT / folder).rglob("*.lmp"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCES = [(page.name, text) for page in PAGES for text in re.findall(r"^```lmp\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)]


def structure(value: object) -> object:
    """A tree without its places."""
    if isinstance(value, Node):
        return type(value).__name__, [structure(getattr(value, name)) for name in value.__dataclass_fields__ if name != "span"]
    if isinstance(value, ast.Identifier):
        return value.text
    return [structure(item) for item in value] if isinstance(value, tuple) else (type(value).__name__, value)


def prompt_texts(file: ast.File) -> list[list[str | None]]:
    return [[p.text if isinstance(p, TextPiece) else None for p in n.parts] for n in walk(file) if isinstance(n, Text)]


def check(source: str) -> None:
    before = parse_file("a.lmp", source)
    written = format_source("a.lmp", source).text
    if before.diagnostics:
        assert written is None
        return
    after = parse_file("a.lmp", written)
    assert format_source("a.lmp", written).text == written
    assert structure(after.file) == structure(before.file)
    assert prompt_texts(after.file) == prompt_texts(before.file)
    assert [c.rstrip() for c in after.comments.values()] == [c.rstrip() for c in before.comments.values()]


@settings(max_examples=60, deadline=None)
@given(programs(6))
def test_random_programs(source):
    assert parse_file("a.lmp", source).diagnostics == ()
    check(source)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_file(path):
    check(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", [p for p in FILES if p.parent.name == "examples"], ids=lambda p: p.name)
def test_the_examples_are_in_the_style(path):
    source = path.read_text(encoding="utf-8")
    assert format_source(path.name, source).text == source


@pytest.mark.parametrize("page, source", FENCES, ids=[f"{page}-{i}" for i, (page, _) in enumerate(FENCES)])
def test_the_programs_of_the_pages_are_in_the_style(page, source):
    result = format_source(page, source)
    assert result.text in (None, source)


def test_random_programs_have_every_kind_of_node():
    seen = {type(node).__name__ for seed in range(80) for node in walk(parse_file("a", random_program(seed, 6)).file)}
    abstract = {"Node", "Expr", "Item", "Stmt", "Pattern", "BrokenItem", "BrokenExpr", "BrokenPattern"}
    assert {name for name in ast.__all__ if name[0].isupper()} - abstract == seen


@pytest.mark.parametrize("old, new, what", [("1", "2", "changed its meaning"), ("# a", "# b", "lost a comment")])
def test_a_change_of_meaning_is_refused(old, new, what):
    write = breaking.Paper.add, breaking.Paper.comment
    with (patch.object(breaking.Paper, "add", lambda self, text: write[0](self, text.replace(old, new))),
          patch.object(breaking.Paper, "comment", lambda self, text, column=0: write[1](self, text.replace(old, new), column)),
          pytest.raises(AssertionError, match=what)):
        format_source("a.lmp", "X = 1  # a\n")


def test_a_long_list_and_a_long_text_take_linear_time():
    # Slow where anything is quadratic.
    check("X = [" + "1," * 4_000 + "]\n")
    check("def f():\n  user: \"\"\"\n" + "   a line of text\n" * 20_000 + "   \"\"\"\n")


def test_deep_nesting():
    check("X = " + "[a, " * 97 + "1" + "]" * 97 + "\n")
    check("X = " + "(a + f(" * 15 + "1" + "))" * 15 + "\n")
    check("".join(f"{' ' * i}{'def f()' if not i else 'if x'}:\n" for i in range(40)) + " " * 40 + "pass\n")
