"""`lmc stubs` and `lmc schema`: what type checkers and tools see of a program."""

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lmc
from lmc import embed
from lmc.cli.entry import run_command

ROOT = Path(__file__).resolve().parents[1]

PROGRAM = '''
from "lib/other.lmp" import Finish as Other

type Search:
    """A "search"."""
    query: str
    limit: 1..9 = 3
type Finish:
    answer: str | None
    list: list[str] = []
    grade: "A" | "B"
type Action = Search | Finish

def pick(actions: list[Action], index: int = 0) -> Action:
    """Pick one."""
    return actions[index]
def narrow(search: Search, grade: "A" | "B" = "A") -> Search | None:
    return search
def other(n: int) -> Other:
    return {code: n}
def nothing():
    print("x")
part talk():
    user: "Hello"
def conversation() -> context:
    talk()
    return here
'''
OTHER = "type Finish:\n    code: int\n"

USER = '''
from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import lmc

if TYPE_CHECKING:
    import program_lmp


def main() -> None:
    with cast("program_lmp.Module", lmc.load("program.lmp", dry=True)) as m:
        search = m.types.Search("q", limit=4)
        finish = m.types.Finish(None, grade="A")
        action: program_lmp.Action = m.pick([search, finish, {"type": "Finish", "answer": "a", "grade": "B"}], index=1)
        if isinstance(action, m.types.Finish):
            names: list[str] = action.list
            print(names, action.grade == "A")
        found = m.narrow(search)
        print(found.query if found is not None else "", search.asdict(tag=True)["limit"])
        rows = m.narrow.batch([{"search": search}, {"search": search, "grade": "B"}, (search,), (search, "A")])
        for row in m.narrow.batch([{"search": {"query": "x"}}], errors="return"):
            print(row if isinstance(row, lmc.LmcError) or row is None else row.limit)
        code: int = m.other(3).code
        print(len(rows), code, m.pick.schema["parameters"], m.report.calls)
        m.nothing()
        m.narrow.render(search, grade="B")
        print(asyncio.run(m.aio.other(4)).code, asyncio.run(m.other.start(5)).code)


main()
'''
MISTAKES = '''
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import program_lmp


def f(m: "program_lmp.Module") -> None:
    m.narow({"query": "x"})
    m.pick()
    m.pick([], index="x")
    m.narrow({"query": "x"}, "C")
    m.other(1).kode
    m.types.Search(limit=2)
    m.other(1).code = 2
    m.other.batch([{"m": 1}])
    print(m.narrow({"query": "x"}).query)
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lib").mkdir()
    for name, text in (("program.lmp", PROGRAM), ("lib/other.lmp", OTHER), ("user.py", USER), ("mistakes.py", MISTAKES)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert run_command(["stubs", "program.lmp", "-o", "program_lmp.pyi"]) == 0
    return tmp_path


def mypy(folder: Path, *files: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--follow-imports=silent",
               f"--cache-dir={folder / 'cache'}", *files]
    return subprocess.run(command, cwd=folder, env={"PATH": "/usr/bin:/bin", "MYPYPATH": str(ROOT)}, capture_output=True, text=True)


def test_mypy_strict_accepts_a_user_and_reports_each_mistake(folder):
    done = mypy(folder, "user.py", "program_lmp.pyi", "mistakes.py")
    lines = [int(n) for n in re.findall(r"^mistakes\.py:(\d+): error", done.stdout, re.M)]
    first = 1 + MISTAKES[:MISTAKES.index("    m.narow")].count("\n")
    assert sorted(set(lines)) == list(range(first, first + 9)), done.stdout + done.stderr
    others = [line for line in done.stdout.splitlines() if not line.startswith("mistakes.py")]
    assert not others, done.stdout


def test_the_accepted_program_runs(folder):
    done = subprocess.run([sys.executable, "user.py"], cwd=folder, capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == ["[] True", "q 4"] and done.stdout.splitlines()[-1] == "4 5"


def test_types_of_the_same_name_stay_apart(folder):
    text = (folder / "program_lmp.pyi").read_text(encoding="utf-8")
    assert "class Finish:" in text and "class lib_other_Finish:" in text and "-> lib_other_Finish" in text


def test_stub_without_output_and_one_that_cannot_be_written(folder, capsys):
    assert run_command(["stubs", "program.lmp"]) == 0
    assert capsys.readouterr().out == (folder / "program_lmp.pyi").read_text(encoding="utf-8")
    assert run_command(["stubs", "program.lmp", "-o", "no/where.pyi"]) == 2
    assert "E0853" in capsys.readouterr().err


def test_the_stub_of_embed_is_that_of_embed():
    """`embed.pyi` repeats what is public in `embed.py`: the same functions with the same parameters."""
    names: dict[str, object] = {}
    source = (ROOT / "lmc" / "embed.pyi").read_text(encoding="utf-8")
    exec(compile("from __future__ import annotations\n" + source, "embed.pyi", "exec"), names)
    assert (ROOT / "lmc" / "py.typed").is_file()
    for owner in ("Module", "Function"):
        public = {n for n in vars(vars(embed)[owner]) if not n.startswith("_")}
        assert public <= set(vars(names[owner])) | {"aio", "types"}, owner
    for name in ("load", "load_program", "function_schema", "cache_folder", "Function.__call__", "Function.start", "Function.batch",
                 "Function.render", "Module.close", "Module.__exit__", "Module.__getattr__"):
        there, here = names, vars(embed)
        owner, _, method = name.rpartition(".")
        pair = [getattr(v[owner], method) if owner else v[method] for v in (there, here)]
        shapes = [[(p.name, p.kind, p.default is p.empty) for p in inspect.signature(f).parameters.values()] for f in pair]
        assert shapes[0] == shapes[1], name


def test_schema_of_one_function_and_of_all(folder, capsys):
    assert run_command(["schema", "program.lmp:pick"]) == 0
    one = json.loads(capsys.readouterr().out)
    assert one["description"] == "Pick one." and one["parameters"]["required"] == ["actions"]
    assert run_command(["schema", "program.lmp"]) == 0
    every = json.loads(capsys.readouterr().out)
    assert every["pick"] == one and list(every) == ["pick", "narrow", "other", "nothing"]
    with lmc.load("program.lmp", dry=True) as m:
        assert every["narrow"] == m.narrow.schema
    assert run_command(["schema", "program.lmp:conversation"]) == 2
    assert "has no JSON schema" in capsys.readouterr().err
    assert run_command(["schema", "program.lmp:pik"]) == 2
    assert "did you mean `pick`" in capsys.readouterr().err
