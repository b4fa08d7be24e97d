"""Programs whose contexts are told to the engine: what is sent, and what the cache holds afterwards."""

from __future__ import annotations

import os

import pytest

from lmc.runtime.hints import Keep, Pin, Prefill, Release
from lmc.runtime.leases import Leases
from lmc.runtime.request import Usage
from tests.runtime.programs import WatchedSession, dry_session, program_of, run

JUDGE = '''
    def judge(essay: str, sides: list[str]) -> list[str]:
        system: "You are a strict but fair judge of essays, and you say what you think in one or two words."
        user: "Here is the essay. ${essay} "
        fork side in sides:
            user: "Judge its ${side} now."
            assistant: note = gen(max_tokens=4)
        join note as notes
        return notes
'''
ESSAY = "we could take a long look at how people work and live and find out more about them " * 4


def watched(tmp_path, sides, *, level=2, text=JUDGE, slots=1 << 16):
    session = dry_session(slots=slots)
    hints, plain = [], WatchedSession.hint

    def hint(one, on_usage=None):
        hints.append(one)
        plain(session, one, on_usage)

    session.hint = hint
    ended = run(program_of(text, tmp_path, level=level), session, "judge", ESSAY, sides)
    return ended, session, hints


def test_a_fork_is_hinted_once_and_its_contexts_are_released(tmp_path):
    ended, session, hints = watched(tmp_path, ["clarity", "wit", "length"])
    kinds = [type(one) for one in hints]
    assert kinds.count(Prefill) == kinds.count(Pin) == 1
    handles = {one.handle for one in hints if isinstance(one, (Keep, Prefill))}
    assert handles and handles == {one.handle for one in hints if isinstance(one, Release)}
    plain, _, none = watched(tmp_path, ["clarity", "wit", "length"], level=0)
    assert not none and ended.value == plain.value
    report, other = ended.report, plain.report
    assert report.cached + report.computed == other.cached + other.computed
    assert report.computed <= other.computed + 3


@pytest.mark.parametrize("width", [2, 3, 9, 33, 64])
def test_the_fork_of_a_program_computes_its_prefix_once_in_any_pool(tmp_path, width):
    """From the source to the engine's counter; the smallest pool holds one branch with its answer and nothing beside it."""
    sides, slots = [f"part {n}" for n in range(width)], 1 << 16
    for _ in range(2):
        _, session, hints = watched(tmp_path, sides, slots=slots)
        prompts = [request.prompt for request in session.requests]
        common = len(os.path.commonprefix(prompts))
        assert len(prompts) == width and common > 100 and Prefill in map(type, hints)
        assert session.stats.prompt <= common + sum(len(p) - common for p in prompts) + width
        slots = max(map(len, prompts)) + 4 + 1


def test_no_hint_for_a_single_branch(tmp_path):
    _, _, hints = watched(tmp_path, ["clarity"])
    assert Prefill not in map(type, hints)


LOOP = '''
    def judge(essay: str, sides: list[str]) -> int:
        user: "Here is the essay. ${essay} "
        for side in sides:
            user: "Judge its ${side} now."
            assistant: gen(max_tokens=4)
        user: "Thank you."
        assistant: gen(max_tokens=4)
        return len(sides)
'''


def test_what_a_loop_carries_is_kept_in_each_round_and_over_in_the_next(tmp_path):
    _, session, hints = watched(tmp_path, ["clarity", "wit", "length"], text=LOOP)
    kept = [one.handle for one in hints if isinstance(one, Keep)]
    over = [one.handle for one in hints if isinstance(one, Release)]
    assert len(set(kept)) == 4 and set(over) == set(kept)
    first, *_, last = kept
    place = {(type(one), one.handle): index for index, one in enumerate(hints) if isinstance(one, (Keep, Release))}
    assert place[Release, first] < place[Keep, last]


def test_what_is_computed_ahead_counts_for_the_first_call_that_finds_it(tmp_path):
    session = dry_session()
    leases, ids = Leases(session), tuple(range(10))
    leases._note(ids[:6], Usage(computed=6))
    leases._note(ids, Usage(cached=6, computed=4))
    assert leases.unread == 10
    assert leases.found_first((*ids[:6], 99), 6) == 6, "another branch of the shorter one"
    assert leases.found_first((*ids, 77), 8) == 2, "the rest was evicted before it came"
    assert leases.found_first((*ids, 78), 10) == 2 and leases.unread == 0
    assert leases.found_first((*ids, 79), 10) == 0
    session.close()
