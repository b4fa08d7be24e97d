"""The command line: arguments, output, exit codes, batches, Ctrl-C."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from lmc.cli.entry import run_command

PROGRAM = '''
type Verdict:
    grade: "A" | "B"
    note: str(max_len=6)

def judge(essay: str, max_items: int = 2, tags: list[str] = ["x"], mood: "good" | "bad" = "good") -> Verdict:
    """Judge an essay strictly."""
    user: "Judge ${essay} ${max_items} ${lines(tags)} ${mood}"
    assistant: v = gen(Verdict)
    return v

def echo(text: str) -> str:
    return text

def fails(x: int) -> int:
    print("about to fail")
    return [1, 2][x]

def says():
    print("to standard output")
    user: "Go."
    assistant: gen(max_tokens=5, stream=True)

def seed(seed: int) -> int:
    return seed

def endless():
    user: "Go."
    print("started")
    while True:
        assistant: gen(max_tokens=2000, min_tokens=2000)

def spins() -> int:
    k = 0
    print("started")
    while True:
        k += 1
    return k

def waits() -> str:
    print("started")
    return input("? ")

test "one is one":
    assert echo("a") == "a"

test "one is two":
    assert echo("a") == "b"
'''


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "program.lmp"
    file.write_text(PROGRAM)
    return file


def lmc(*args, stdin=""):
    """Run a command in this process: importing torch again for each would take most of the time."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), patch("sys.stdin", io.StringIO(stdin, newline="")):
        code = run_command([str(a) for a in args])
    return SimpleNamespace(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())


# ------------------------------------------------------------------------ run


def test_result_on_stdout_summary_on_stderr(path):
    done = lmc("run", f"{path}:judge", "--essay", "hi", "--dry", "--seed", 3)
    assert done.returncode == 0, done.stderr
    assert list(json.loads(done.stdout)) == ["grade", "note"] and done.stdout.startswith('{\n  "grade"')
    assert re.fullmatch(r"calls 1 · generated \d+ tokens( \(\d+ jumped\))? · from cache \d+ tokens · \d+\.\d s · seed 3\n", done.stderr)
    assert lmc("run", f"{path}:judge", "--essay", "hi", "--dry", "--seed", 3, "--quiet").stderr == ""


def test_arguments_as_text_json_and_files(path, tmp_path):
    (tmp_path / "essay.txt").write_text('An "essay"\nwith { braces }')
    done = lmc("run", f"{path}:echo", "--dry", "--text", f"@{tmp_path / 'essay.txt'}")
    assert json.loads(done.stdout) == 'An "essay"\nwith { braces }'
    assert json.loads(lmc("run", f"{path}:echo", "--dry", "--text", "[1, 2]").stdout) == "[1, 2]"
    assert json.loads(lmc("run", f"{path}:echo", "--dry", "--text=@@at").stdout) == "@at"
    (tmp_path / "tags.json").write_text('["a", "b"]')
    done = lmc("run", f"{path}:judge", "--dry", "--essay", "hi", "--tags", f"@{tmp_path / 'tags.json'}", "--max-items", "7", "--mood=bad")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("args, words", [
    (["--essay", "hi", "--max_items", "three"], ["`max_items` must be JSON of type `int`", "three"]),
    (["--essay", "hi", "--max_items", "2.5"], ["argument `max_items`", "expected int", "found 2.5"]),
    (["--essay", "hi", "--mood", "fine"], ["argument `mood`", '"good" | "bad"']),
    (["--essay", "hi", "--tags", '{"a": 1}'], ["argument `tags`", "expected a list"]),
    (["--esay", "hi"], ["--esay", "--essay", "Parameters of `judge`"]),
    ([], ["needs the argument `essay`: str", "judge(essay: str"]),
    (["--essay", "@/no/such/file"], ["/no/such/file", "@@"]),
    (["--essay", "hi", "--extern", "missing.py"], ["missing.py"]),
    (["--essay", "hi", "--temperature", "-1"], ["temperature"]),
    (["--essay", "hi", "--pool-tokens", "0"], ["pool-tokens"]),
    (["--essay", "hi", "more"], ["more"]),
])
def test_wrong_arguments(path, args, words):
    done = lmc("run", f"{path}:judge", "--dry", *args)
    assert done.returncode == 2 and done.stdout == "" and "Traceback" not in done.stderr
    assert all(word in done.stderr for word in words), done.stderr


def test_which_function(path, tmp_path):
    done = lmc("run", path, "--dry")
    assert done.returncode == 2 and "say which" in done.stderr and "echo(text: str) -> str" in done.stderr
    done = lmc("run", f"{path}:juge", "--dry")
    assert done.returncode == 2 and "did you mean `judge`" in done.stderr
    one = tmp_path / "one.lmp"
    one.write_text("def f(x: int = 4) -> int:\n    return x\n")
    assert lmc("run", one, "--dry").stdout == "4\n"
    done = lmc("run", tmp_path / "onee.lmp")
    assert done.returncode == 2 and "does not exist" in done.stderr and "one.lmp" in done.stderr
    assert lmc("run").returncode == 2


def test_help_shows_the_parameters(path):
    done = lmc("run", f"{path}:judge", "--help")
    assert done.returncode == 0 and "Judge an essay strictly." in done.stdout
    assert "--essay VALUE" in done.stdout and "str; required" in done.stdout and "default: 2" in done.stdout
    assert "--pool-tokens" in lmc("run", "--help").stdout


def test_a_parameter_may_have_the_name_of_an_option(path):
    done = lmc("run", f"{path}:seed", "--dry", "--seed", "5", "--lmc-seed", "9")
    assert done.stdout == "5\n" and "seed 9" in done.stderr


def test_where_output_goes(path):
    done = lmc("run", f"{path}:says", "--dry")
    assert done.stdout.startswith("to standard output\n") and done.stdout.endswith("\n") and len(done.stdout.splitlines()) >= 2
    done = lmc("run", f"{path}:fails", "--x", "1", "--dry")
    assert done.stdout == "2\n" and done.stderr.startswith("about to fail\n")


def test_contexts_have_no_json(tmp_path):
    file = tmp_path / "contexts.lmp"
    file.write_text('def start() -> context:\n    user: "Go."\n    return here\n\n'
                    'def more(c: context) -> str:\n    resume c\n    assistant: a = gen(max_tokens=2)\n    return a\n\n'
                    'def whole() -> str:\n    return more(start())\n')
    assert lmc("run", f"{file}:whole", "--dry").returncode == 0
    done = lmc("run", f"{file}:start", "--dry")
    assert done.returncode == 2 and "returns a context" in done.stderr and f"{file}:1:" in done.stderr
    done = lmc("run", f"{file}:more", "--dry", "--c", '"text"')
    assert done.returncode == 2 and "expected a context" in done.stderr


def test_a_run_time_failure_exits_3_with_its_place(path):
    done = lmc("run", f"{path}:fails", "--x", "9", "--dry")
    assert done.returncode == 3 and done.stdout == ""
    assert f"{path}:17:12" in done.stderr and "return [1, 2][x]" in done.stderr and "calls 0" in done.stderr
    assert "Traceback" not in done.stderr


def test_input_reads_lines_and_ends(path):
    assert json.loads(lmc("run", f"{path}:waits", "--dry", stdin="a line\r\n").stdout) == "a line"
    assert json.loads(lmc("run", f"{path}:waits", "--dry", stdin="").stdout) == ""


def test_budgets_and_the_pool_from_the_command_line(path):
    done = lmc("run", f"{path}:endless", "--dry", "--max-tokens", "100")
    assert done.returncode == 3 and "100 tokens, its budget" in done.stderr and "--max-tokens" in done.stderr
    done = lmc("run", f"{path}:judge", "--dry", "--essay", "word " * 100, "--pool-tokens", "50")
    assert done.returncode == 3 and "50" in done.stderr and f"{path}:9:" in done.stderr


def test_compile_errors_exit_1(tmp_path):
    bad = tmp_path / "bad.lmp"
    bad.write_text("def f(x: int) -> str:\n    return y\n")
    for command in (["run", bad, "--dry", "--x", "1"], ["check", bad], ["compile", bad], ["test", bad, "--dry"]):
        done = lmc(*command)
        assert done.returncode == 1 and "error[E0201]" in done.stderr and f"{bad}:2:12" in done.stderr, command


def test_artifacts_run_and_emit_prints(path, tmp_path):
    artifact = tmp_path / "out.lmpc"
    done = lmc("compile", path, "-o", artifact)
    assert done.returncode == 0 and artifact.exists(), done.stderr
    source = lmc("run", f"{path}:judge", "--essay", "hi", "--dry")
    assert lmc("run", f"{artifact}:judge", "--essay", "hi", "--dry").stdout == source.stdout
    assert lmc("run", f"{path}:judge", "--essay", "hi", "--dry", "-O0").stdout == source.stdout
    artifact.write_bytes(artifact.read_bytes()[:-20])
    done = lmc("run", f"{artifact}:judge", "--essay", "hi", "--dry")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "lm.gen" in lmc("compile", path, "--emit-ir").stdout
    assert "lm.gen" in lmc("compile", path, "--emit=program").stdout
    assert "Def" in lmc("compile", path, "--emit=ast").stdout


# ---------------------------------------------------------------------- batch


def test_batch_keeps_order_and_goes_on(path, tmp_path):
    rows, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    rows.write_text('{"x": 0}\n{"x": 9}\n\nnot json\n[1]\n{"y": 1}\n{"x": "two"}\n{"x": 1}\n')
    done = lmc("run", f"{path}:fails", "--batch", rows, "-o", out, "--dry")
    assert done.returncode == 3 and done.stdout == "" and "5 of 7 rows failed" in done.stderr
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert lines[0] == 1 and lines[6] == 2
    assert [line["row"] for line in lines[1:6]] == [2, 4, 5, 6, 7]
    assert lines[1]["error"]["kind"] == "index" and lines[1]["error"]["where"].endswith("program.lmp:17:12")
    assert "`y`" in lines[4]["error"]["message"]
    assert "expected int" in lines[5]["error"]["message"]


def test_batch_rows_share_arguments_and_repeat(path, tmp_path):
    rows = "".join(json.dumps({"essay": f"essay {i}"}) + "\n" for i in range(30))
    one = lmc("run", f"{path}:judge", "--batch", "-", "--dry", "--seed", 4, "--max-items", 9, stdin=rows)
    assert one.returncode == 0 and len(one.stdout.splitlines()) == 30 and "calls 30" in one.stderr
    assert one.stderr.rstrip().endswith("seed 4")
    single = lmc("run", f"{path}:judge", "--dry", "--essay", "essay 17", "--max-items", 9)
    assert json.loads(one.stdout.splitlines()[17]) == json.loads(single.stdout)
    assert lmc("run", f"{path}:judge", "--batch", "-", "--dry", "--seed", 4, "--max-items", 9, stdin=rows).stdout == one.stdout
    done = lmc("run", f"{path}:judge", "--batch", "/no/such", "--dry")
    assert done.returncode == 2 and "cannot be read" in done.stderr


# -------------------------------------------------------------- other commands


def test_check_counts_all_files(path, tmp_path):
    bad = tmp_path / "bad.lmp"
    bad.write_text("def f(x: int) -> str:\n    return y\n\ndef g() -> int:\n    return z\n")
    done = lmc("check", path, bad)
    assert done.returncode == 1 and "2 errors, 3 warnings in 2 files" in done.stderr and done.stdout == ""
    assert lmc("check", path).returncode == 0
    done = lmc("check", tmp_path / "none.lmp")
    assert done.returncode in (1, 2) and "none.lmp" in done.stderr and "Traceback" not in done.stderr


def test_tests_of_a_program(path):
    done = lmc("test", path, "--dry")
    assert done.returncode == 4 and "ok    one is one" in done.stdout and "FAIL  one is two" in done.stdout
    assert 'left is "a"' in done.stdout and "1 passed, 1 failed" in done.stdout
    assert lmc("test", path, "--dry", "--only", "is one").returncode == 0


def test_models_are_listed(tmp_path, monkeypatch):
    monkeypatch.setenv("LMC_CACHE", str(tmp_path))
    done = lmc("models")
    assert done.returncode == 0 and "smollm2-135m-instruct" in done.stdout and "not fetched" in done.stdout


def test_usage_errors_exit_2():
    for args in (["no-such-command"], ["check"], ["compile"], ["run", "x.lmp", "--dtype"], ["models", "pul"]):
        done = lmc(*args)
        assert done.returncode == 2 and "Traceback" not in done.stderr, (args, done.stderr)


def test_an_unknown_model_is_one_diagnostic(path):
    done = lmc("run", f"{path}:judge", "--essay", "hi", "--model", "smollm3")
    assert done.returncode == 2 and "error[E0801]" in done.stderr and "Traceback" not in done.stderr


def test_a_fault_inside_is_no_traceback(path, monkeypatch):
    def broken(*args, **options):
        raise ZeroDivisionError("inside")

    monkeypatch.setattr("lmc.embed.load_program", broken)
    monkeypatch.delenv("LMC_DEBUG", raising=False)
    done = lmc("run", path)
    assert done.returncode == 70 and "inside" in done.stderr and "Traceback" not in done.stderr
    monkeypatch.setenv("LMC_DEBUG", "1")
    done = lmc("run", path)
    assert done.returncode == 70 and "Traceback" in done.stderr


@pytest.mark.parametrize("args", [["--help"], ["check"], ["run", "--help"]])
def test_light_commands_import_nothing_heavy(path, args):
    script = ("import sys\nfrom lmc.cli import main\n"
              "try:\n    main()\nfinally:\n"
              "    print([m for m in ('torch', 'numpy', 'transformers', 'tokenizers', 'asyncio', 'jinja2') if m in sys.modules], file=sys.stderr)")
    done = subprocess.run([sys.executable, "-c", script, *args, *([str(path)] if args == ["check"] else [])], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr.splitlines()[-1] == "[]", done.stderr


# ------------------------------------------------------------------- interrupts


def started(path, name, *more):
    process = subprocess.Popen([sys.executable, "-c", "from lmc.cli import main; main()", "run", f"{path}:{name}", "--dry", *more],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "PYTHONUNBUFFERED": "1"})
    # What is printed goes to standard output where the function returns nothing, else to standard error.
    out = process.stdout if name == "endless" else process.stderr
    assert out.readline() == "started\n"
    return process


@pytest.mark.parametrize("name", ["endless", "spins", "waits"])
def test_ctrl_c_ends_soon(path, name):
    process = started(path, name)
    time.sleep(0.1)
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130 and time.monotonic() - start < 5
    stderr = process.stderr.read()
    assert "interrupted" in stderr and "Traceback" not in stderr


def test_the_second_ctrl_c_ends_at_once(path):
    process = started(path, "endless")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130 and "Traceback" not in process.stderr.read()


def test_ctrl_c_while_loading(path):
    script = ("import time, lmc.runtime.open_session as o\nimport sys\n"
              "def load(**k):\n    print('loading', file=sys.stderr, flush=True)\n    time.sleep(30)\n"
              "o.open_session = load\nfrom lmc.cli import main\nmain()")
    process = subprocess.Popen([sys.executable, "-c", script, "run", f"{path}:endless", "--dry"], stderr=subprocess.PIPE, text=True)
    assert process.stderr.readline() == "loading\n"
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130 and time.monotonic() - start < 5
    assert "Traceback" not in process.stderr.read()


def test_ctrl_c_in_a_blocking_extern(tmp_path):
    file = tmp_path / "p.lmp"
    file.write_text('extern def sleep() -> int\n\ndef f() -> int:\n    print("started")\n    return sleep()\n')
    (tmp_path / "tools.py").write_text("import time\n\ndef sleep():\n    time.sleep(30)\n    return 1\n")
    process = started(file, "f", "--extern", str(tmp_path / "tools.py"))
    time.sleep(0.1)
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130 and time.monotonic() - start < 5


def test_a_closed_pipe_is_quiet(path):
    command = f"{sys.executable} -c 'from lmc.cli import main; main()' run {path}:endless --dry --stream --max-tokens 3000 | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.stdout == "started\n" and "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr
