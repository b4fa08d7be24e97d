"""`lmc test`: cassettes recorded and replayed, without a model; JUnit files."""

import copy
import io
import json
import subprocess
import sys
import xml.etree.ElementTree as xml
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace

import pytest

from lmc.cli.entry import run_command
from lmc.cli.junit import junit_xml
from lmc.cli.test_runs import TestResult as Result
from lmc.cli.test_runs import cassette_name
from lmc.diagnostics import LmcError
from lmc.runtime.cassette import read_cassette
from lmc.runtime.cassette_form import FORM, FormError, check_form
from lmc.runtime.report import Report

PROGRAM = '''
extern def roll(sides: int) -> int
pure extern def shout(text: str) -> str

type Note:
    grade: "A" | "B"
    why: str(max_len=8)

def judge(essay: str) -> Note:
    system: "Be strict."
    user: "Judge ${essay}"
    assistant: n = gen(Note, max_tokens=60)
    return n

def vote(q: str, n: int) -> list[int]:
    user: "${q}"
    fork i in range(n) with temperature=0.9:
        assistant:
            gen(stop=["\\n", "."], max_tokens=12)
            " -> ${a := gen(1..9)}"
    join a as votes
    return votes

def pick(q: str, method: "m" | "g" | "u" = "m") -> str:
    raw:
        "Question: ${q}\\nAnswer: "
        if method == "m":
            a = select(["the man", "the main", "a man"])
        elif method == "g":
            a = select(["the man", "the main", "a man"], method="greedy_token")
        else:
            a = select(["the man", "the main", "a man"], method="unconditional_likelihood_normalized")
        ", and ${b := gen(max_tokens=6, logprobs=2)}"
        s = score([" yes", " no"])
    return "${a}|${b}|${s[0].logprob}|${s[1].logprob}"

def rounds(topic: str) -> str:
    user: "About ${topic} <|im_end|>"
    assistant: x = gen(max_tokens=8)
    user: "More, é 日本 😀."
    assistant: y = gen(max_tokens=8, stream=True)
    return x + "/" + y

def cut(q: str) -> str:
    user: "${q}"
    try:
        assistant: v = gen(list[str(max_len=20)](min_items=9), max_tokens=20)
    except Error as e:
        return e.kind
    return "whole"

test "judge":
    print(judge("it").grade)

test "votes":
    print(json(vote("How many?", 3)))

test "picks":
    print(pick("who"))
    print(pick("who", "g"))
    print(pick("who", "u"))

test "rounds":
    print(rounds("tea"))

test "cut":
    print(cut("names"))

test "dice":
    fork i in range(3):
        one = roll(6)
        two = roll(6)
    join one as ones, two as twos
    print("${lines([str(o) for o in ones])} ${lines([str(t) for t in twos])} ${shout("a")}")
'''

TOOLS = '''
count = 0
def roll(sides):
    global count
    count += 1
    return count
def shout(text):
    return text.upper()
'''


def lmc(*args):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run_command([str(a) for a in args])
    return SimpleNamespace(code=code, out=out.getvalue(), err=err.getvalue())


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "program.lmp"
    file.write_text(PROGRAM)
    (tmp_path / "tools.py").write_text(TOOLS)
    return file


def record(path, *more, text=None):
    if text is not None:
        path.write_text(text)
    (path.parent / "tools.py").write_text(TOOLS)
    return lmc("test", path, "--record", "--dry", "--extern", path.parent / "tools.py", *more)


def small(body):
    """A program with one test."""
    head = "extern def roll(sides: int) -> int\n\ndef ask(q: str) -> str:\n"
    return f'{head}{body}\n    return a\n\ntest "it":\n    print(ask("tea"))\n'


ONE = small('    user: "About ${q}."\n    assistant: a = gen(max_tokens=9)')


def edited(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return lmc("test", path, "--replay")


# --------------------------------------------------------------- round trips


def test_a_replay_prints_what_the_recording_printed_without_model_or_externs(path):
    first = record(path)
    assert first.code == 0, first.out
    again = lmc("test", path, "--replay")
    assert again.code == 0, again.out
    # The same values, streamed text, log-probabilities and error kinds; the same counts in the results.
    assert again.err == first.err and "truncated" in first.err
    counts = [line.split(",")[0] for line in first.out.splitlines()]
    assert [line.split(",")[0] for line in again.out.splitlines()] == counts and "ok    votes   (6 calls" in counts
    assert sorted(p.name for p in path.with_suffix(".cassettes").iterdir()) == sorted(
        cassette_name(f"test:{t}") for t in ("judge", "votes", "picks", "rounds", "cut", "dice"))


def test_recording_twice_with_one_seed_gives_one_file(path, tmp_path):
    for folder in ("a", "b"):
        assert lmc("test", path, f"--record={tmp_path / folder}", "--dry", "--seed", 5, "-k", "votes",
                   "--extern", tmp_path / "tools.py").code == 0
    one, two = (json.loads((tmp_path / f / cassette_name("test:votes")).read_text()) for f in ("a", "b"))
    for data in (one, two):
        for call in data["calls"]:
            del call["answer"]["usage"]  # what the cache held is the machine's business
    assert one == two and one["seed"] == 5


def test_replay_is_the_same_at_both_levels_and_from_an_artifact(path, tmp_path):
    first = record(path)
    assert lmc("test", path, "--replay", "-O0").err == first.err
    assert lmc("compile", path, "-o", tmp_path / "program.lmpc").code == 0
    assert lmc("test", tmp_path / "program.lmpc", "--replay").err == first.err


def test_options_of_the_command_line_are_kept(path):
    first = record(path, "--temperature", "0.9", "-k", "judge")
    assert lmc("test", path, "--replay", "-k", "judge").err == first.err
    other = lmc("test", path, "--replay", "-k", "judge", "--temperature", "0.5")
    assert other.code == 4 and "`temperature` was 0.9, now it is 0.5" in other.out


def test_neither_torch_nor_the_network_nor_a_model_is_touched(path, tmp_path):
    record(path)
    code = ("import socket, sys\n"
            "def refuse(*a, **k): raise AssertionError('network')\n"
            "socket.socket.connect = refuse\n"
            "from lmc.cli.entry import run_command\n"
            f"code = run_command(['test', {str(path)!r}, '--replay'])\n"
            "print(code, 'torch' in sys.modules, 'tokenizers' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
                          env={"LMC_CACHE": str(tmp_path / "nothing"), "PATH": "/usr/bin", "HOME": str(tmp_path)})
    assert done.stdout.endswith("0 False False\n"), done.stdout + done.stderr
    assert not (tmp_path / "nothing").exists()


def test_a_failing_test_is_recorded_and_fails_in_the_same_way(path):
    text = ONE + '    assert ask("tea") == "x", "not x"\n'
    first = record(path, text=text)
    again = lmc("test", path, "--replay")
    assert first.code == again.code == 4 and "E0832" in again.out
    assert first.out.split("seed")[0] == again.out.split("seed")[0] and again.out.endswith("0 passed, 1 failed\n")
    assert first.out == again.out  # the seed of the recorded run is shown, too


# ------------------------------------------------------- what has changed since


def test_a_changed_prompt_is_a_located_error_that_shows_the_difference(path):
    record(path, text=ONE)
    done = edited(path, "About ${q}.", "Tell me of ${q}.")
    assert done.code == 4 and "error[E0861]: the cassette does not hold this request: re-record" in done.out
    assert f"{path}:5:20" in done.out and "recorded: " in done.out
    assert "About tea.<|im_end|>" in done.out and "now:      " in done.out and "Tell me of tea.<|im_end|>" in done.out
    assert "lmc test FILE --record" in done.out


@pytest.mark.parametrize("old, new, says", [
    ("max_tokens=9", "max_tokens=8", "`max_tokens` was 9, now it is 8"),
    ("max_tokens=9", 'max_tokens=9, stop="x"', '`stop` was null, now it is ["x"]'),
    ("max_tokens=9", "max_tokens=9, temperature=0.5", "`seed` was null"),
    ("gen(max_tokens=9)", 'gen(regex="[ab]+", max_tokens=9)', "what the value must match was none, now it is [ab]+"),
    ("a = gen(max_tokens=9)", 'a = select(["x", "y"])', "a `gen` was recorded, now it is a `select`"),
])
def test_each_option_counts(path, old, new, says):
    record(path, text=ONE)
    done = edited(path, old, new)
    assert done.code == 4 and "E0861" in done.out and says in done.out


def test_a_type_that_changed_under_its_name_counts(path):
    record(path, "-k", "judge")
    done = edited(path, 'grade: "A" | "B"', 'grade: "A" | "B" | "C"')
    judged = done.out.split("ok    votes")[0]
    assert done.code == 4 and "what the value must match was" in judged and "with another definition" in judged


def test_options_of_a_choice_count(path):
    record(path, text=small('    raw:\n        "Is it ${q}? "\n        a = select(["tea", "toad"])'))
    assert lmc("test", path, "--replay").code == 0
    done = edited(path, '"toad"', '"toast"')
    assert done.code == 4 and "the options differ" in done.out and "oast" in done.out


def test_moved_code_and_new_calls_do_not_spoil_what_is_recorded(path):
    first = record(path, text=ONE)
    done = edited(path, "def ask", "# a comment\n\ndef other(x: int) -> int:\n    return x\n\ndef ask")
    assert done.code == 0, done.out
    done = edited(path, '    print(ask("tea"))', '    print(ask("tea"))\n    print(ask("tea"))\n    print(ask("milk"))')
    assert done.code == 4 and "About milk" in done.out
    assert done.err == 2 * first.err  # the second `tea` has its answer


def test_try_does_not_catch_what_the_cassette_lacks(path):
    tried = '    try:\n        assistant: a = gen(max_tokens=9)\n    except Error as e:\n        a = "caught"'
    body = f'    a = ""\n    user: "About ${{q}}."\n{tried}'
    record(path, text=small(body))
    done = edited(path, "About", "Of")
    assert done.code == 4 and "E0861" in done.out and "caught" not in done.err


def test_a_missing_cassette_fails_that_test_alone(path):
    record(path)
    (path.with_suffix(".cassettes") / cassette_name("test:judge")).unlink()
    done = lmc("test", path, "--replay")
    assert done.code == 4 and "5 passed, 1 failed" in done.out
    assert "error[E0861]: the test has no cassette: there is no file" in done.out and f"{path}:" in done.out


# -------------------------------------------------------------------- externs


def test_results_of_externs_come_back_in_the_order_of_each_branch(path):
    first = record(path, "-k", "dice")
    assert sorted(first.err.split()) == sorted(["1", "2", "3", "4", "5", "6", "A"])
    assert lmc("test", path, "--replay", "-k", "dice").err == first.err
    data = json.loads((path.with_suffix(".cassettes") / cassette_name("test:dice")).read_text())
    assert len(data["externs"]) == 7 and {"name": "roll", "args": [6]} in [e["ask"] for e in data["externs"]]
    (path.parent / "tools.py").write_text("def roll(sides):\n    raise SystemExit('ran')\ndef shout(text):\n    return 'ran'\n")
    assert lmc("test", path, "--replay", "-k", "dice", "--extern", path.parent / "tools.py").err == first.err


def test_other_arguments_or_more_calls_of_an_extern_are_located_errors(path):
    text = 'extern def roll(sides: int) -> int\n\ntest "it":\n    print(str(roll(6)))\n'
    record(path, text=text)
    done = edited(path, "roll(6)", "roll(7)")
    assert done.code == 4 and "error[E0861]: the cassette does not hold this call of the extern `roll`" in done.out
    assert f"{path}:4:15" in done.out and "recorded: roll(6)" in done.out and "now:      roll(7)" in done.out
    path.write_text(text + "    print(str(roll(6)))\n")
    done = lmc("test", path, "--replay")
    assert done.code == 4 and "the recorded run called it less often" in done.out


def test_an_error_of_an_extern_is_replayed(path):
    tried = '    try:\n        y = bad(1)\n    except Error as e:\n        print(e.kind + ": " + e.message)\n'
    text = f'extern def bad(x: int) -> int\n\ntest "it":\n{tried}'
    path.write_text(text)
    (path.parent / "t.py").write_text("def bad(x):\n    raise ValueError('no luck')\n")
    first = lmc("test", path, "--record", "--dry", "--extern", path.parent / "t.py")
    again = lmc("test", path, "--replay")
    assert first.err == again.err and "extern: the extern `bad` raised ValueError: no luck" in again.err


def test_a_prompt_that_is_too_long_is_an_answer_too(path):
    tried = '    try:\n        print(ask(lines(["word" for i in range(9000)])))\n    except Error as e:\n        print(e.kind)\n'
    first = record(path, text=ONE + tried)
    again = lmc("test", path, "--replay")
    assert (first.code, again.code) == (0, 0) and first.err == again.err and again.err.endswith("context_length\n")


# ---------------------------------------------------------- cancelled branches


RACE = '''
def both() -> str:
    user: "Go."
    fork:
        branch fast:
            user: "."
            assistant: b = gen(max_tokens=2)
            if len(b) < 1000:
                fail("stopped")
        branch slow:
            assistant: a = gen(max_tokens=2000, min_tokens=2000)
    join slow.a as x
    return x

test "it":
    try:
        print(both())
    except Error as e:
        print(e.message)
'''


def test_what_was_cancelled_stays_cancelled(path):
    first = record(path, text=RACE)
    assert (first.code, first.err) == (0, "stopped\n")
    assert lmc("test", path, "--replay").err == "stopped\n"


def test_waiting_for_what_was_cancelled_ends_in_an_error_and_not_never(path):
    record(path, text=RACE)
    done = edited(path, "len(b) < 1000", "len(b) > 1000")
    assert done.code == 4 and "the recorded run ended before it came" in done.out and f"{path}:11:28" in done.out


# ------------------------------------------------------------------- the file


@pytest.fixture(scope="module")
def cassettes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cassettes")
    (folder / "program.lmp").write_text(PROGRAM)
    assert record(folder / "program.lmp").code == 0
    return {p.name: json.loads(p.read_text()) for p in (folder / "program.cassettes").iterdir()}


def test_files_are_of_the_form(cassettes):
    for data in cassettes.values():
        check_form(data, FORM)


def _places(data, place=()):
    """Every place in the data whose value has a type of its own."""
    yield place
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        if key not in ("overrides", "options") and (place[-1:] != ("ask",) or key != "args"):
            yield from _places(value, (*place, key))


@pytest.mark.parametrize("title", ["picks", "dice"])
def test_what_is_damaged_anywhere_is_refused(cassettes, title):
    """Every value replaced by something of another kind; every key taken away."""
    whole = cassettes[cassette_name(f"test:{title}")]
    whole = {**whole, "calls": whole["calls"][:4], "externs": whole["externs"][:1]}
    refused = 0
    for place in list(_places(whole))[1:]:
        damaged = copy.deepcopy(whole)
        *path, last = place
        inner = damaged
        for key in path:
            inner = inner[key]
        if place[-2:] == ("answer", "result"):
            continue  # any JSON; its type is the extern's
        inner[last] = {"odd": 1}
        with pytest.raises(FormError):
            check_form(damaged, FORM)
        refused += 1
        if isinstance(inner, dict) and path[-2:-1] not in (["start"], ["between"]) and path[-1:] not in (["start"], ["between"]):
            del inner[last]
            with pytest.raises(FormError):
                check_form(damaged, FORM)
    assert refused > 30


@pytest.mark.parametrize("damage, says", [
    (lambda text: text[:200], "is no JSON"),
    (lambda text: "[" * 100_000, "is no JSON"),
    (lambda text: '"text"', "is no cassette: expected an object"),
    (lambda text: text.replace('"lmc_cassette": 1', '"lmc_cassette": 2'), "has format 2, this version of lmc reads format 1"),
    (lambda text: text.replace('"finish": "', '"finish": "un'), "at calls[0].answer.finish: expected one of"),
    (lambda text: text.replace('"seed": ', '"more": 1, "seed": '), "the key `more` is not known"),
    (lambda text: text.replace('"<|im_end|>",', ""), "names the control token '<|im_end|>', which it does not list"),
    (lambda text: "\ufeff" + text, "is no JSON"),
])
def test_damaged_files_are_refused_with_a_reason(path, damage, says):
    record(path, text=ONE)
    (file,) = path.with_suffix(".cassettes").iterdir()
    file.write_text(damage(file.read_text()))
    done = lmc("test", path, "--replay")
    assert done.code == 4 and "error[E0862]" in done.out and says in done.out, done.out


def test_a_pickle_in_its_place_is_not_opened(path, tmp_path):
    record(path, text=ONE)
    (file,) = path.with_suffix(".cassettes").iterdir()
    canary = tmp_path / "canary"
    file.write_bytes(b"cos\nsystem\n(S'touch " + str(canary).encode() + b"'\ntR.")
    done = lmc("test", path, "--replay")
    assert done.code == 4 and "E0862" in done.out and not canary.exists()


def test_a_folder_that_cannot_be_written_is_an_error(path, tmp_path):
    (tmp_path / "file").write_text("")
    done = record(path, f"--record={tmp_path / 'file'}", text=ONE)
    assert done.code == 1 and "error[E0862]" in done.err and "cannot be written" in done.err
    assert not list(tmp_path.glob("**/*.part"))


def test_reading_gives_what_was_written(path):
    record(path, text=ONE)
    (file,) = path.with_suffix(".cassettes").iterdir()
    cassette = read_cassette(file)
    assert cassette.test == "it" and len(cassette.calls) == 1 and cassette.calls[0].where == "program.lmp:5:20"
    answer = cassette.calls[0].answer
    assert answer["text"] == answer["context"] and "".join(answer["tokens"]).endswith(answer["text"])


def test_names_of_files():
    assert cassette_name("test:two plus two") == "two-plus-two-" + cassette_name("test:two plus two")[-13:]
    names = {cassette_name(f"test:{t}") for t in ("a b", "a-b", "A b", "日本", "../x", "con", "x" * 500)}
    assert len(names) == 7 and all(len(n) < 80 and "/" not in n and n.endswith(".json") for n in names)


# ---------------------------------------------------------- the command's faces


def test_junit(path, tmp_path):
    text = ONE + '    assert 1 == 2, "odd \\u{1} <&>"\n\ntest "second":\n    assert True\n\ntest "third":\n    assert True\n'
    record(path, "--junit", tmp_path / "a.xml", text=text)
    suite = xml.parse(tmp_path / "a.xml").getroot().find("testsuite")
    assert [suite.get(k) for k in ("name", "tests", "failures", "errors")] == ["program.lmp", "3", "1", "0"]
    first, second, _ = suite
    assert (first.get("name"), first.get("file"), first.get("line")) == ("it", str(path), "8") and float(first.get("time")) >= 0
    assert first.find("failure").get("type") == "E0832" and "odd \\u{1} <&>" in first.find("failure").get("message")
    assert f"{path}:10:5" in first.find("failure").text and first.find("system-out").text.strip()
    assert second.find("failure") is None
    (path.with_suffix(".cassettes") / cassette_name("test:second")).unlink()
    lmc("test", path, "--replay", "--junit", tmp_path / "b.xml")
    cases = xml.parse(tmp_path / "b.xml").getroot().find("testsuite")
    assert cases[1].find("error").get("type") == "E0861" and cases.get("errors") == "1"


def test_junit_holds_any_text():
    text = "".join(map(chr, range(0x300))) + "\ufffe\ud800"
    result = Result(text, None, Report(), text, LmcError.__new__(LmcError))
    result.error.__init__([__import__("lmc.diagnostics").diagnostics.Diagnostic("E0832", text, None)])
    found = xml.fromstring(junit_xml(text, [result]))
    assert "\\u{0}" in found[0][0].get("name") and "\\u{d800}" in found[0][0].find("system-out").text


def test_which_tests_run(path):
    record(path)
    assert lmc("test", path, "--replay", "-k", "PICK").out.count("ok ") == 1
    assert lmc("test", path, "--replay", "--only", "o").out.count("ok ") == 2
    done = lmc("test", path, "--replay", "-k", "zzz")
    assert done.code == 2 and "no test has 'zzz' in its name" in done.err and "votes" in done.err
    path.write_text("def f() -> int:\n    return 1\n")
    done = lmc("test", path, "--junit", path.parent / "none.xml")
    assert done.code == 0 and "has no tests" in done.err and xml.parse(path.parent / "none.xml").getroot().get("tests") == "0"


def test_record_and_replay_exclude_each_other(path):
    done = lmc("test", path, "--record=a", "--replay=b")
    assert done.code == 2 and "exclude each other" in done.err


@pytest.mark.model
def test_the_default_model_is_recorded_and_replayed(path, model_folder):
    """With healing, a tokenizer whose tokens cut characters, and a default system text."""
    first = lmc("test", path, "--record", "--model", model_folder, "--extern", path.parent / "tools.py", "-q")
    assert first.code == 0, first.out
    again = lmc("test", path, "--replay")
    assert (again.code, again.err) == (0, first.err), again.out
