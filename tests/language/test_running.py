"""LANGUAGE.md §6 (top level, budgets, externs) and §8 (Running): what happens around the functions of a program."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace
from unittest.mock import patch

import pytest

import lmc
from lmc.cli.entry import run_command
from lmc.diagnostics import CompileError
from lmc.runtime.instance import Budgets
from tests.language.programs import mistakes, run, said, value, written


def command(verb, folder, text, *args, input=""):
    """A command of `lmc` with a program, on the stand-in model."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), patch("sys.stdin", io.StringIO(input)):
        code = run_command([verb, str(written(text, folder)), "--dry", *args])
    return SimpleNamespace(exit_code=code, stdout=out.getvalue(), stderr=err.getvalue())


def lmc_run(folder, text, *args, input=""):
    return command("run", folder, text, *args, input=input)


# -------------------------------------------------------------------- top level

LIB = '''
LIMIT = 3
type Note:
    text: str
    n: int = LIMIT

def make(text: str) -> Note:
    return {text: text}

part show(note: Note) -> int:
    "[${note.text}]"
    return note.n

def _hidden() -> int:
    return 1
'''


@pytest.mark.parametrize("imports, prefix", [
    ('import "lib/x.lmp" as x', "x."), ('from "lib/x.lmp" import Note, LIMIT, make, show', ""),
    ('from "lib/x.lmp" import Note as N, LIMIT as L, make as m, show as s', None),
])
def test_imports(tmp_path, imports, prefix):
    """`import "lib/x.lmp" as x`, `from "lib/x.lmp" import A, b` (relative to the importing file)."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "x.lmp").write_text(LIB)
    note, limit, make, show = ("N", "L", "m", "s") if prefix is None else (prefix + n for n in ("Note", "LIMIT", "make", "show"))
    text = f'''
{imports}

def main(given: {note}) -> str:
    made = {make}("made")
    built = {note}(text="built", n={limit} + 1)
    user:
        a = {show}(made)
        b = {show}(built)
        "${{a + b}}"
    assistant: c = gen(max_tokens=1)
    match given:
        case {note}(t):
            return t + fields({note})
'''
    ran = run(text, tmp_path, {"text": "given"})
    assert ran.value == "giventext and n" and "user\n[made][built]7<" in ran.prompts[0]


def test_imports_have_no_cycles_and_stay_in_the_project(tmp_path):
    """… no cycles, no path that leaves the project root."""
    (tmp_path / "b.lmp").write_text('import "program.lmp" as p\n\ndef b() -> int:\n    return p.a()\n')
    text = 'import "b.lmp" as b\n\ndef a() -> int:\n    return b.b()\n'
    with pytest.raises(CompileError) as caught:
        lmc.load(written(text, tmp_path))
    (found,) = caught.value.diagnostics
    assert found.code == "E0206" and "b.lmp" in str(found) and "program.lmp" in str(found)
    assert len(mistakes('import "../other.lmp" as o\n', tmp_path)) == 1


def test_constants_types_and_items_in_any_order(tmp_path):
    """Constants, `type`, `def`, `part`: items stand in any order."""
    text = '''
    def main(n: int = SIZE, name: str = GREETING + "!") -> list[str]:
        return [name, "${n + DOUBLE}", NAMES[1], json(DEFAULT), json(TABLE)]

    TABLE = {"a": [1, SIZE]}
    DEFAULT = Point(x=SIZE)
    NAMES = [GREETING, GREETING.upper()]
    DOUBLE = SIZE * 2
    GREETING = "hi"
    SIZE = len("four")
    type Point:
        x: int
        y: Pair = {a: 1}
    type Pair:
        a: int
        b: int = SIZE
    '''
    for level in (0, 1):
        assert value(text, tmp_path, level=level) == ("hi!", "12", "HI", '{"x":4,"y":{"a":1,"b":4}}', '{"a":[1,4]}')


def test_a_docstring_may_stand_first(tmp_path):
    """A docstring may stand first in `type`, `def`, `part`, and as the body of `extern`. In a text part a first string is text."""
    text = '''
    type Note:
        """A note."""
        n: int

    extern def get(n: int) -> int:
        """Gets."""

    part turn():
        """A part with turns."""
        user: "u"

    part words():
        "first "
        "second"

    def main() -> str:
        """Says."""
        turn()
        user: words()
        assistant: x = gen(max_tokens=1)
        return schema(Note)
    '''
    ran = run(text, tmp_path, externs={"get": abs})
    assert "user\nufirst second<" in ran.prompts[0] and '"description":"A note."' in ran.value
    with lmc.load(written(text, tmp_path), dry=True, externs={"get": abs}) as m:
        assert "Says." in m.main.__doc__


def test_config_has_defaults_for_model_and_sampling(tmp_path):
    """`config:` with defaults for `model` and sampling options."""
    text = '''
    config:
        model = "other-model"
        temperature = 0.5
        max_tokens = 7
        seed = 11
        top_k = 3
        heal = False

    def main() -> str:
        raw: "q ${x := gen()}"
        return x
    '''
    ran = run(text, tmp_path, seed=None)
    (request,) = ran.requests
    assert (request.max_tokens, request.sampling.temperature, request.sampling.top_k, request.heal) == (7, 0.5, 3, b"")
    assert ran.report.seed == 11 and run(text, tmp_path, seed=4).report.seed == 4
    with lmc.load(written(text, tmp_path)) as m:
        with pytest.raises(lmc.LmcError) as caught:
            m.main()
    assert "other-model" in str(caught.value), "the model of `config` is the one that is asked for"
    assert len(mistakes("config:\n    temprature = 1.0\n", tmp_path)) == 1 and "temperature" in said("config:\n    temprature = 1.0\n", tmp_path)
    assert len(mistakes('config:\n    regex = "a"\n', tmp_path)) == 1, "a constraint is no default"


@pytest.mark.parametrize("option", ["stop", "logit_bias", "logprobs", "ignore_eos"])
def test_config_knows_every_sampling_option(tmp_path, option):
    """… all of them."""
    written_as = {"stop": '["!"]', "logit_bias": "{97: 5.0}", "logprobs": "2", "ignore_eos": "True"}[option]
    text = f'config:\n    {option} = {written_as}\n\ndef main() -> str:\n    raw: "q ${{x := gen(max_tokens=4, heal=False)}}"\n    return x\n'
    (request,) = run(text, tmp_path).requests
    found = {"stop": request.stops, "logit_bias": request.sampling.logit_bias, "logprobs": request.logprobs, "ignore_eos": request.ignore_eos}
    assert found[option] == {"stop": ("!",), "logit_bias": ((97, 5.0),), "logprobs": 2, "ignore_eos": True}[option]


def test_parameters_and_results_are_typed(tmp_path):
    """Parameters and results are typed: the signature is at once the CLI, the JSON schema, the tool schema and the Python stub."""
    assert len(mistakes("def main(x):\n    pass\n", tmp_path)) == 1
    text = '''
    type Note:
        n: 1..3

    def main(note: Note, words: list[str] = ["a"], loud: bool = False, name: str = "n") -> str:
        return "${note.n} ${len(words)} ${loud} ${name}"
    '''
    done = lmc_run(tmp_path, text, "--note", '{"n": 2}', "--loud", "true", "--words", '["x", "y"]', "--name", "[1]")
    assert (done.exit_code, json.loads(done.stdout)) == (0, "2 2 true [1]")
    assert lmc_run(tmp_path, text, "--note", '{"n": 7}').exit_code == 2


# ---------------------------------------------------------------------- running


def test_the_entry_is_main_or_the_only_public_function(tmp_path):
    """Entry: `main`, else the only public `def`, else exit 2 with the list."""
    assert json.loads(lmc_run(tmp_path, "def other() -> int:\n    return 1\n\ndef main() -> int:\n    return 2\n").stdout) == 2
    assert json.loads(lmc_run(tmp_path, "def _h() -> int:\n    return 1\n\ndef only() -> int:\n    return _h()\n").stdout) == 1
    two = lmc_run(tmp_path, "def a() -> int:\n    return 1\n\ndef b() -> int:\n    return 2\n")
    assert two.exit_code == 2 and "a" in two.stderr and "b" in two.stderr and two.stdout == ""


def test_print_and_stream_go_to_stderr_or_stdout(tmp_path):
    """`gen(stream=True)` and `print` write to stderr, or to stdout when the function returns nothing (then no JSON is printed)."""
    body = '    print("seen")\n    user: "q"\n    assistant: x = gen(max_tokens=4, stream=True)\n'
    returns = lmc_run(tmp_path, f"def main() -> int:\n{body}    return len(x)\n")
    assert returns.stdout.strip().isdigit() and "seen" in returns.stderr
    nothing = lmc_run(tmp_path, f"def main():\n{body}")
    assert nothing.stdout.startswith("seen\n") and len(nothing.stdout) > 6 and "seen" not in nothing.stderr


def test_input_at_end_of_file(tmp_path):
    """`input` at end of file gives `""`; in batches, servers and tests it is an error unless the host passes a function."""
    text = 'def main() -> str:\n    a = input("> ")\n    b = input("> ")\n    return "${a}|${b}"\n'
    assert json.loads(lmc_run(tmp_path, text, input="line\n").stdout) == "line|"
    error = run(text, tmp_path, ask=None).error
    assert error.kind == "input" and error.diagnostics[0].span.line == 2
    with lmc.load(written(text, tmp_path), dry=True) as m:
        assert [type(r).__name__ for r in m.main.batch([{}], errors="return")] == ["RunError"]


@pytest.mark.parametrize("limits, name, place, words", [
    ({"calls": 3}, "asks", 4, "in round 4 of the loop at {folder}/program.lmp:2:5"), ({"tokens": 5}, "asks", 4, "in round 3 of the loop at"),
    ({"iterations": 40}, "spins", 10, "the loop at {folder}/program.lmp:10:13 goes on"),
    ({"iterations": 40}, "over", 16, "the loop at {folder}/program.lmp:16:5 goes on"), ({"depth": 5}, "down", 21, "`down` would be called"),
])
def test_budgets_end_loops_and_recursion_with_a_located_error(tmp_path, limits, name, place, words):
    """Loops and recursion run under budgets; going over one is an error that names the loop."""
    text = '''
    def asks():
        for i in range(1000):
            user: "q"
            assistant: gen(max_tokens=2, min_tokens=2)

    def spins() -> int:
        n = 0
        while True:
            if n >= 0:
                while n < 9999:
                    n += 1
        return n

    def over() -> int:
        n = 0
        for i in range(100):
            n += 1
        return n

    def down(n: int = 0) -> int:
        return down(n + 1)
    '''
    error = run(text, tmp_path, name=name, budgets=Budgets(**limits)).error
    (found,) = error.diagnostics
    assert error.kind == "budget" and found.code == "E0838"
    told = f"{found.message} {' '.join(found.notes)}"
    assert found.span.line == place and words.format(folder=tmp_path) in told
    if name == "spins":
        assert "in round 1 of the loop at" in told, "and the one around it"


def test_default_budgets():
    """Default budgets: 1,000 calls, 200,000 generated tokens, recursion 100, 100,000 loop iterations without a call."""
    assert Budgets() == Budgets(calls=1_000, tokens=200_000, depth=100, iterations=100_000)


def test_a_prompt_longer_than_the_context(tmp_path):
    """A prompt longer than the model's context is a located error with the numbers, never truncation."""
    text = 'def main(x: str) -> str:\n    user: "${x}"\n    assistant: a = gen()\n    return a\n'
    error = run(text, tmp_path, "word " * 9000).error
    assert error.diagnostics[0].code in ("E0837", "E0819") and error.diagnostics[0].span.line == 3
    assert any(part.replace(",", "").isdigit() for part in error.diagnostics[0].message.split())


def test_a_seed_is_the_programs(tmp_path):
    """The program seed is drawn at random unless given, printed in the summary and kept in the report."""
    text = 'def main() -> str:\n    user: "q"\n    assistant: a = gen(max_tokens=8, temperature=1.0)\n    return a\n'
    first = lmc_run(tmp_path, text)
    seed = first.stderr.rpartition("seed ")[2].strip().split()[0]
    assert lmc_run(tmp_path, text, "--seed", seed).stdout == first.stdout


def test_externs_are_bound_by_the_host(tmp_path):
    """An `extern` is only declared here. Python is bound by the host: `lmc run … --extern tools.py` or `lmc.load(…, externs={…})`."""
    text = 'extern def add(a: int, b: int = 2) -> int\n\ndef main(a: int) -> int:\n    return add(a) + add(b=1, a=a)\n'
    (tmp_path / "tools.py").write_text("def add(a, b):\n    return a + b\n")
    assert lmc_run(tmp_path, text, "--a", "5", "--extern", str(tmp_path / "tools.py")).stdout.strip() == "13"
    with lmc.load(written(text, tmp_path), dry=True, externs={"add": lambda a, b: a + b}) as m:
        assert m.main(5) == 13
    with pytest.raises(lmc.LmcError):
        lmc.load(written(text, tmp_path), dry=True)


def test_tests_are_functions_of_their_own(tmp_path):
    """`test "name":`."""
    text = 'def two() -> int:\n    return 2\n\ntest "fine":\n    assert two() == 2\n\ntest "wrong":\n    assert two() == 3, "no"\n'
    done = command("test", tmp_path, text)
    assert done.exit_code == 4 and "fine" in done.stdout and "left is 2" in done.stdout + done.stderr


def test_a_test_may_fork_outside_any_conversation(tmp_path):
    """As a function may: the branches begin empty."""
    text = 'test "forks":\n    fork i in range(3):\n        k = i * i\n    join k as ks\n    assert ks == [0, 1, 4]\n'
    assert command("test", tmp_path, text).exit_code == 0


# ------------------------------------------------------------------------ parts


def test_options_of_a_fork_reach_parts_through_parts(tmp_path):
    """`with` options are defaults for the `gen`s in its block and its parts, not in called functions."""
    text = '''
    part word() -> str:
        w = gen()
        return w

    part say(q: str) -> str:
        user: "${q}"
        assistant:
            "So "
            w = word()
        return w

    def own(q: str) -> str:
        w = say(q)
        return w

    def main(n: int) -> list[str]:
        w = say("plain")
        fork i in range(n) with max_tokens=i_max(n), stop=["!", "?"], temperature=0.5:
            a = say("${i}")
            fork:
                branch inner:
                    b = say("inner")
            join inner.b
            c = own("own")
        join a, b, c
        return [w] + a + b + c

    def i_max(n: int) -> int:
        return n + 2
    '''
    ran = run(text, tmp_path, 1)
    found = {spelled.rsplit("user\n", 1)[1].split("<")[0]: (r.max_tokens, r.stops, r.sampling.temperature)
             for spelled, r in zip(ran.prompts, ran.requests)}
    with_options = (3, ("!", "?"), 0.5)
    assert found == {"plain": (256, (), 0.0), "0": with_options, "inner": with_options, "own": (256, (), 0.0)}


def test_recursive_types_are_refused_at_their_place(tmp_path):
    """What this version does not execute: a type that contains itself."""
    text = "type Node:\n    below: list[Node]\n"
    assert mistakes(text, tmp_path) == [("E0901", 2)]


def test_types_read_as_they_are_written(tmp_path):
    """A message says what was found and what was expected, in the user's words. (STYLE)"""
    text = "type N:\n    a: int\n\ndef main(xs: list[1..3 | None], d: dict[str, N], c: N | Error = N(a=1)) -> str | None:\n    return json(xs) + json(d) + json(c)\n"
    done = lmc_run(tmp_path, text, "--xs", "[9]", "--d", "{}")
    assert done.exit_code == 2 and "expected 1..3, found 9" in done.stderr
    assert "main(xs: list[1..3 | None], d: dict[str, N], c: N | Error = " in done.stderr and "-> str | None" in done.stderr
