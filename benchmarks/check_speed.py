"""How long `lmc check` takes: from nothing, by the length of the program, and with one very long literal.

    python benchmarks/check_speed.py

Prints processor seconds of a fresh process each (the median of five), so that neighbours on the machine matter little.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

FUNCTION = '''
type Note{n}:
    score: 1..5
    reason: str(max_len=160)

def judge{n}(essay: str, dimensions: list[str]) -> list[Note{n}]:
    system: "You are a strict judge number {n}."
    user: """
        Here is an essay.
        ${{essay}}
        """
    fork d in dimensions:
        user: "Judge its ${{d}} as JSON with ${{fields(Note{n})}}."
        assistant: note = gen(Note{n}, max_tokens=200)
    join note as notes
    good = [n for n in notes if n.score > 3]
    if len(good) == 0:
        print("none of ${{len(notes)}}")
    return good
'''


def program(lines: int) -> str:
    each = FUNCTION.count("\n")
    return "".join(FUNCTION.format(n=n) for n in range(max(1, lines // each)))


def seconds(path: Path) -> float:
    """Processor seconds of `lmc check` on the file."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", "from lmc.cli import main; main()", "check", "-q", str(path)], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    rows = [(f"{lines:,} lines", program(lines)) for lines in (20, 1_000, 5_000, 10_000)]
    rows += [(f"a literal of {size} MB", f'TEXT = """\n    {"word " * (size * 200_000)}\n    """\n') for size in (1, 5)]
    print(f"{'program':<22}{'seconds':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for name, text in rows:
            path = Path(folder) / "program.lmp"
            path.write_text(text, encoding="utf-8")
            print(f"{name:<22}{statistics.median(seconds(path) for _ in range(5)):>9.2f}")


if __name__ == "__main__":
    main()
