"""Broken programs of any kind give diagnostics and never an exception; checking is fast and needs no model."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from lmc.diagnostics import render_all
from lmc.parser.check import check
from tests.parser.check.program import checked, codes
from tests.processor_time import processor_seconds

TEXTS = {p.stem: p.read_text(encoding="utf-8") for p in (Path(__file__).parent / "programs").glob("*.lmp")}
ERRORS = {p.stem: p.read_text(encoding="utf-8") for p in (Path(__file__).parent / "errors").glob("*.lmp")}
_WORDS = ["x", "1", '"a"', "gen()", "Verdict", "here", "None", "[]", "{}", "user", "fork", "join", "match", "return", ":", "(",
          ")", "..", "|",
          "list", "str", "1..5", "=", "+=", ".x", "[0]", "for", "in", "not", "part", "type"]


def mutated(text: str, rng: random.Random) -> str:
    """The text with a line dropped, doubled or moved, or a word replaced."""
    lines = text.split("\n")
    for _ in range(rng.randint(1, 3)):
        i = rng.randrange(len(lines))
        match rng.randrange(4):
            case 0:
                del lines[i]
            case 1:
                lines.insert(i, lines[rng.randrange(len(lines))])
            case 2:
                lines[i] = "    " + lines[i] if rng.random() < 0.5 else lines[i].removeprefix("    ")
            case 3:
                words = lines[i].split(" ")
                words[rng.randrange(len(words))] = rng.choice(_WORDS)
                lines[i] = " ".join(words)
        if not lines:
            break
    return "\n".join(lines)


@pytest.mark.parametrize("name", sorted(TEXTS) + sorted(ERRORS)[::4])
def test_mutated_programs(name):
    rng = random.Random(name)
    text = TEXTS.get(name) or ERRORS[name]
    for _ in range(15):
        source = mutated(text, rng)
        result = check("main.lmp", read=lambda path: source)
        for diagnostic in result.diagnostics:
            assert diagnostic.span is not None and diagnostic.message, source


def test_a_large_program_is_checked_in_linear_time(tmp_path):
    function = 'def f{i}(x: int) -> int:\n    user: "Q ${{x}} {i}"\n    assistant: y = gen(int)\n    return y + f{j}(x)\n\n'

    def seconds(count: int) -> float:
        text = "".join(function.format(i=i, j=(i + 1) % count) for i in range(count))
        assert codes(checked(tmp_path, text)) == []
        return processor_seconds(lambda: checked(tmp_path, text), runs=1)

    small, large = seconds(100), seconds(400)
    assert large < 10 * small + 0.5, (small, large)


@pytest.mark.parametrize("shape", [
    # A block string with many holes, names in braces that were meant to be holes, what is not closed in every item.
    ('def f(x: str) -> str:\n    return """\n', "        a ${x}, ${x + x}${# no }\n", '        """\n'),
    ('def f(x: str) -> str:\n    return "', "{x} ${x} ", '"\n'),
    ("", 'def f() -> str:\n    return "${x\n\n', ""), ("", "def f() -> str:\n    return (1\n\n", ""),
])
def test_time_is_linear_in_what_is_written_many_times(tmp_path, shape):
    before, again, after = shape

    def seconds(count: int) -> float:
        def work():
            found = checked(tmp_path, before + again * count + after)
            render_all(found.diagnostics, found.sources)

        return processor_seconds(work, runs=2)

    small, large = seconds(300), seconds(2400)
    assert large < 3 * 8 * small, (small, large)


def test_deep_expressions_give_a_diagnostic_or_a_result(tmp_path):
    for depth in (50, 5000):
        checked(tmp_path, "def main() -> int:\n    return " + "(" * depth + "1" + ")" * depth + "\n")
        checked(tmp_path, "def main() -> int:\n    return " + " + ".join(["1"] * depth) + "\n")


def test_the_checker_needs_neither_torch_nor_numpy():
    code = "import sys, lmc.parser.check; print([m for m in ('torch', 'numpy', 'transformers', 'networkx') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
