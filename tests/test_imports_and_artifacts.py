"""Programs do not depend on where they are started (J-05), read nothing outside their folders (L-04), and artifacts are data (L-03)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import lmc
from lmc.cli.entry import run_command
from lmc.diagnostics import CompileError, UsageError

ROOT = Path(__file__).resolve().parents[1]

MAIN = '''
from "sub/a.lmp" import one as a
from "other/a.lmp" import one as b
extern def twice(n: int) -> int
def main(n: int = 1) -> list[int]:
    return [a(), b(), twice(n)]
'''


@pytest.fixture
def project(tmp_path):
    project = tmp_path / "project"
    for name, text in {
        "main.lmp": MAIN, "b.lmp": "def two() -> int:\n    return 2\n", "other/a.lmp": "def one() -> int:\n    return 3\n",
        "sub/a.lmp": 'from "../b.lmp" import two\ndef one() -> int:\n    return two()\n', "tools.py": "def twice(n):\n    return 2 * n\n",
    }.items():
        (project / name).parent.mkdir(exist_ok=True, parents=True)
        (project / name).write_text(text, encoding="utf-8")
    (tmp_path / "far").mkdir()
    return project


def lmc_process(folder: Path, *words: str) -> subprocess.CompletedProcess:
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", "from lmc.cli import main; main()", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=env)


def test_j05_the_same_from_three_working_directories(project):
    results = set()
    for folder in (project, project / "sub", project.parent / "far"):
        file, tools = (os.path.relpath(project / name, folder) for name in ("main.lmp", "tools.py"))
        done = lmc_process(folder, "run", file, "--dry", "--quiet", "--extern", tools)
        assert done.returncode == 0, done.stderr
        results.add(done.stdout)
    assert [json.loads(r) for r in results] == [[2, 3, 2]]


def test_j05_an_artifact_in_another_folder_runs_or_says_what_is_missing(project, capsys):
    assert run_command(["compile", str(project / "main.lmp"), "-o", str(project / "main.lmpc")]) == 0
    far = project.parent / "far"
    moved = (project / "main.lmpc").rename(far / "moved.lmpc")
    tools = (project / "tools.py").rename(far / "tools.py")
    for file in sorted(project.rglob("*.lmp")):
        file.unlink()
    capsys.readouterr()
    words = ["run", str(moved), "--dry", "--quiet", "--n", "4"]
    assert run_command([*words, "--extern", str(tools)]) == 0
    assert json.loads(capsys.readouterr().out) == [2, 3, 8]
    assert run_command([*words, "--extern", str(project / "tools.py")]) == 2
    assert "tools.py" in capsys.readouterr().err
    assert run_command(words) not in (0, 70)
    assert "twice" in capsys.readouterr().err
    with pytest.raises(lmc.LmcError, match="twice"):
        lmc.load(moved, dry=True)
    assert run_command(["run", str(project / "main.lmpc"), "--dry"]) == 2
    assert "main.lmpc" in capsys.readouterr().err


def test_j05_a_circle_is_shown_with_its_chain(project, capsys):
    (project / "b.lmp").write_text('from "sub/a.lmp" import one\ndef two() -> int:\n    return one()\n')
    assert run_command(["check", str(project / "main.lmp")]) == 1
    shown = capsys.readouterr().err
    assert "E0206" in shown and "sub/a.lmp -> " in shown and "b.lmp:1:" in shown


WAYS_OUT = ["../outside.lmp", "/etc/passwd", "~/x.lmp", "~root/x.lmp", "a\\0.lmp", "link.lmp", "folder/x.lmp", "C:/x.lmp", "C:x.lmp",
            "..\\\\outside.lmp", "\\\\\\\\host\\\\x.lmp", "../project2/x.lmp", "sub/../../outside.lmp"]


@pytest.mark.parametrize("path", WAYS_OUT)
@pytest.mark.parametrize("importer", ["main.lmp", "third/party.lmp"])
def test_l04_no_way_out(project, path, importer, capsys):
    outside = project.parent
    secret = 'SECRET = "canary-5309"\n'
    (outside / "project2").mkdir()
    for file in (outside / "outside.lmp", outside / "project2" / "x.lmp", outside / "far" / "x.lmp"):
        file.write_text(secret)
    folder = (project / importer).parent
    folder.mkdir(exist_ok=True)
    (folder / "link.lmp").symlink_to(outside / "outside.lmp")
    (folder / "folder").symlink_to(outside / "far")
    if importer != "main.lmp":
        path = path if not path.startswith(("../", "sub/")) else "../" + path
        (project / "main.lmp").write_text(f'from "{importer}" import leak\ndef main() -> str:\n    return leak()\n')
    (project / importer).write_text(f'from "{path}" import SECRET\ndef leak() -> str:\n    return SECRET\n')
    assert run_command(["compile", str(project / "main.lmp"), "-o", str(project / "out.lmpc")]) == 1
    said = capsys.readouterr()
    shown = said.err + said.out
    assert "error[E0207]" in shown and f"{importer}:1:6" in shown
    assert "canary-5309" not in shown and not (project / "out.lmpc").exists()


def test_l04_a_flag_adds_roots_and_a_module_cannot(project, capsys, monkeypatch):
    shared = project.parent / "shared"
    shared.mkdir()
    (shared / "x.lmp").write_text('def one() -> int:\n    return 7\ntest "seven":\n    assert one() == 7\n')
    main = project / "main.lmp"
    main.write_text('from "../shared/x.lmp" import one\ndef main() -> int:\n    return one()\ntest "one":\n    assert one() == 7\n')
    root = ["--root", str(shared)]
    for words in (["check", str(main)], ["compile", str(main), "-o", str(project / "m.lmpc")], ["run", str(main), "--dry"],
                  ["test", str(main), "--dry"], ["schema", str(main)], ["stubs", str(main)]):
        assert run_command(words) == 1 and "E0207" in capsys.readouterr().err, words
        assert run_command([*words, *root]) == 0, capsys.readouterr().err
        capsys.readouterr()
    assert run_command(["run", str(main), "--dry", "-q", f"--root={shared}"]) == 0
    assert capsys.readouterr().out == "7\n"
    with pytest.raises(CompileError):
        lmc.load(main, dry=True)
    with lmc.load(main, dry=True, roots=[shared]) as m:
        assert m.main() == 7
    with pytest.raises(UsageError, match="no folder"):
        lmc.load(main, dry=True, roots=[project / "none"])
    assert run_command(["check", str(main), "--root", str(project / "none")]) == 2
    # The added folder is not a door to its neighbours.
    (shared / "x.lmp").write_text('from "../outside.lmp" import S\ndef one() -> int:\n    return 1\n')
    capsys.readouterr()
    assert run_command(["check", str(main), *root]) == 1
    assert "shared/x.lmp:1:6" in capsys.readouterr().err


def test_l04_a_parameter_called_root_gives_no_rights(project, capsys):
    shared = project.parent / "shared"
    shared.mkdir()
    (shared / "x.lmp").write_text("def one() -> int:\n    return 7\n")
    main = project / "main.lmp"
    main.write_text('from "../shared/x.lmp" import one\ndef main(root: str) -> str:\n    return "${root} ${one()}"\n')
    assert run_command(["run", str(main), "--dry", "-q", "--root", str(shared)]) == 1
    assert "E0207" in capsys.readouterr().err
    assert run_command(["run", str(main), "--dry", "-q", "--root", "value", "--lmc-root", str(shared)]) == 0
    assert json.loads(capsys.readouterr().out) == "value 7"


def test_l03_an_artifact_that_is_a_pickle_is_never_executed(project, capsys):
    canary = project / "canary"
    payload = b"cos\nsystem\n(S'touch " + os.fsencode(canary) + b"'\ntR."
    for name, data in (("p.lmpc", payload), ("q.lmpc", b"LMPC\r\n\x01\x00" + bytes(32) + payload)):
        (project / name).write_bytes(data)
        assert run_command(["run", str(project / name), "--dry"]) == 1
        assert "E0904" in capsys.readouterr().err and not canary.exists()
        with pytest.raises(CompileError):
            lmc.load(project / name, dry=True)
    assert not canary.exists()
