"""Failures of the field around branches and parallel use (cases E-01, E-03, E-05, E-06), run as programs."""

import textwrap
from concurrent.futures import ThreadPoolExecutor

import pytest

import lmc
from tests.runtime.programs import dry_session, program_of, run

STARTS = {
    "as the first statement": "",
    "after an empty text": 'user: ""',
    "after an unfinished generation": '''user: "Begin."
    assistant:
        "Well, "
        g = gen(max_tokens=3)''',
}


@pytest.mark.parametrize("start", STARTS)
def test_e01_a_fork_anywhere_is_what_its_branches_are_alone(start, tmp_path):
    """E-01: no branch, one branch, two branches: each sees exactly what was said before the fork, every time."""
    path = tmp_path / "fork.lmp"
    path.write_text(f'''# lmc: allow W111
def branches(xs: list[str]) -> list[str]:
    {STARTS[start]}
    fork x in xs:
        user: "Say ${{x}}."
        assistant: a = gen(max_tokens=6)
    join a as all
    return all

def alone(x: str) -> str:
    {STARTS[start]}
    user: "Say ${{x}}."
    assistant: a = gen(max_tokens=6)
    return a
''', encoding="utf-8")
    with lmc.load(path, dry=True, seed=1) as module:
        expected = {x: module.alone(x) for x in ("one", "two")}
        assert len(set(expected.values())) == 2
        for _ in range(200):
            assert module.branches([]) == []
            assert module.branches(["one"]) == [expected["one"]]
            assert module.branches(["one", "two"]) == [expected["one"], expected["two"]]


FAILING = {
    "a prompt that is too long": ('user: "${"word " * (3000 if i == 2 else 1)}"\n        assistant: a = gen(max_tokens=4)', "context_length"),
    "an extern that raises": ('user: "${tool(i)}"\n        assistant: a = gen(max_tokens=4)', "extern"),
    "a value that is cut": ('n = 3 if i == 2 else 60\n        user: "x"\n        assistant: a = gen(str(regex=r"[a-z]{20}"), max_tokens=n)',
                            "truncated"),
}


def tool(i: int) -> str:
    if i == 2:
        raise ValueError("no such thing")
    return f"tool {i}"


def failing(name: str, options: str, tmp_path):
    body, _ = FAILING[name]
    text = f'''
    extern def tool(i: int) -> str

    def main() -> list[str]:
        fork i in range(4){options}:
            {body.replace(chr(10) + "        ", chr(10) + "            ")}
        join a as all
        return [describe(x) for x in all]

    def describe(x: {"str | Error" if options else "str"}) -> str:
    '''
    text = textwrap.dedent(text)
    text += '''    match x:
        case Error():
            return "failed: ${x.kind}"
        case _:
            return "fine"
''' if options else '    return "fine " + x\n'
    return program_of(text, tmp_path)


@pytest.mark.parametrize("name", FAILING)
def test_e03_an_error_in_one_branch_is_the_programs_error(name, tmp_path):
    """E-03: uncaught, it is the original error with branch and place; nothing is left in the engine (`run` checks it)."""
    ended = run(failing(name, "", tmp_path), dry_session(max_positions=2000), "main", externs={"tool": tool})
    assert ended.error.kind == FAILING[name][1]
    assert ended.error.diagnostics[0].span is not None
    assert any("branch 2 of the fork" in note for note in ended.error.diagnostics[0].notes)


@pytest.mark.parametrize("name", FAILING)
def test_e03_collected_errors_keep_their_places(name, tmp_path):
    """E-03: caught, the failed slot is an error value and the others are in order."""
    program = failing(name, ' with errors="collect"', tmp_path)
    ended = run(program, dry_session(max_positions=2000), "main", externs={"tool": tool})
    assert ended.error is None, ended.error
    assert ended.value == ("fine", "fine", f"failed: {FAILING[name][1]}", "fine")


STREAMS = '''
    def main() -> list[str]:
        user: "Say something."
        fork i in range(3):
            user: "Number ${i}."
            assistant: a = gen(max_tokens=4 + 6 * i, stream=True)
        join a as all
        return all
'''


def test_e05_each_piece_of_a_stream_says_which_branch_it_is_of(tmp_path):
    """E-05: the pieces of one branch, joined, are its result."""
    ended = run(program_of(STREAMS, tmp_path), dry_session(), "main")
    joined: dict[str, str] = {}
    for path, text in ended.streamed:
        joined[path] = joined.get(path, "") + text
    assert sorted(joined.values()) == sorted(ended.value) and len(joined) == 3


def test_e05_a_reader_that_stops_ends_the_program(tmp_path):
    """E-05: whoever reads raises; the program ends with that, and nothing hangs or stays."""
    path = tmp_path / "stream.lmp"
    path.write_text(textwrap.dedent(STREAMS), encoding="utf-8")

    class Enough(Exception):
        pass

    def read(text: str) -> None:
        raise Enough

    with lmc.load(path, dry=True, seed=1, stream=read) as module, pytest.raises((Enough, lmc.RunError)):
        module.main()


def test_e06_parallel_users_do_not_see_one_another(tmp_path):
    """E-06: sixteen threads, one program: each call's result is that of the call alone."""
    path = tmp_path / "shared.lmp"
    path.write_text('''START: list[str] = []

def main(topic: str, count: int) -> list[str]:
    said = START
    user: "About ${topic}."
    for i in range(count):
        assistant: a = gen(max_tokens=4, temperature=0.9)
        user: "More."
        said += [a]
    return said
''', encoding="utf-8")
    calls = [(f"topic {i % 8}", 1 + i % 3) for i in range(160)]
    with lmc.load(path, dry=True, seed=7) as module:
        alone = {call: module.main(*call) for call in set(calls)}
        with ThreadPoolExecutor(16) as pool:
            together = list(pool.map(lambda call: module.main(*call), calls))
    assert together == [alone[call] for call in calls]
    assert all(len(said) == count for said, (_, count) in zip(together, calls))
