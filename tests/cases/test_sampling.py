"""Case H-07: generations that look alike are merged, or answered from a cache, so that eight samples become one; and H-01: a seed is
ignored in company.

Here none is ever merged: each asks the engine, with a seed of its own where it draws without one.
"""

import pytest

from lmc.passes import passes_of
from lmc.runtime.request import DoneEvent, GenerateRequest, Sampling
from tests.runtime.programs import dry_session, program_of, run
from tests.runtime.test_random_driver import make_engine, run_alone

LOOP = '''
def one() -> str:
    user: "A word."
    assistant: w = gen(temperature={t}, max_tokens=4)
    return w

def main() -> list[str]:
    out: list[str] = []
    for i in range(8):
        out += [one()]
    return out
'''
FORK = '''
def main() -> list[str]:
    user: "A word."
    fork i in range(8) with temperature={t}:
        assistant: w = gen(max_tokens=4)
    join w as ws
    return ws
'''
CALLED = '''
def one() -> str:
    user: "A word."
    assistant: w = gen(temperature={t}, max_tokens=4)
    return w

def main() -> list[str]:
    return [one(), one(), one(), one(), one(), one(), one(), one()]
'''
WRITTEN = '''
def main() -> list[str]:
    user: "A word."
    start = here
''' + "".join(f'''
    resume start
    assistant: w{n} = gen(temperature={{t}}, max_tokens=4)
''' for n in range(8)) + "    return [w0, w1, w2, w3, w4, w5, w6, w7]\n"

PROGRAMS = pytest.mark.parametrize("text", [LOOP, FORK, CALLED, WRITTEN], ids=["loop", "fork", "calls", "written"])
WAYS = pytest.mark.parametrize("passes", [(), passes_of(1), passes_of(2)], ids=["O0", "O1", "O2"])


def samples(text: str, folder, passes, seed: int | None):
    session = dry_session()
    ended = run(program_of(text, folder, passes=passes), session, "main", seed=seed)
    assert ended.error is None
    return list(ended.value), session.requests, ended.report.calls


@PROGRAMS
@WAYS
def test_eight_draws_are_eight_samples_at_every_level(text, passes, tmp_path):
    words, requests, calls = samples(text.format(t="1.0"), tmp_path, passes, 3)
    assert calls == len(requests) == 8 and len({r.prompt for r in requests}) == 1
    assert len({r.sampling.seed for r in requests}) == 8 and len(set(words)) > 4
    assert words == samples(text.format(t="1.0"), tmp_path, (), 3)[0]


@PROGRAMS
def test_two_unseeded_runs_differ_and_argmax_does_not(text, tmp_path):
    first, again = (samples(text.format(t="1.0"), tmp_path, passes_of(2), None)[0] for _ in range(2))
    assert first != again
    words, _, calls = samples(text.format(t="0"), tmp_path, passes_of(2), None)
    assert len(set(words)) == 1 and calls == 8


def test_generations_that_differ_in_an_option_stay_apart(tmp_path):
    options = ("max_tokens=2", "max_tokens=5", "max_tokens=5, stop=\"a\"", "max_tokens=5, temperature=0.9, top_p=0.5, seed=1",
               "max_tokens=5, temperature=0.9, seed=1", "max_tokens=5, temperature=0.9, seed=1")
    lines = "".join(f"    resume start\n    raw: w{n} = gen({one})\n" for n, one in enumerate(options))
    text = f'def main() -> list[str]:\n    raw: "A word:"\n    start = here\n{lines}    return [{", ".join(f"w{n}" for n in range(6))}]\n'
    plain, asked, _ = samples(text, tmp_path, (), 1)
    optimised, requests, calls = samples(text, tmp_path, passes_of(2), 1)
    assert optimised == plain and calls == 6 and {r.sampling.seed for r in requests} == {r.sampling.seed for r in asked}
    # Equal in all, the seed included: these two may be one request, and must be one text.
    assert plain[4] == plain[5]


def test_h01_a_seeded_sample_is_the_same_after_a_retraction():
    """Greedy, seeded and unseeded neighbours in a pool in which they do not all fit."""
    requests = [GenerateRequest((i % 2, 1, 0), 60, ignore_eos=True, sampling=Sampling(temperature=[0.0, 0.8][i % 2], seed=i)) for i in range(8)]
    engine = make_engine(100, max_batch_tokens=16)
    tickets = [engine.submit(request) for request in requests]
    ids = {}
    while engine.busy:
        for request in engine._scheduler.waiting:  # as if answers were said to be short, so that too many begin
            request.most = len(request.ids) + 1
        ids |= {event.ticket: event.result.ids for event in engine.step() if isinstance(event, DoneEvent)}
    assert engine.stats.retractions > 4
    assert [ids[ticket] for ticket in tickets] == [run_alone(request).ids for request in requests]


def test_h01_branches_of_a_seeded_fork_differ_and_repeat(tmp_path):
    text = FORK.format(t="0.8")
    words, requests, _ = samples(text, tmp_path, passes_of(2), 11)
    assert words == samples(text, tmp_path, (), 11)[0] != samples(text, tmp_path, (), 12)[0]
    assert words[0] != words[3] and len({request.sampling.seed for request in requests}) == 8
