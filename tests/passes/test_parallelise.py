"""Loops that run side by side give what they gave one round after the other."""

import pytest

from lmc.ir.core import walk_ops
from lmc.ir.ops import For, Map
from tests.runtime.programs import dry_session, program_of, run

ASK = '''
    def ask(q: str) -> str:
        raw:
            "Q: ${q} A:"
            a = gen(max_tokens=6, temperature=0.9)
        return a

'''

SPLIT = {
    "accumulates": '''
    def main(qs: list[str]) -> list[str]:
        all: list[str] = []
        long = 0
        last = "none"
        for i, q in enumerate(qs):
            a = ask(q)
            if len(a) > 12:
                all += [a + "!"]
            else:
                all = [a] + all
            long += 1
            last = a + last
        return all + [str(long), last]
    ''',
    "results unread": '''
    def main(qs: list[str]) -> list[str]:
        for q in qs:
            ask(q)
        return qs
    ''',
    "element read later": '''
    def main(qs: list[str]) -> list[str]:
        pairs: list[str] = []
        for q in qs:
            a = ask(q)
            b = ask(a)
            pairs += [q, b]
        return pairs
    ''',
    "nested": '''
    def main(qs: list[str]) -> list[str]:
        all: list[str] = []
        for q in qs:
            inner: list[str] = []
            for n in range(3):
                inner += [ask("${q}${n}")]
            all += inner
        return all
    ''',
}

KEPT = {
    "break": '''
    def main(qs: list[str]) -> list[str]:
        all: list[str] = []
        for q in qs:
            a = ask(q)
            if len(a) > 1000:
                break
            all += [a]
        return all
    ''',
    "print": '''
    def main(qs: list[str]) -> list[str]:
        all: list[str] = []
        for q in qs:
            a = ask(q)
            print(a)
            all += [a]
        return all
    ''',
    "depends on the round before": '''
    def main(qs: list[str]) -> list[str]:
        a = ""
        for q in qs:
            a = ask(q + a)
        return [a]
    ''',
    "what carries on may fail": '''
    def main(qs: list[str]) -> list[str]:
        n = 1
        for q in qs:
            a = ask(q)
            n = n * len(a)
        return [str(n)]
    ''',
    "streams": '''
    def main(qs: list[str]) -> list[str]:
        all: list[str] = []
        for q in qs:
            raw:
                "${q}"
            all += [told(q)]
        return all

    def told(q: str) -> str:
        raw:
            "${q}"
            a = gen(max_tokens=3, stream=True)
        return a
    ''',
    "one conversation": '''
    def main(qs: list[str]) -> list[str]:
        all: list[str] = []
        for q in qs:
            user: "${q}"
            assistant: a = gen(max_tokens=4)
            all += [a]
        return all
    ''',
}

QUESTIONS = tuple(f"question {i}" for i in range(7))


def compiled(text: str, tmp_path, level: int):
    from lmc.compiler import compile_file
    import textwrap

    path = tmp_path / "loop.lmp"
    path.write_text(textwrap.dedent(ASK + text), encoding="utf-8")
    return compile_file(str(path), level=level)


def outcome(program, name="main", *args):
    session = dry_session()
    ended = run(program, session, name, *args, seed=5)
    assert ended.error is None, ended.error
    return ended.value, sorted(r.prompt for r in session.requests), ended.printed, session.peak


@pytest.mark.parametrize("name", SPLIT)
def test_split_loops_overlap_and_change_nothing(name, tmp_path):
    plain, split = (compiled(SPLIT[name], tmp_path, level) for level in (0, 1))
    assert not any(isinstance(op, Map) for op in walk_ops(plain.module.function("main").body))
    assert any(isinstance(op, Map) for op in walk_ops(split.module.function("main").body))
    one, other = outcome(plain.program, "main", list(QUESTIONS)), outcome(split.program, "main", list(QUESTIONS))
    assert one[:3] == other[:3]
    assert one[3] == 1 and other[3] >= len(QUESTIONS)
    for empty in ([], ["only"]):
        assert outcome(plain.program, "main", empty)[:3] == outcome(split.program, "main", empty)[:3]


@pytest.mark.parametrize("name", KEPT)
def test_other_loops_stay(name, tmp_path):
    module = compiled(KEPT[name], tmp_path, 1).module
    ops = list(walk_ops(module.function("main").body))
    assert any(isinstance(op, For) for op in ops) and not any(isinstance(op, Map) for op in ops)
    plain, kept = (outcome(compiled(KEPT[name], tmp_path, level).program, "main", list(QUESTIONS)) for level in (0, 1))
    assert plain == kept and kept[3] == 1


def test_the_first_failing_round_is_reported(tmp_path):
    text = ASK + '''
    def main(qs: list[str]) -> list[str]:
        all: list[str] = []
        for q in qs:
            a = ask(q)
            x = [1, 2, 3][len(q)]
            all += [a]
        return all
    '''
    for level in (0, 1):
        ended = run(program_of(text, tmp_path, level=level), dry_session(), "main", ["a", "bbbb", "c", "dddddd"])
        assert ended.error.kind == "index" and "index 4" in str(ended.error)


def test_errors_are_told_as_those_of_the_loop_that_was_written(tmp_path):
    text = ASK + """
    def main(qs: list[str]) -> list[str]:
        all: list[str] = []
        for q in qs:
            a = ask(q)
            assert len(q) < 3
            all += [a]
        return all
    """
    from lmc.runtime.instance import Budgets

    for budgets in (Budgets(), Budgets(calls=2)):
        errors = [str(run(program_of(text, tmp_path, level=level), dry_session(), "main", ["a", "b", "c", "dddd"], budgets=budgets).error)
                  for level in (0, 1)]
        assert errors[0] == errors[1] and "comprehension" not in errors[0]
        assert ("in round 3 of the loop" in errors[0]) == (budgets.calls == 2)
