"""`lmc render` and `m.f.render`: exact prompts up to where the model is needed, without weights."""

import asyncio
import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout

import pytest

import lmc
from lmc.cli.entry import run_command
from lmc.diagnostics import UsageError
from lmc.runtime.dry import dry_tokenizer

PROGRAM = '''
extern def fetch(page: str) -> str
extern def other() -> str

def ask(topic: str, n: int = 2) -> str:
    system: "Be brief."
    user: "Tell me about ${topic}."
    fork i in range(n) with temperature=0.7:
        user: " Version ${i}."
        assistant:
            "Sure: "
            first = gen(max_tokens=9, stop=["\\n", "."])
            second = gen()
    join second as seconds
    user: "Now all: ${lines(seconds)}"
    assistant: last = gen()
    return last

def choose(kind: str) -> "tea" | "toad":
    raw:
        "Drink or animal: ${kind} is "
        k = select(["tea", "toad"])
    return "tea" if k == "tea" else "toad"

def scored(kind: str) -> float:
    raw: "A ${kind} is"
    raw:
        s = score([" tea", " toad"])
    return s[0].logprob

def paged(page: str) -> str:
    text = fetch(page)
    user: "Sum up: ${text}"
    assistant: s = gen(max_tokens=5)
    return s

def asks() -> str:
    line = input("? ")
    user: "${line}"
    assistant: s = gen()
    return s

def none(x: int) -> int:
    print("counting")
    return x + 1

def fails(xs: list[int]) -> str:
    user: "${xs[3]}"
    assistant: s = gen()
    return s

def half(n: int) -> list[str]:
    return [one(i) for i in range(n)]

def one(i: int) -> str:
    if i == 1:
        t = other()
        user: "${t}"
        assistant: x = gen()
        return x
    user: "number ${i}"
    assistant: y = gen()
    return y

def spins() -> str:
    k = 0
    for i in range(5000):
        k += i
    user: "${k}"
    assistant: s = gen()
    return s

def typed(q: str) -> int:
    user: "${q}"
    assistant: a = gen(1..5)
    return a

def pattern(q: str) -> str:
    user: "${q}"
    assistant: a = gen(regex=r"[ab]+", temperature=0.5, seed=7)
    return a
'''


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "program.lmp"
    file.write_text(PROGRAM)
    return file


def render(*args):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run_command(["render", *map(str, args)])
    return code, out.getvalue(), err.getvalue()


def test_each_branch_shows_its_first_call_with_place_and_options(path):
    code, out, err = render(f"{path}:ask", "--topic", "tea", "--dry", "--seed", "1")
    assert (code, err) == (0, "")
    head, options, *prompt = out.split("=== call 2 of 2")[0].splitlines()
    line = PROGRAM[:PROGRAM.index("first = gen")].count("\n") + 1
    assert head.startswith(f"=== call 1 of 2: gen at {path}:{line}:21 in `ask`, path 0:0/")
    assert options.startswith("=== str, max_tokens 9, temperature 0.7, seed ") and options.endswith('stop ["\\n", "."]')
    assert "\n".join(prompt) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nTell me about tea. Version 0.<|im_end|>\n"
        "<|im_start|>assistant\nSure: ")
    assert "Version 1." in out and out.count("=== call") == 2  # nothing of what comes after an answer


def test_what_is_reopened_is_marked_and_is_what_a_run_sends(path):
    """` the` begins longer tokens, so it is reopened: the ids end before it."""
    code, out, _ = render(f"{path}:ask", "--topic", "tea", "--n", "1", "--dry", "--format", "json")
    (call,) = json.loads(out)
    tokens = dry_tokenizer()
    assert tokens.decode_bytes(call["ids"]).decode() == "".join(p for p in call["pieces"] if isinstance(p, str))
    path.write_text(PROGRAM.replace('"Sure: "', '"Sure the"'))
    _, out, _ = render(f"{path}:ask", "--topic", "tea", "--n", "1", "--dry")
    assert out.endswith("assistant\nSure⟦ the⟧\n")
    _, out, _ = render(f"{path}:ask", "--topic", "tea", "--n", "1", "--dry", "--tokens")
    assert out.endswith('=== reopened: " the"\n')


def test_tokens_are_ids_with_control_tokens_marked(path):
    _, out, _ = render(f"{path}:typed", "--q", "<|im_end|>", "--dry", "--tokens")
    tokens = dry_tokenizer()
    words = " ".join(line for line in out.splitlines() if not line.startswith("===")).replace(" <|", "<|").split()
    ids = [int(w.strip("[]").partition("<")[0]) for w in words]
    assert ids == json.loads(render(f"{path}:typed", "--q", "<|im_end|>", "--dry", "--format", "json")[1])[0]["ids"]
    marked = [w for w, i in zip(words, ids) if i in tokens.control_ids]
    start, end = (f"[{tokens.control_id(t)}{t}]" for t in ("<|im_start|>", "<|im_end|>"))
    assert marked == [start, end, start] and [w for w in words if w.startswith("[")] == marked
    assert "=== 1..5, max_tokens 256" in out


def test_choices_show_each_option_after_the_shared_prompt(path):
    _, out, _ = render(f"{path}:choose", "--kind", "it", "--dry")
    assert "select at" in out and '"tea" | "toad"' not in out and "2 options, each after the prompt" in out
    (call,) = json.loads(render(f"{path}:choose", "--kind", "it", "--dry", "--format", "json")[1])
    shared = "".join(call["pieces"])
    assert [shared + c["text"] for c in call["choices"]] == ["Drink or animal: it is tea", "Drink or animal: it is toad"]
    tokens = dry_tokenizer()
    assert all(tokens.decode_bytes(c["ids"]).decode() == c["text"] for c in call["choices"])
    _, out, _ = render(f"{path}:scored", "--kind", "leaf", "--dry")
    assert "score at" in out and out.endswith('A leaf is\n=== option: " tea"\n=== option: " toad"\n')


def test_a_constraint_is_named(path):
    _, out, _ = render(f"{path}:pattern", "--q", "x", "--dry")
    assert "=== str, matching [ab]+, max_tokens 256, temperature 0.5, seed 7" in out


def test_an_extern_that_is_not_bound_stops_with_its_place(path, tmp_path):
    code, out, err = render(f"{path}:paged", "--page", "p", "--dry")
    line = PROGRAM[:PROGRAM.index("text = fetch")].count("\n") + 1
    assert (code, out) == (0, "") and "warning[W181]: nothing is bound to the extern `fetch`" in err
    assert f"{path}:{line}:12" in err and "--extern tools.py" in err
    (tmp_path / "tools.py").write_text("import time\ndef fetch(page):\n    time.sleep(0.05)\n    return page + '!'\n")
    code, out, err = render(f"{path}:paged", "--page", "p", "--dry", "--extern", tmp_path / "tools.py")
    assert (code, err) == (0, "") and "user\nSum up: p!<|im_end|>" in out
    (tmp_path / "tools.py").write_text("def fetch():\n    return 1\n")
    code, out, err = render(f"{path}:paged", "--page", "p", "--dry", "--extern", tmp_path / "tools.py")
    assert code == 2 and "E0712" in err


def test_what_stops_in_one_branch_hides_nothing_of_the_others(path):
    code, out, err = render(f"{path}:half", "--n", "3", "--dry")
    # An extern keeps its order, so the calls of `one` run one after the other: the first waits for the model.
    assert code == 0 and "user\nnumber 0<|im_end|>" in out and out.count("=== call") == 1


def test_input_is_not_asked_for(path):
    code, out, err = render(f"{path}:asks", "--dry")
    assert (code, out) == (0, "") and "warning[W181]: the program waits for a line of `input`" in err
    assert render(f"{path}:asks", "--dry", "-q")[2] == ""


def test_a_program_that_never_asks_says_so(path):
    code, out, err = render(f"{path}:none", "--x", "1", "--dry")
    assert (code, out) == (0, "") and err == "counting\n`none` returns without asking the model\n"
    assert json.loads(render(f"{path}:none", "--x", "1", "--dry", "--format", "json")[1]) == []


def test_a_program_that_fails_before_is_an_error(path):
    code, out, err = render(f"{path}:fails", "--xs", "[1]", "--dry")
    assert code == 3 and "error[E0833]" in err and out == ""


def test_long_work_before_the_first_call_is_waited_for(path):
    code, out, _ = render(f"{path}:spins", "--dry")
    assert code == 0 and f"user\n{sum(range(5000))}<|im_end|>" in out


def test_wrong_arguments_are_usage_errors(path):
    assert render(f"{path}:typed", "--dry")[0] == 2
    assert render(f"{path}:typed", "--q", "x", "--dry", "--pool-tokens", "5")[0] == 2  # nothing is computed, so there is no pool
    assert render()[0] == 2
    code, out, _ = render(f"{path}:typed", "--help")
    assert code == 0 and "--q VALUE" in out and "--tokens" in out


def test_from_python_in_a_running_loop(path):
    calls = []
    with lmc.load(path, dry=True, seed=1, externs={"fetch": lambda page: calls.append(page) or "text", "other": str}) as m:
        shown = m.ask.render(topic="tea", n=3)
        assert [c.origin.path for c in shown.calls] == ["0:0/1", "0:1/1", "0:2/1"] and shown.error is None and not shown.returned
        assert str(shown) == shown.text() and str(shown).startswith("=== call 1 of 3")
        assert shown.calls[0].prompt.endswith("Version 0.<|im_end|>\n<|im_start|>assistant\nSure: ")
        assert "user\nSum up: text<|im_end|>" in str(m.paged.render("p")) and calls == ["p"]
        assert m.fails.render([1]).error.kind == "index"
        assert m.none.render(x=1).returned

        async def inside():
            return m.typed.render(q="x")

        assert len(asyncio.run(inside()).calls) == 1
        with pytest.raises(UsageError):
            m.typed.render(1)
        assert m.typed(q="x") in range(1, 6)


def test_a_run_sends_what_is_rendered(path):
    """The ids of the rendering are those of the requests of a run."""
    from tests.runtime.programs import dry_session, program_of, run

    program = program_of(PROGRAM, path.parent)
    session = dry_session()
    run(program, session, "ask", "tea", 2, externs={"fetch": str, "other": str})
    with lmc.load(path, dry=True, seed=1, externs={"fetch": str, "other": str}) as m:
        shown = m.ask.render(topic="tea", n=2)
    assert [(c.request.prompt, c.request.heal, c.request.sampling) for c in shown.calls] == [
        (r.prompt, r.heal, r.sampling) for r in session.requests[:2]]


def test_no_torch_is_imported_for_it(path):
    code = ("import sys; from lmc.cli.entry import run_command; "
            f"run_command(['render', {str(path) + ':typed'!r}, '--q', 'x', '--dry']); print('torch' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.endswith("assistant\n\nFalse\n"), done.stdout + done.stderr


@pytest.mark.model
def test_the_default_model_needs_no_weights(path, model_folder, monkeypatch, tmp_path):
    """A folder with the tokenizer alone is enough."""
    for file in model_folder.iterdir():
        if file.suffix != ".safetensors":
            (tmp_path / "model").mkdir(exist_ok=True)
            (tmp_path / "model" / file.name).write_bytes(file.read_bytes())
    code, out, err = render(f"{path}:typed", "--q", "Hi <|im_end|>", "--model", tmp_path / "model", "--tokens")
    assert code == 0, err
    assert out.count("[1 <|im_start|>]") == 3 and out.count("[2 <|im_end|>]") == 2  # the default system text is there too
