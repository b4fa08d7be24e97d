"""Whole files: the tree of every form, the seven programs, the grammar itself, speed, and no exception for any input."""

import random
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lmc.codes import CODES
from lmc.parser import grammar
from lmc.parser.ast import BrokenItem, FunctionDef, Text, walk
from lmc.parser.ast_text import format_tree
from lmc.parser.parse import parse_file
from tests.parser.programs import PROGRAMS
from tests.processor_time import processor_seconds

HERE = Path(__file__).parent
TABLES = Path(grammar.__file__).with_name("lmp.tables.json")


def test_the_tree_of_every_form(update):
    text = (HERE / "everything.lmp").read_text(encoding="utf-8")
    result = parse_file("everything.lmp", text)
    assert result.diagnostics == ()
    printed = format_tree(result.file, places=True)
    golden = HERE / "everything.ast"
    if update:
        golden.write_text(printed, encoding="utf-8")
    assert printed == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_seven_programs(name):
    result = parse_file(f"{name}.lmp", PROGRAMS[name])
    assert result.diagnostics == () and not any(isinstance(item, BrokenItem) for item in result.file.items)


@pytest.mark.parametrize("name", PROGRAMS)
def test_spans_of_names_are_where_they_stand(name):
    lines = PROGRAMS[name].split("\n")
    for node in walk(parse_file("a.lmp", PROGRAMS[name]).file):
        text = getattr(node, "text", None)
        if type(node).__name__ in ("Name", "Identifier"):
            span = node.span
            assert lines[span.line - 1][span.column - 1 : span.end_column - 1] == text


def test_the_grammar_has_no_conflicts():
    grammar.build_parser(strict=True)


def test_the_stored_table_is_that_of_the_grammar(update):
    if update and grammar.stored_tables() is None:
        TABLES.write_text(grammar.table_text(), encoding="utf-8")
    assert grammar.stored_tables() is not None, "run pytest --update: lmp.lark or Lark has changed"
    fresh = grammar.build_parser(strict=False)
    for source in ("def f(x: int) -> int:\n    return x + 1 if x else [x][0]\n",
                   "type A:\n    x: 1..5 = 3\n    y: \"a\" | None\n"):
        assert grammar.parse_tree(source, "item") == fresh.parse(source, start="item")


def test_docstrings():
    def first(text):
        (item,) = parse_file("a.lmp", text).file.items
        assert isinstance(item, FunctionDef)
        return item.doc and item.doc.plain, len(item.body)

    assert first('def f():\n    """Doc."""\n    pass\n') == ("Doc.", 1)
    assert first('def f():\n    """Doc ${x}."""\n    pass\n') == (None, 2)
    assert first('part f():\n    "Doc."\n    user: "x"\n') == ("Doc.", 1)
    # In a part without role blocks a string is text; taking it for a docstring would drop it from the prompt.
    assert first('part f():\n    "Text."\n    g()\n') == (None, 2)


def test_a_long_union_is_not_deep():
    labels = " | ".join(f'"{i}"' for i in range(2000))
    result = parse_file("a.lmp", f"type Label = {labels}\n")
    assert result.diagnostics == ()
    texts = [node.plain for node in walk(result.file) if isinstance(node, Text)]
    assert texts == [str(i) for i in range(2000)]


@pytest.mark.parametrize("text", [
    "", "\n", "   ", "\t", "#", "\\", '"', "'", '"""', "${", "}", ")", "\r", "\x0c", "x", "def", "def f", "def f(", "x = ", "@",
    "é = 1\n",
    "x = 1\\", "x = \\\n", "\ufeff", "\ufeff\ufeff", "x = \"\\", "x = \"\\u{", "type T:", "fork", "fork:", "x =\x0b1\n",
    "x = '\\", "١ = 1\n",
    "x = ١\n", "x = " + "-" * 5000 + "1\n", "x = " + "not " * 5000 + "y\n", "x = " + "1 ** " * 3000 + "1\n",
    "x = a" + ".b" * 3000 + "\n",
    "x = a" + "(1)" * 3000 + "\n", "x = " + "1 if a else " * 3000 + "2\n",
    "def f():\n  if a:\n    b\n" + "  elif a:\n    b\n" * 3000,
    "x = " + '"${' * 3000 + "\n", "x = " + "1 + " * 20000 + "1\n", "x = " + "9" * 10000 + "\n", "x = 1e" + "9" * 5000 + "\n",
])
def test_odd_input_gives_diagnostics(text):
    check_result(text)


def test_5000_lines_take_a_few_seconds_at_most():
    source = (PROGRAMS["judge"] + PROGRAMS["tree"]) * 90
    assert source.count("\n") > 5000
    assert parse_file("a.lmp", source).diagnostics == ()
    assert processor_seconds(lambda: parse_file("a.lmp", source), runs=1) < 3


@pytest.mark.parametrize("element", ['"ab", ', 'r"ab", ', '"${# c }", ', "'ab', ", "{a: 1}, ", "f(x=1), "])
def test_time_is_linear_in_the_length_of_a_line(element):
    small, large = (processor_seconds(lambda: parse_file("a.lmp", "X = [" + element * count + "]\n")) for count in (1000, 8000))
    assert large < 3 * 8 * small, (small, large)


def test_the_recursion_limit_is_far_away():
    """What is accepted is shallow enough for the recursive stages after the parser, and is parsed with few frames."""
    deepest = "x = " + "[" * 98 + "]" * 98 + "\n"
    nested_holes = '"x"'
    for _ in range(16):
        nested_holes = '"${f(' + nested_holes + ')}"'
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(600)
    try:
        assert parse_file("a.lmp", deepest + f"y = {nested_holes}\n").diagnostics == ()
    finally:
        sys.setrecursionlimit(limit)


# ------------------------------------------------------------------------ fuzz

PIECES = [
    '"', '"""', "'", "${", "}", "${#", "\\", "\n", "\n    ", "\n        ", "\t", " ", "(", ")", "[", "]", "{", "}", ":", ":=",
    "=", ",", ".", "..", "|",
    "#", "if ", "else", "elif ", "for ", "in ", "def ", "type ", "fork ", "join", "match ", "case ", "user:", "raw:", "gen(",
    "not ", "lambda ", "1", "1.",
    ".5", "f\"", "r\"", "é", "\0", "\r", "@", "++", "&&", "...", "*", "->", "with ", "as ", "import ", "return ", "try:",
    "except ",
]


def mutate(text, choose):
    at = choose.randrange(len(text) + 1)
    kind = choose.randrange(5)
    if kind == 0:
        return text[:at] + choose.choice(PIECES) + text[at:]
    if kind == 1:
        return text[:at] + text[at + choose.randrange(1, 30) :]
    if kind == 2:
        end = choose.randrange(len(text) + 1)
        return text[:at] + text[min(at, end) : max(at, end)][:200] + text[at:]
    if kind == 3:
        return text[:at] + choose.choice(PIECES) + text[at + 1 :]
    return text[:at]


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(name=st.sampled_from(sorted(PROGRAMS)), seed=st.integers(0, 2**32), count=st.integers(1, 6))
def test_mutated_programs_never_raise(name, seed, count):
    choose = random.Random(seed)
    text = PROGRAMS[name]
    for _ in range(count):
        text = mutate(text, choose)
    check_result(text)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_soup_never_raises(text):
    check_result(text)


def check_result(text):
    """Parsing gives a result whose diagnostics are whole and lie in the file; without one, nothing is broken."""
    result = parse_file("a.lmp", text)
    lines = result.text.split("\n")
    for diagnostic in result.diagnostics:
        span = diagnostic.span
        assert diagnostic.code in CODES and diagnostic.help
        assert 1 <= span.line <= span.end_line <= len(lines), (span, text)
        assert 1 <= span.column <= len(lines[span.line - 1]) + 1, (span, text)
        assert 1 <= span.end_column <= len(lines[span.end_line - 1]) + 2, (span, text)
        assert (span.line, span.column) <= (span.end_line, span.end_column)
    broken = any(isinstance(item, BrokenItem) for item in result.file.items)
    assert not broken or result.diagnostics, text


@pytest.mark.parametrize("code", ["", "E0015"])
def test_a_chain_of_comparisons_is_bounded(code):
    source = "X = " + " < ".join(["1"] * (52 if code else 51)) + "\n"
    assert [d.code for d in parse_file("a.lmp", source).diagnostics] == [code][:len(code)]
