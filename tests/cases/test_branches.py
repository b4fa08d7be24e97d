"""Real failures of this field with branches (`cases.jsonl` E-01, E-03, E-05, E-06), as whole runs on the stand-in model."""

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

import lmc
from lmc.compiler import check_file
from lmc.diagnostics import RunError
from lmc.runtime.host import bind_externs
from lmc.runtime.instance import RunOptions, Sinks
from lmc.runtime.machine import Machine
from tests.runtime.folders import byte_level_json, write_folder
from tests.runtime.model import tiny
from tests.runtime.programs import TOKENS, dry_session, program_of, run

# ------------------------------------------------------------------------ E-01

FIRST = '''
def first(n: int) -> list[str]:
    fork i in range(n):
        user: "Branch ${i}."
        assistant: x = gen(max_tokens=4)
    join x as xs
    return xs

def after_empty(n: int) -> list[str]:
    user: ""
    fork i in range(n):
        user: "Branch ${i}."
        assistant: x = gen(max_tokens=4)
    join x as xs
    return xs

def after_gen(n: int) -> list[str]:
    user: "Go."
    assistant: a = gen(max_tokens=3)
    fork i in range(n):
        assistant: " Branch ${i}."
        assistant: x = gen(max_tokens=4)
    join x as xs
    user: "done"
    assistant: z = gen(max_tokens=1)
    return xs

def unforked() -> str:
    user: "Branch 0."
    assistant: x = gen(max_tokens=4)
    return x
'''


def text_of(request):
    return (TOKENS.decode_bytes(request.prompt) + request.heal).decode()


@pytest.mark.parametrize("name", ["first", "after_empty", "after_gen"])
def test_e01_forks_before_any_text_and_after_a_generation(name, tmp_path):
    program = program_of(FIRST, tmp_path)
    for n in (0, 1, 2):
        session = dry_session()
        ended = run(program, session, name, n)
        assert ended.error is None and len(ended.value) == n
        texts = [text_of(r) for r in session.requests]
        branches = [t for t in texts if "Branch" in t]
        assert sorted(t.partition("Branch ")[2][:2] for t in branches) == [f"{i}." for i in range(n)]
        if name == "after_gen":
            # Each branch begins with the parent's text as it was, and what follows the join does too.
            (later,) = [t for t in texts if t.endswith("user\ndone\nassistant\n")]
            parent = later.removesuffix("\nuser\ndone\nassistant\n")
            assert parent.startswith(texts[0]) and len(parent) > len(texts[0])
            assert all(t.startswith(parent + " Branch") for t in branches)
        elif n:
            assert {t.partition("Branch")[0] for t in branches} == {"user\n"}
    assert run(program, dry_session(), "first", 1).value == (run(program, dry_session(), "unforked").value,)


def test_e01_two_hundred_times_side_by_side(tmp_path):
    program = program_of(FIRST, tmp_path)

    async def main(session):
        machine = Machine(program, session, bind_externs(program, {}))
        sinks = Sinks(print, lambda path, text: None)
        return await asyncio.gather(*(machine.start(RunOptions(seed=1), sinks).call("after_gen", (2,)) for _ in range(200)))

    session = dry_session()
    values = asyncio.run(main(session))
    session.wait_until_idle()
    session.close()
    assert set(values) == {run(program, dry_session(), "after_gen", 2).value}


STARTS = {
    "as the first statement": "pass",
    "after an empty text": 'user: ""',
    "after an unfinished generation": '''user: "Begin."
    assistant:
        "Well, "
        g = gen(max_tokens=3)''',
}


@pytest.mark.parametrize("start", STARTS)
def test_e01_each_branch_is_what_it_is_alone(start, tmp_path):
    """No branch, one branch, two branches: each sees exactly what was said before the fork, every time."""
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
''')
    with lmc.load(path, dry=True, seed=1) as module:
        expected = {x: module.alone(x) for x in ("one", "two")}
        assert len(set(expected.values())) == 2
        for _ in range(200):
            assert module.branches([]) == []
            assert module.branches(["one"]) == [expected["one"]]
            assert module.branches(["one", "two"]) == [expected["one"], expected["two"]]


# ------------------------------------------------------------------------ E-03

FAILING = '''
extern def tool(i: int) -> str

def work(i: int, how: str) -> str:
    user: "Branch ${i}"
    if i == 2:
        if how == "long":
            user: "${tool(9000)}"
            assistant: a = gen(max_tokens=5)
        elif how == "tool":
            user: "${tool(i)}"
        elif how == "cut":
            assistant: t = gen(list[str(max_len=50)](min_items=3), max_tokens=4 + 8)
        return "never"
    assistant: x = gen(max_tokens=2500, min_tokens=2500)
    return x

def all_of(how: str) -> list[str]:
    fork i in range(4):
        x = work(i, how)
    join x as xs
    return xs

def caught(how: str) -> str:
    try:
        xs = all_of(how)
    except Error as e:
        return e.kind
    return "nothing"

def collected(how: str) -> list[str]:
    fork i in range(4) with errors="collect":
        user: "Branch ${i}"
        if i == 2:
            x = work(i, how)
        else:
            assistant: x = gen(max_tokens=10)
    join x as xs
    out: list[str] = []
    for one in xs:
        match one:
            case Error(kind):
                out += ["failed: " + kind]
            case _:
                out += ["whole"]
    return out
'''

KINDS = {"long": "context_length", "tool": "extern", "cut": "truncated"}


def tool(i):
    if i == 2:
        raise OSError("no network")
    return "word " * i


@pytest.fixture(scope="module")
def failing(tmp_path_factory):
    return program_of(FAILING, tmp_path_factory.mktemp("failing"))


@pytest.mark.parametrize("how", KINDS)
def test_e03_a_failing_branch_ends_the_fork_and_is_named(failing, how):
    session, start = dry_session(), time.monotonic()
    ended = run(failing, session, "all_of", how, externs={"tool": tool})  # and fails where the engine keeps anything
    assert time.monotonic() - start < 20
    error = ended.error
    assert isinstance(error, RunError) and error.kind == KINDS[how]
    assert any("in branch 2 of the fork at" in note for note in error.diagnostics[0].notes)
    assert error.diagnostics[0].span.file.endswith("program.lmp") and error.diagnostics[0].span.line in range(5, 14)


@pytest.mark.parametrize("how", KINDS)
def test_e03_caught_or_collected_it_is_an_error_and_never_none(failing, how):
    assert run(failing, dry_session(), "caught", how, externs={"tool": tool}).value == KINDS[how]
    value = run(failing, dry_session(), "collected", how, externs={"tool": tool}).value
    assert value == ("whole", "whole", f"failed: {KINDS[how]}", "whole")


def test_e03_from_python_and_from_coroutines_nothing_stays(failing, tmp_path):
    (tmp_path / "program.lmp").write_text(FAILING)
    # Other tests of this process may still hold modules.
    before = set(threading.enumerate())
    with lmc.load(tmp_path / "program.lmp", dry=True, seed=1, externs={"tool": tool}) as m:
        for how, kind in KINDS.items():
            with pytest.raises(RunError) as caught:
                m.all_of(how)
            assert caught.value.kind == kind
            with pytest.raises(RunError):
                asyncio.run(m.aio.all_of(how))
            assert m.caught(how) == kind
        _wait_until_idle(m._opened().share.session)
    for _ in range(500):
        if not _started_since(before):
            break
        time.sleep(0.01)
    assert not _started_since(before)


def _started_since(before):
    return [t for t in threading.enumerate() if t not in before and t.name.startswith("lmc-")]


def _wait_until_idle(session):
    """A cancelled request is gone a step or two later."""
    for _ in range(500):
        if session.stats.running == session.stats.waiting == 0:
            return
        time.sleep(0.01)
    raise AssertionError(session.stats)


# ------------------------------------------------------------------------ E-05

STREAMING = '''
def talk(n: int = 3) -> list[str]:
    user: "Go."
    fork i in range(n):
        user: "Branch ${i}, ${i + 7} words."
        assistant: x = gen(max_tokens=10 * (i + 1), min_tokens=5 * (i + 1), stream=True)
    join x as xs
    return xs
'''


def test_e05_every_piece_says_which_branch_it_comes_from(tmp_path):
    program = program_of(STREAMING, tmp_path)
    ended = run(program, dry_session(), "talk", 3)
    paths = sorted({path for path, _ in ended.streamed})
    assert paths == ["0:0/", "0:1/", "0:2/"]
    joined = tuple("".join(text for path, text in ended.streamed if path == wanted) for wanted in paths)
    assert joined == ended.value == run(program, dry_session(), "talk", 3).value
    changes = sum(a != b for (a, _), (b, _) in zip(ended.streamed, ended.streamed[1:]))
    assert changes > 3  # the branches overlap


def test_e05_a_reader_that_stops_ends_the_program(tmp_path):
    """The stream's reader raises at its third piece: the run ends with that, and the engine is empty."""
    program = program_of(STREAMING.replace("5 * (i + 1)", "2000").replace("10 * (i + 1)", "2000"), tmp_path)
    seen = []

    def reader(path, text):
        seen.append(text)
        if len(seen) == 3:
            raise BrokenPipeError

    async def main(session):
        one = Machine(program, session, bind_externs(program, {})).start(RunOptions(seed=1), Sinks(print, reader))
        await asyncio.wait_for(one.call("talk", (3,)), 20)

    session = dry_session()
    with pytest.raises(BrokenPipeError):
        asyncio.run(main(session))
    session.wait_until_idle()
    session.close()
    assert len(seen) < 1000  # of 6,000


def test_e05_a_reader_in_python_that_stops_ends_the_program(tmp_path):
    """Nothing hangs, and the module goes on."""
    path = tmp_path / "stream.lmp"
    path.write_text(STREAMING)
    seen = []

    class Enough(Exception):
        pass

    def read(text):
        seen.append(text)
        raise Enough

    with lmc.load(path, dry=True, seed=1, stream=read) as module:
        for _ in range(2):
            with pytest.raises((Enough, lmc.RunError)):
                module.talk()
        _wait_until_idle(module._opened().share.session)
    assert seen


# ------------------------------------------------------------------------ E-06

SHARED = '''
START: list[str] = []

def calls(q: str, n: int, hot: bool) -> list[str]:
    xs = START
    user: "Question ${q}"
    for i in range(n):
        if hot:
            assistant: x = gen(max_tokens=4, temperature=1.0)
        else:
            assistant: x = gen(max_tokens=4)
        user: "next"
        xs += [x]
    return xs
'''


@pytest.fixture(scope="module")
def small_model(tmp_path_factory):
    """A model of its own, with weights."""
    folder = tiny.save(tiny.build("Llama", vocab_size=512), tmp_path_factory.mktemp("model"))
    return write_folder(folder, byte_level_json(), config=json.loads((folder / "config.json").read_text()))


def test_e06_sixteen_threads_with_models_and_settings_of_their_own(small_model, tmp_path):
    """Each call gives what it gives alone: the model, the seed and the temperature in force are those of its module."""
    path = tmp_path / "program.lmp"
    path.write_text(SHARED)
    settings = [{"dry": True}, {"dry": True, "sampling": {"temperature": 0.9}}, {"dry": True, "sampling": {"temperature": 0.9}, "seed": 4},
                {"model": str(small_model), "pool_tokens": 4096}, {"model": str(small_model), "pool_tokens": 4096, "sampling": {"top_k": 1}}]
    with ExitStack() as stack:
        modules = [stack.enter_context(lmc.load(path, **{"seed": 3, **given})) for given in settings]
        calls = [(i % len(modules), f"q{i % 3}", i % 4, i % 2 == 0) for i in range(160)]
        alone = {call: modules[call[0]].calls(*call[1:]) for call in sorted(set(calls))}
        assert all(len(said) == n for (_, _, n, _), said in alone.items())  # the list begins empty each time
        assert len({tuple(modules[i].calls("q", 3, False)) for i in range(4)}) == 4, "models and settings that differ"
        with ThreadPoolExecutor(16) as pool:
            together = list(pool.map(lambda call: modules[call[0]].calls(*call[1:]), calls))
    assert together == [alone[call] for call in calls]


@pytest.mark.parametrize("last, code", [("return str(k)", "E0202"), ("return lines(ks)", None)])
def test_e06_what_a_branch_binds_stays_in_it(last, code, tmp_path):
    path = tmp_path / "program.lmp"
    path.write_text(f'def f(n: int) -> str:\n    fork i in range(n):\n        k = "${{i}}"\n    join k as ks\n    {last}\n')
    found = [d for d in check_file(str(path)).diagnostics if d.code.startswith("E")]
    if code is None:
        assert found == []
    else:
        (error,) = found
        assert error.span.line == 5 and "k" in error.message, error
