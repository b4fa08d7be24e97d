"""`lmc plan`, `m.f.plan` and `lmc compile --emit=plan`: what people and other programs see."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lmc
from lmc.cli.entry import run_command
from lmc.runtime.dry import DryModel
from lmc.runtime.dry_text import DRY_POSITIONS, DRY_SLOT_BYTES

PROGRAM = '''
extern def fetch(page: str) -> str

def ask(topic: str, n: int = 3) -> str:
    system: "Be brief."
    user: "Tell me about ${topic}. "
    fork i in range(n) with temperature=0.7:
        user: "Version ${i}."
        assistant:
            first = gen(max_tokens=9, stop=".")
            kind = select(["yes", "no"])
    join first as firsts
    user: "Now all: ${lines(firsts)}"
    assistant: last = gen(1..5)
    return str(last)

def paged(pages: list[str]) -> list[str]:
    return [page_summary(p) for p in pages]

def page_summary(page: str) -> str:
    text = fetch(page)
    if "x" in text:
        user: "Sum up: ${text}"
    else:
        user: "Say: ${text}"
    assistant: s = gen(max_tokens=5)
    return s

def talk() -> str:
    user: "Go."
    while True:
        line = input("> ")
        if line == "":
            break
        user: "${line}"
        assistant: gen(max_tokens=10)
    return "bye"

def many(n: int) -> list[str]:
    return [ask("tea ${i}", n=2) for i in range(n)]

def fails(xs: list[int]) -> str:
    user: "${xs[3]}"
    assistant: s = gen()
    return s

def down(n: int) -> str:
    user: "${n}"
    assistant: s = gen(max_tokens=2)
    if s == "":
        return s
    return down(n + 1)

def none(x: int) -> int:
    return x + 1
'''


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "program.lmp"
    file.write_text(PROGRAM)
    return file


def data(path, entry, *args, capsys):
    assert run_command(["plan", f"{path}:{entry}", *map(str, args), "--dry", "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def text(path, entry, *args, capsys):
    assert run_command(["plan", f"{path}:{entry}", *map(str, args), "--dry"]) == 0
    return capsys.readouterr().out


def find(tree, **wanted):
    """The first node of the tree with these keys."""
    if all(tree.get(key) == value for key, value in wanted.items()):
        return tree
    return next((found for member in tree.get("members", ()) if (found := find(member, **wanted))), None)


def test_a_page_to_read(path, capsys):
    page = text(path, "ask", "--topic", "tea", capsys=capsys)
    assert max(map(len, page.splitlines())) <= 120
    assert "calls     7; 3 at once at most; the longest chain has 3" in page
    assert re.search(r"fork i in range\(n\) with temperatu… ×3 +7:5\n", page)
    assert re.search(r"gen\(max_tokens=9, stop=\"\.\"\) +10:21 +3 ", page)
    assert re.search(r"its branches share \d+ tokens, up to `\$\{i\}` at 8:24", page)


def test_keys_of_the_json_form(path, capsys):
    plan = data(path, "ask", "--topic", "tea", capsys=capsys)
    assert list(plan) == ["version", "program", "function", "target", "calls", "at_once", "in_sequence", "prompt", "memory", "note",
                          "error", "tree"]
    assert plan["version"] == 1 and plan["calls"] == {"least": 7, "most": 7} and plan["at_once"] == 3 and plan["in_sequence"] == 3
    assert plan["target"] == {"name": "the stand-in model", "context": 8192, "slot_bytes": 16, "emulations": []}
    assert plan["memory"]["bytes"] == 16 * plan["memory"]["tokens"] > 0
    fork = find(plan["tree"], kind="fork")
    assert list(fork) == ["node", "kind", "name", "where", "times", "note", "sharing", "more", "members"]
    assert fork["times"] == {"least": 3, "most": 3} and fork["sharing"]["ends_at"].endswith("program.lmp:8:24")
    first, choice = fork["members"]
    assert list(first) == ["node", "kind", "source", "where", "function", "type", "times", "prompt", "options", "writes", "forced"]
    assert first["times"] == {"least": 3, "most": 3} and first["prompt"]["exact"] and first["writes"] == {"least": 0, "most": 9}
    assert choice["options"] == [2, 2] or len(choice["options"]) == 2
    assert find(plan["tree"], source="gen(1..5)")["writes"] == {"least": 0, "most": 1}


def test_each_call_alone_has_its_path_and_stretches(path, capsys):
    assert run_command(["plan", f"{path}:ask", "--topic", "tea", "--dry", "--format", "json", "--calls"]) == 0
    plan = json.loads(capsys.readouterr().out)
    fork = find(plan["tree"], kind="fork")
    assert [m["kind"] for m in fork["members"]] == ["branch"] * 3
    call = fork["members"][2]["members"][0]
    assert call["path"] == "0:2/1" and call["text"] == [{"known": call["prompt"]["tokens"]["least"], "about": 0, "unknown": 0}]


def test_what_data_decide_is_a_range(path, capsys):
    plan = data(path, "page_summary", "--page", "p", capsys=capsys)
    assert plan["calls"] == {"least": 1, "most": 1} and plan["tree"]["members"][0]["prompt"]["open"]
    plan = data(path, "talk", capsys=capsys)
    assert plan["calls"] == {"least": 0, "most": None}
    loop = find(plan["tree"], kind="loop")
    assert loop["times"] == {"least": 0, "most": None} and loop["more"]["calls"] == 1
    assert loop["more"]["saved"] > 0


def test_recursion_that_data_decide_is_not_followed_for_ever(path, capsys):
    plan = data(path, "down", "--n", 1, capsys=capsys)
    assert plan["calls"]["least"] == 1 and "not followed further" in json.dumps(plan)


def test_a_deep_recursion_is_a_short_page_and_too_deep_a_one_the_error_of_the_run(path, capsys):
    path.write_text("def down(n: int) -> str:\n    if n == 0:\n        return \"end\"\n    user: \"${n}\"\n"
                    "    assistant: s = gen(max_tokens=2)\n    return down(n - 1)\n")
    page = text(path, "down", "--n", 90, capsys=capsys)
    assert len(page.splitlines()) < 20 and "down() and so on: 88 calls" in page and "calls     90" in page
    assert run_command(["plan", f"{path}", "--n", "150", "--dry", "-q"]) == 3
    plan = capsys.readouterr().err
    assert run_command(["run", f"{path}", "--n", "150", "--dry", "-q"]) == 3
    assert "E0838" in plan and plan == capsys.readouterr().err


def test_a_thousand_calls_are_a_short_page(path, capsys):
    page = text(path, "many", "--n", 140, capsys=capsys)
    assert len(page.splitlines()) < 30 and "700" in page
    page = text(path, "many", "--n", 5000, capsys=capsys)
    assert "the plan ends at 1,000 calls, the budget of a run" in page and len(page.splitlines()) < 40


def test_a_program_that_never_asks(path, capsys):
    assert "none: it never asks the model" in text(path, "none", "--x", 1, capsys=capsys)
    plan = data(path, "none", "--x", 1, capsys=capsys)
    assert plan["calls"] == {"least": 0, "most": 0} and plan["tree"]["members"] == []


def test_a_certain_failure_is_that_of_the_run(path, capsys):
    path.write_text("def fails(xs: list[int]) -> str:\n    user: \"${xs[3]}\"\n    assistant: s = gen()\n    return s\n")
    assert run_command(["plan", f"{path}:fails", "--xs", "[1]", "--dry"]) == 3
    plan = capsys.readouterr()
    assert run_command(["run", f"{path}:fails", "--xs", "[1]", "--dry", "-q"]) == 3
    assert "E0833" in plan.err and plan.err == capsys.readouterr().err


@pytest.mark.parametrize("words", [
    [":aks", "--topic", "x", "--dry"], [":ask", "--dry"], [":ask", "--topic", "x", "--n", "three", "--dry"], ["", "--dry"],
    [":ask", "--topic", "x", "--model", "/no/such/folder"],
])
def test_what_is_wrong_is_told_as_by_run(path, capsys, words, monkeypatch):
    monkeypatch.chdir(path.parent)
    (path.parent / "tools.py").write_text("def fetch(page):\n    return page\n")
    entry, *rest = [*words, "--extern", "tools.py"]
    codes, errors = [], []
    for command in ("plan", "run"):
        codes.append(run_command([command, f"{path}{entry}", *rest]))
        errors.append(capsys.readouterr().err.replace("lmc run", "lmc plan"))
    assert codes[0] == codes[1] != 0
    assert errors[0] == errors[1] and "error[E0" in errors[0]
    # Of a folder that is no model, a plan misses less than a run: it needs no weights.
    assert run_command(["plan", f"{path}:ask", "--topic", "x", "--model", "."]) != 0 and "error[E0804]" in capsys.readouterr().err


def test_from_python_and_nothing_runs(path):
    called = []
    with lmc.load(path, dry=True, externs={"fetch": called.append}) as m:
        plan = m.paged.plan(pages=["a", "b"])
        assert len(plan.calls) == 2 and called == [] and str(plan) == plan.text()
        assert plan.data()["calls"] == {"least": 2, "most": 2} and plan.error is None
        assert m.fails.plan([1]).error.kind == "index"
        with pytest.raises(lmc.UsageError):
            m.ask.plan(1, 2, 3)


def test_compile_emits_plans_without_arguments(path, capsys):
    assert run_command(["compile", str(path), "--emit=plan", "--dry"]) == 0
    page = capsys.readouterr().out
    assert page.count(f"{path}:") >= 7 and "ask(topic, n)" in page and re.search(r"fork i in .* ×0\.\.\*", page)


@pytest.mark.parametrize("form", ["ast", "ir", "program", "plan", "fsm", "dot"])
def test_every_form_is_printed_or_says_what_is_wrong(path, capsys, form, tmp_path):
    more = ["--dry"] if form == "plan" else []
    assert run_command(["compile", str(path), f"--emit={form}", *more]) == 0
    printed = capsys.readouterr().out
    assert printed.endswith("\n") and len(printed) > 50
    target = tmp_path / "out.txt"
    assert run_command(["compile", str(path), f"--emit={form}", "-o", str(target), *more]) == 0
    assert target.read_text() == printed
    capsys.readouterr()
    assert run_command(["compile", str(path), f"--emit={form}", "-o", str(tmp_path / "no" / "out"), *more]) == 2
    assert "E0853" in capsys.readouterr().err
    path.write_text("def f() -> str:\n    user: \"${x}\"\n    return (\n")
    assert run_command(["compile", str(path), f"--emit={form}", *more]) == 1
    assert "error[E0" in capsys.readouterr().err


def test_no_torch_is_imported_for_it(path):
    code = ("import sys; from lmc.cli.entry import run_command; "
            f"run_command(['plan', {str(path) + ':ask'!r}, '--topic', 'x', '--dry']); print('torch' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.endswith("False\n"), done.stdout + done.stderr


def test_the_stand_ins_sizes_are_those_of_the_model():
    model = DryModel()
    assert (model.slot_bytes(), model.max_positions) == (DRY_SLOT_BYTES, DRY_POSITIONS)


def test_the_page_of_the_documentation_is_what_is_printed(capsys, monkeypatch):
    root = Path(__file__).resolve().parent.parent
    monkeypatch.chdir(root)
    page = (root / "docs" / "plan.md").read_text(encoding="utf-8")
    shown = re.search(r"```console\n\$ lmc plan ([^\n]*)\n(.*?)```", page, re.S)
    assert run_command(["plan", *shown[1].split()]) == 0
    assert capsys.readouterr().out == shown[2]
