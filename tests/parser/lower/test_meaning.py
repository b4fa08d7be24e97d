"""What was lowered computes what the same Python computes, unoptimised and optimised, on the stand-in model."""

import itertools
from pathlib import Path

import pytest

import lmc

HERE = Path(__file__).parent / "golden"
LEVELS = pytest.mark.parametrize("level", [0, 1])


def load(name: str, level: int, **options):
    return lmc.load(HERE / f"{name}.lmp", dry=True, level=level, **options)


def loops(xs: list[str]) -> str:
    total, best = 0, None
    for i, x in enumerate(xs):
        if x == "":
            continue
        if i > 3:
            break
        total += len(x)
        best = x
    while True:
        word = "w" * total
        if total > 10:
            break
        total += 1
    while total > 0:
        total = total // 2
    d = {"k": [1, 2]}
    d["k"][0] = 5
    d["k"][1] += 1
    for key in d:
        total += len(d[key])
    for ch in word:
        if ch == "w":
            total += 1
    return best + word if best is not None else f"{total}"


def short(a: int, b: int, xs: list[str]) -> str:
    if a < b <= 10 and xs[0] == "x" or not (a == b):
        return "yes" if len(xs) > 1 else "one"
    elif a in [1, 2]:
        return xs[-1]
    return f"{a - 1} {str(xs[1:] == xs).lower()}"


@LEVELS
def test_loops(level):
    with load("loops", level) as m:
        for xs in (["ab", "", "c", "ddd", "zzz"], [], ["", "", "", "", "a", "b"], ["x"] * 9, ["a" * 20]):
            assert m.loops(xs=xs) == loops(xs)


@LEVELS
def test_conditions(level):
    with load("conditions", level) as m:
        for a, b, xs in itertools.product((0, 1, 5, 11), (1, 5, 12), ([], ["x"], ["x", "y"], ["q"])):
            try:
                expected = short(a, b, xs)
            except IndexError:
                with pytest.raises(lmc.RunError) as caught:
                    m.short(a=a, b=b, xs=xs)
                assert caught.value.kind == "index"
            else:
                assert m.short(a=a, b=b, xs=xs) == expected


@LEVELS
def test_comprehensions(level):
    rows = [[1, 2, 3], [], [8, 9, 10]]
    a = [x * 2 for row in rows if len(row) > 0 for x in row if x > 1 if x < 9]
    b = [x * 6 for x in a]
    c = [i + x for i, x in enumerate(b)]
    with load("comprehensions", level) as m:
        assert m.comps(xs=rows) == c[1:] + [1, 2] + [1]


@LEVELS
def test_matches(level):
    with load("matching", level) as m:
        assert [m.kind(n=n) for n in range(4)] == ["small", "small", "two", "many"]
        assert m.act(a={"type": "Search", "query": "q"}, o="x") == '{"type":"Search","query":"q","k":3}qx'
        assert m.act(a={"type": "Stop", "reason": "r"}, o=None) == "stop"


@LEVELS
def test_errors_are_caught_and_effects_keep_their_order(level):
    seen: list[str] = []
    externs = {"log": seen.append, "embed": lambda text, k: [0.5] * k}
    with load("errors", level, externs=externs, seed=3) as m:
        with pytest.raises(lmc.RunError, match="bad -1") as caught:
            m.tries(s="x")
        assert caught.value.kind == "assert" and caught.value.diagnostics[0].span.line == 17
    # The handler ran, then the extern, then the check that stopped it before `print`.
    assert seen == ["-1"]


@pytest.mark.parametrize("name", ["parts", "generation"])
def test_levels_give_the_same_text(name):
    results = []
    for level in (0, 1):
        with load(name, level, seed=3) as m:
            results.append(m.arms(q="q") if name == "parts" else m.generate(topic="bees"))
    assert results[0] == results[1] and len(results[0]) > 5


def first(xs: list[list[int]], wanted: int) -> int:
    found = -1
    for i, row in enumerate(xs):
        for x in row:
            match x - wanted:
                case 0:
                    found = i
                    break
                case 1:
                    continue
                case _:
                    found -= 1
        if found >= 0:
            break
    return found


def steps(n: int) -> int:
    count = 0
    while n != 1:
        count += 1
        if n % 2 == 0:
            n = n // 2
            continue
        n = 3 * n + 1
        if count > 20:
            break
    return count


@LEVELS
def test_exits(level):
    with load("exits", level) as m:
        assert [m.parse(s=s) for s in ("12", "x", "")] == [12, -1, -1]
        for rows in ([[1, 2], [3, 4]], [[4, 5, 6]], [], [[], [9], [8, 7]]):
            for wanted in (3, 4, 7, 8):
                assert m.first(xs=rows, wanted=wanted) == first(rows, wanted)
        assert [m.count(n=n) for n in range(1, 30)] == [steps(n) for n in range(1, 30)]
        assert m.safe(xs=["1", "x", "3", "", "5"]) == [1, 3, 5]
        assert m.never(n=3) == 3 and m.pick(n=6) == "big"
        for call in (lambda: m.never(n=0), lambda: m.pick(n=0)):
            with pytest.raises(lmc.RunError) as caught:
                call()
            assert caught.value.kind == "fail"
