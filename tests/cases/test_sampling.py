"""Case H-07: generations that look alike are merged, or answered from a cache, so that eight samples become one.

Here none is ever merged: each asks the engine, with a seed of its own where it draws without one.
"""

import pytest

from lmc.passes import passes_of
from tests.runtime.programs import dry_session, program_of, run

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
