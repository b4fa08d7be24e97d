"""What runs side by side and what waits, counted: the most generations that were under way at once, at every level."""

from pathlib import Path

import pytest

from tests.runtime.programs import dry_session, program_of, run

TREE = (Path(__file__).resolve().parents[2] / "examples" / "tree.lmp").read_text(encoding="utf-8")

ASK = '''
def ask(text: str) -> str:
    user: "${text}"
    assistant: a = gen(min_tokens=6, max_tokens=6)
    return a

extern def log(text: str) -> None

def noted(text: str) -> str:
    log(text)
    return ask(text)

TEXTS = ["a", "b", "c", "d", "e"]
'''

COMPREHENSION = "def main() -> list[str]:\n    return [ask(t) for t in TEXTS]\n"
NESTED = "def main() -> list[str]:\n    return [ask(t + u) for t in TEXTS[:2] for u in TEXTS[:3]]\n"
CHAIN = "def main() -> list[str]:\n    return [ask(ask(t)) for t in TEXTS]\n"
STAGES = "def main() -> list[str]:\n    first = [ask(t) for t in TEXTS]\n    return [ask(f) for f in first]\n"
LOOP = "def main() -> list[str]:\n    out: list[str] = []\n    for t in TEXTS:\n        out += [ask(t)]\n    return out\n"
SEQUENCE = "def main() -> str:\n    x = ask(\"a\")\n    y = ask(\"b\")\n    z = ask(\"c\")\n    return x + y + z\n"
STATEMENTS = "def main():\n    ask(\"a\")\n    ask(\"b\")\n"
FORKS = '''
def main() -> int:
    user: "Hi."
    fork i in range(2):
        fork j in range(3):
            user: "${i} ${j}"
            assistant: a = gen(min_tokens=6, max_tokens=6)
        join a as xs
        n = len(xs)
    join n as ns
    return sum(ns)
'''

CARRIED = '''
def main():
    user: "Hi."
    for t in TEXTS:
        user: "${t}"
        assistant: gen(min_tokens=6, max_tokens=6)
'''
NEEDED = "def main() -> str:\n    x = \"\"\n    for t in TEXTS:\n        x = ask(x + t)\n    return x\n"
EXTERN = "def main() -> list[str]:\n    out: list[str] = []\n    for t in TEXTS:\n        out += [noted(t)]\n    return out\n"
EXTERN_IN_COMPREHENSION = "def main() -> list[str]:\n    return [noted(t) for t in TEXTS]\n"
PRINTED = "def main():\n    for t in TEXTS:\n        print(ask(t))\n"


def peak(text: str, folder: Path, level: int) -> int:
    session = dry_session()
    ended = run(program_of(ASK + text, folder, level=level), session, "main", externs={"log": lambda text: None})
    assert ended.error is None, ended.error
    return session.peak


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("text, most", [
    (COMPREHENSION, 5), (NESTED, 6), (CHAIN, 5), (STAGES, 5), (SEQUENCE, 3), (STATEMENTS, 2), (FORKS, 6),
], ids=["comprehension", "nested", "chain", "stages", "sequence", "statements", "forks"])
def test_independent_calls_overlap(text, most, tmp_path, level):
    assert peak(text, tmp_path, level) == most


@pytest.mark.parametrize("level, most", [(0, 1), (1, 5), (2, 5)])
def test_a_loop_over_independent_calls_is_split(tmp_path, level, most):
    assert peak(LOOP, tmp_path, level) == most


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("text", [CARRIED, NEEDED, EXTERN, EXTERN_IN_COMPREHENSION, PRINTED],
                         ids=["context", "value", "extern", "extern in a comprehension", "print"])
def test_what_needs_the_round_before_or_keeps_an_order_waits(text, tmp_path, level):
    assert peak(text, tmp_path, level) == 1


@pytest.mark.parametrize("level", [0, 2])
def test_tree_of_thought(tmp_path, level):
    """Chains of a step and its rating, at most 9 at a time: three ways on from each of the three contexts that were kept."""
    session = dry_session()
    ended = run(program_of(TREE, tmp_path, level=level), session, "tree", "Make 24 of 4, 6, 8, 8.", 3, 3)
    assert ended.error is None and session.peak == 9 and ended.report.calls == 3 * 2 + 9 * 2 + 9 * 2 + 1
