"""Servers from the command line and from Python."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import lmc
from lmc.cli.entry import run_command
from lmc.cli.opening import model_options
from lmc.diagnostics import UsageError
from tests.runtime.remote.fake_server import FakeServer, Script, Status, chat
from tests.runtime.remote.remote_runs import program_at
from tests.runtime.remote.server_thread import in_thread

PROGRAM = """\
type Fact:
    about: str(max_len=20)
    sure: bool

def fact(topic: str) -> Fact:
    user: "A fact about ${topic}."
    assistant: found = gen(Fact)
    return found

test "it is sure":
    assert fact("tea").sure
"""
ANSWER = '{"about": "tea", "sure": true}'


@contextmanager
def serving(script: Script) -> Iterator[FakeServer]:
    """A server in a thread of its own, as a real one is elsewhere."""
    server = FakeServer(script)
    with in_thread(server):
        yield server


@pytest.fixture
def path(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("A_KEY", "sk-secret")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    file = tmp_path / "fact.lmp"
    file.write_text(PROGRAM)
    return file


def options(server: FakeServer, *more: str) -> list[str]:
    return ["--backend", "openai", "--base-url", server.url, "--model", "m", "--key-env", "A_KEY", *more]


def test_run(path, capsys, tmp_path):
    with serving([Status(503, {"retry-after": "0"}), chat(ANSWER)]) as server:
        report = tmp_path / "report.json"
        code = run_command(["run", str(path), "--topic", "tea", "--prices", "1:2", "--report", str(report), *options(server)])
    said = capsys.readouterr()
    assert code == 0 and json.loads(said.out) == {"about": "tea", "sure": True}
    assert "requests 2 (1 failed)" in said.err and "cost 0.000018" in said.err
    assert [a["outcome"] for a in json.loads(report.read_text())["attempts"]] == ["503", "answered"]
    assert server.requests[0].headers["authorization"] == "Bearer sk-secret"
    assert "sk-secret" not in said.out + said.err + report.read_text()


def test_tests_of_a_program(path, capsys):
    with serving([chat(ANSWER)]) as server:
        assert run_command(["test", str(path), *options(server)]) == 0
    assert "1 passed" in capsys.readouterr().out


def test_a_recorded_run_is_answered_without_the_server(path, capsys):
    path.write_text(PROGRAM + '    user: "Is it?"\n    assistant: so = select(["yes", "no"])\n    assert so == "no"\n')
    with serving([chat(ANSWER), chat('{"value": "no"}')]) as server:
        assert run_command(["test", str(path), "--record", *options(server)]) == 0
    assert run_command(["test", str(path), "--replay"]) == 0
    assert capsys.readouterr().out.count("1 passed") == 2


def test_the_page_names_what_there_is(path, tmp_path):
    page = (Path(lmc.__file__).parents[1] / "docs" / "remote.md").read_text(encoding="utf-8")
    flags = set(re.findall(r"`(--[a-z-]+)", page))
    known = {name for option in model_options() for name in option.opts} | {"--report"} | {"--exact-turns"}  # of `lmc serve`
    assert flags <= known and {"--repeat-billed", "--speculate"} <= flags
    (program,) = re.findall(r"^```lmp\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(program_at(program, tmp_path).entries) == 1


def test_stop_texts_beyond_those_that_are_taken_are_in_the_plan(tmp_path, capsys):
    file = tmp_path / "stops.lmp"
    file.write_text('def f() -> str:\n    user: "Hi"\n    assistant: a = gen(stop=["a", "b", "c", "d", "e"])\n    return a\n')
    server = ["--base-url", "http://127.0.0.1:1", "--model", "m"]
    assert run_command(["plan", str(file), "--backend", "openai", *server]) == 0
    assert run_command(["plan", str(file), "--backend", "vllm", *server]) == 0
    assert capsys.readouterr().out.count(f"stop texts beyond 4, where there are more: the answer is cut here ({file}:3:20)") == 1


def test_plan_lists_what_is_emulated_and_asks_nobody(path, capsys):
    assert run_command(["plan", str(path), "--topic", "tea", "--backend", "openai", "--base-url", "http://127.0.0.1:1", "--model", "m"]) == 0
    said = capsys.readouterr().out
    assert "every answer is checked, up to 3 times" in said and f"{path}:7:24" in said and "memory" not in said


def test_a_module_from_python_shares_its_server(path):
    with serving(lambda asked: chat(ANSWER)) as server:
        settings = {"backend": "openai", "base_url": server.url, "model": "m", "network": {"deadline": 5, "at_once": 2}}
        with lmc.load(path, **settings) as module:
            facts = module.fact.batch([{"topic": t} for t in ("tea", "sky", "sea")])
            assert [f.about for f in facts] == ["tea"] * 3
            assert module.report.network.requests == 3 and module.report.network.prompt == 30
            assert len(module.report.attempts) == 1 and "up to 3 times" in str(module.fact.plan(topic="tea"))
        assert server.most_at_once <= 2 and "authorization" not in server.requests[0].headers


@pytest.mark.parametrize("given, message", [
    ({"backend": "opanai", "base_url": "http://h"}, "the backend is 'opanai'"), ({"backend": "openai"}, "needs the address"),
    ({"base_url": "http://h"}, "no server is asked"), ({"backend": "openai", "base_url": "h:80"}, "no address"),
    ({"backend": "openai", "base_url": "http://h:99999"}, "no address"),
    ({"backend": "openai", "base_url": "http://u:p@h"}, "holds a name or password"),
    ({"backend": "openai", "base_url": "http://h", "network": {"deadlin": 1}}, "no setting `deadlin`"),
    ({"backend": "openai", "base_url": "http://h", "network": {"deadline": 0}}, "more than 0 seconds"),
])
def test_wrong_settings(path, given, message):
    with pytest.raises(UsageError, match=message):
        lmc.load(path, **given)


def test_a_model_must_be_named(path, capsys):
    assert run_command(["run", str(path), "--topic", "tea", "--backend", "vllm", "--base-url", "http://127.0.0.1:1"]) == 2
    assert "which model of http://127.0.0.1:1 is not said" in capsys.readouterr().err


def test_what_computes_is_not_imported_for_a_server(path):
    script = ("import sys, lmc\n"
              "with lmc.load(sys.argv[1], backend='openai', base_url='http://127.0.0.1:1', model='m', network={'attempts': 1}) as m:\n"
              "    try: m.fact(topic='tea')\n    except lmc.RunError as error: print(error.kind, 'torch' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True)
    assert done.stdout == "model False\n", done.stderr
