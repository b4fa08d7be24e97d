"""Programs that stand elsewhere in this repository, for tests of the passes: the examples, those of lowering, and each text in the
tests of the language that is a program."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted([*(ROOT / "examples").glob("*.lmp"), *(ROOT / "tests" / "parser" / "lower" / "golden").glob("*.lmp")])


def language_programs() -> dict[str, str]:
    """Texts that define a `main` in the tests of the language, by file and line; some of them have mistakes."""
    found = {}
    for path in sorted((ROOT / "tests" / "language").glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "def main(" in node.value:
                found[f"{path.name}:{node.lineno}"] = textwrap.dedent(node.value).lstrip("\n")
    return found
