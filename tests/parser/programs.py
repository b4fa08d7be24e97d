"""The seven programs of the examples folder, the text on which the parser's tests work."""

from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = ("classify", "judge", "react", "character", "chat", "vote", "tree")
PROGRAMS = {name: (EXAMPLES / f"{name}.lmp").read_text(encoding="utf-8") for name in NAMES}
