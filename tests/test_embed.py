"""Programs as Python modules, on the stand-in model."""

import asyncio
import inspect
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import lmc

PROGRAM = '''
type Verdict:
    """Final grade."""
    grade: "A" | "B"
    tags: list[str(max_len=4)](max_items=2)

extern def shout(text: str) -> str

def judge(essay: str, n: int = 2) -> Verdict:
    """Judge an essay."""
    user: "Judge: ${essay} ${n}"
    assistant: v = gen(Verdict)
    return v

def sample(q: str) -> str:
    user: "${q}"
    assistant: a = gen(max_tokens=10, temperature=1.0)
    return a

def loud(text: str) -> str:
    return shout(text)

def bad(x: int) -> int:
    return [1, 2][x]

def echo(v: Verdict) -> list[Verdict]:
    return [v, v]

def endless() -> str:
    user: "Go."
    assistant: a = gen(max_tokens=7000, min_tokens=7000)
    return a

def nothing():
    print("said")

def asks() -> str:
    return input("? ")
'''


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "program.lmp"
    file.write_text(PROGRAM)
    return file


@pytest.fixture
def module(path):
    with lmc.load(path, dry=True, externs={"shout": str.upper}) as loaded:
        yield loaded


def test_functions_are_callables_with_typed_results(module):
    one = module.judge("text")
    assert module.judge(essay="text", n=2) == one and type(one).__name__ == "Verdict"
    assert one.grade in ("A", "B") and isinstance(one.tags, list) and repr(one).startswith("Verdict(grade=")
    assert isinstance(one, module.types.Verdict)
    assert module.judge.__name__ == "judge" and "Judge an essay." in module.judge.__doc__
    assert str(inspect.signature(module.judge)) == "(essay: str, n: int = 2) -> lmc.program.Verdict"
    assert "judge" in dir(module) and "judge" in repr(module)
    assert module.nothing() is None


def test_dataclasses_and_dicts_go_in(module):
    verdict = module.types.Verdict("A", ["x"])
    assert module.echo(verdict) == [verdict, verdict]
    assert module.echo({"grade": "A", "tags": ["x"]})[0] == verdict


def test_contexts_come_out_and_go_in(tmp_path):
    file = tmp_path / "contexts.lmp"
    file.write_text('def start() -> context:\n    user: "Go."\n    return here\n\n'
                    'def more(c: context) -> str:\n    resume c\n    assistant: a = gen(max_tokens=4)\n    return a\n\n'
                    'def whole() -> str:\n    return more(start())\n')
    with lmc.load(file, dry=True) as module:
        assert module.more(module.start()) == module.whole()
        with pytest.raises(lmc.UsageError, match="a context"):
            module.more("text")


def test_wrong_arguments_say_what_is_there(module):
    with pytest.raises(lmc.UsageError) as caught:
        module.judge(esay="x", n="three")
    text = str(caught.value)
    assert "did you mean `essay`?" in text and "needs the argument `essay`" in text and "found 'three'" in text
    assert "judge(essay: str, n: int = 2) -> Verdict" in text
    with pytest.raises(lmc.UsageError, match="takes 2 arguments, found 3"):
        module.judge("a", 1, 2)
    with pytest.raises(lmc.UsageError, match="twice"):
        module.judge("a", essay="b")
    with pytest.raises(AttributeError, match="it has: judge"):
        module.jugde


def test_errors_carry_diagnostics_and_the_source(module, path):
    with pytest.raises(lmc.RunError) as caught:
        module.bad(7)
    error = caught.value
    assert error.kind == "index" and error.diagnostics[0].span.line == 24 and "return [1, 2][x]" in str(error)
    path.write_text("def f(x: int) -> str:\n    return y\n\ndef g( -> str:\n    return 1\n")
    with pytest.raises(lmc.CompileError) as caught:
        lmc.load(path, dry=True)
    assert len(caught.value.diagnostics) >= 2
    with pytest.raises(lmc.UsageError, match="does not exist") as caught:
        lmc.load(path.with_name("progam.lmp"))
    assert "did you mean" in str(caught.value)


def test_externs_must_fit(path):
    with pytest.raises(lmc.UsageError, match="nothing is bound"):
        lmc.load(path, dry=True)
    with pytest.raises(lmc.UsageError, match="declares no extern"):
        lmc.load(path, dry=True, externs={"shout": str.upper, "shuot": str.upper})


def test_many_threads_share_the_model(module):
    expected = {f"essay {i}": module.judge(f"essay {i}") for i in range(8)}
    found, faults = {}, []

    def work(i):
        try:
            for _ in range(5):
                found[f"essay {i}"] = module.judge(f"essay {i}")
                assert module.loud(f"t{i}") == f"T{i}"
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults and found == expected


def test_batch_keeps_order_and_errors_stay_with_their_rows(module):
    rows = [{"x": i} for i in (0, 5, 1, "no")]
    found = module.bad.batch(rows, errors="return")
    assert found[0] == 1 and found[2] == 2
    assert isinstance(found[1], lmc.RunError) and isinstance(found[3], lmc.UsageError)
    with pytest.raises(lmc.RunError):
        module.bad.batch(rows)
    assert module.bad.batch([(0,), (1,)]) == [1, 2] and module.bad.batch([]) == []
    with pytest.raises(lmc.UsageError):
        module.bad.batch(rows, errors="ignore")


def test_rows_of_a_batch_sample_apart_and_repeat(path):
    def samples(seed):
        with lmc.load(path, dry=True, externs={"shout": str.upper}, seed=seed) as module:
            return module.sample.batch([{"q": "same"}] * 6)

    first = samples(5)
    assert len(set(first)) == 6 and samples(5) == first != samples(6)


def test_coroutines_from_any_loop(module):
    async def main():
        one, two = await asyncio.gather(module.aio.judge("a"), module.aio.judge(essay="b"))
        with pytest.raises(lmc.RunError):
            await module.aio.bad(9)
        return one, two

    assert asyncio.run(main()) == (module.judge("a"), module.judge("b"))


def test_cancelling_a_coroutine_frees_the_engine(module):
    async def main():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(module.aio.endless(), 0.2)

    module.loud("loads the model first")
    asyncio.run(main())
    session = module._opened().share.session
    for _ in range(200):
        if session.stats.running == session.stats.used_slots == 0:
            break
        time.sleep(0.01)
    assert session.stats.running == session.stats.used_slots == 0
    assert module.judge("still works").grade in ("A", "B")


def test_it_works_where_a_loop_runs_already(module):
    async def cell():
        return module.judge("in a notebook")

    assert asyncio.run(cell()) == module.judge("in a notebook")


def test_a_call_from_the_loops_own_thread_is_refused(path):
    async def shout(text):
        return module.loud(text)

    with lmc.load(path, dry=True, externs={"shout": shout}) as module, pytest.raises(lmc.RunError, match="aio"):
        module.loud("x")


def test_output_and_input_go_where_they_are_sent(path):
    said, streamed = [], []
    with lmc.load(path, dry=True, externs={"shout": str.upper}, print=said.append, stream=streamed.append, sampling={"stream": True},
                  input=lambda prompt: "line " + prompt) as module:
        module.nothing()
        assert said == ["said"] and module.asks() == "line ? "
        assert "".join(streamed) == "" and module.sample("q") == "".join(streamed)
        assert module.asks.batch([{}]) == ["line ? "]


def test_batches_do_not_ask_the_terminal(module):
    error = module.asks.batch([{}], errors="return")[0]
    assert error.kind == "input"


def test_options_of_the_run(path):
    externs = {"shout": str.upper}
    with pytest.raises(lmc.UsageError, match="did you mean `temperature`|no option"):
        lmc.load(path, dry=True, externs=externs, sampling={"temprature": 1.0})
    with pytest.raises(lmc.UsageError, match="temperature"):
        lmc.load(path, dry=True, externs=externs, sampling={"temperature": -1.0})
    with lmc.load(path, dry=True, externs=externs, max_tokens=3) as module, pytest.raises(lmc.RunError) as caught:
        module.sample("q")
    assert caught.value.kind == "budget"


def test_forced_text_may_be_jumped_and_nothing_changes(path):
    results, jumped = {}, {}
    for jump in ("off", "exact", "canonical"):
        with lmc.load(path, externs={"shout": str.upper}, dry=True, seed=1, jump=jump) as module:
            results[jump], jumped[jump] = module.judge("hi").asdict(), module.report.jumped
    assert results["off"] == results["exact"] and jumped["off"] == 0 < jumped["exact"]
    assert jumped["canonical"] > 0
    with pytest.raises(lmc.UsageError, match="'never', expected 'exact', 'canonical', 'off'"):
        lmc.load(path, externs={"shout": str.upper}, dry=True, jump="never")


def test_report_and_close(module):
    module.judge("a")
    before = module.report
    module.judge("a")
    assert module.report.calls == 2 and module.report.cached > before.cached and module.report.generated > before.generated
    module.close()
    module.close()
    with pytest.raises(lmc.UsageError, match="closed"):
        module.judge("a")


def test_closing_ends_what_runs(module):
    failed = []

    def work():
        try:
            module.endless()
        except lmc.RunError as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.2)
    module.close()
    thread.join(5)
    assert not thread.is_alive() and [e.kind for e in failed] == ["cancelled"]


def test_modules_with_the_same_settings_share_a_model(path, tmp_path):
    other = tmp_path / "other.lmp"
    other.write_text('def endless() -> str:\n    user: "Go."\n    assistant: a = gen(max_tokens=7000, min_tokens=7000)\n    return a\n\n'
                     'def sample(q: str) -> str:\n    user: "${q}"\n    assistant: a = gen(max_tokens=10, temperature=1.0)\n    return a\n')
    externs = {"shout": str.upper}
    with lmc.load(path, dry=True, externs=externs, seed=1) as one:
        first = one.sample("the same")
        with lmc.load(other, dry=True, seed=1) as two, lmc.load(other, dry=True, pool_tokens=9000) as apart:
            assert two.sample("the same") == first
            assert two._opened().share.session is one._opened().share.session is not apart._opened().share.session
            # What one module has computed, the other one finds.
            assert two.report.cached > 0
            running = threading.Thread(target=lambda: pytest.raises(lmc.RunError, two.endless))
            running.start()
            time.sleep(0.1)
        # Closing ended what ran in `two`, and `one` goes on.
        running.join(5)
        assert not running.is_alive() and one.sample("the same") == first
        session = one._opened().share.session
    assert session.ended
    with lmc.load(other, dry=True) as later:
        assert later._opened().share.session is not session and not later._opened().share.session.ended


def test_a_model_that_a_fault_has_ended_is_shared_no_more(path):
    externs = {"shout": str.upper}
    with lmc.load(path, dry=True, externs=externs) as one:
        one._opened().share.session.close()
        with lmc.load(path, dry=True, externs=externs) as two:
            assert two.judge("x").grade in ("A", "B")
        with pytest.raises(lmc.RunError):
            one.judge("x")


def test_the_interpreter_ends_with_an_open_module(path):
    script = f"import lmc; m = lmc.load({str(path)!r}, dry=True, externs={{'shout': str.upper}}); print(m.loud('x'))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "X\n", "")


def test_importing_lmc_is_light():
    script = textwrap.dedent("""
        import sys, lmc
        print([m for m in ("torch", "numpy", "lark", "asyncio", "transformers") if m in sys.modules])
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr


def test_a_signature_as_json_schema(module):
    schema = module.judge.schema
    assert schema["description"] == "Judge an essay."
    assert schema["parameters"] == {
        "type": "object",
        "properties": {"essay": {"type": "string"}, "n": {"type": "integer", "default": 2}},
        "required": ["essay"],
        "additionalProperties": False,
    }
    assert schema["returns"]["properties"]["grade"] == {"enum": ["A", "B"]}
    assert "description" not in module.sample.schema
    assert module.nothing.schema["returns"] == {"type": "null"}


def test_a_context_has_no_json_schema(tmp_path):
    file = tmp_path / "state.lmp"
    file.write_text("def start() -> context:\n    user: \"Hi\"\n    return here\n")
    with lmc.load(file, dry=True) as loaded, pytest.raises(lmc.UsageError, match="`start` has no JSON schema: `context`"):
        loaded.start.schema
