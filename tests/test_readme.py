"""What the README shows is what happens: its programs, its errors, its commands and the files it names."""

import io
import re
from pathlib import Path

from lmc.cli.entry import run_command

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def shown(name: str) -> str:
    """The program under the comment that names it."""
    return re.search(rf"<!-- program: {re.escape(name)} -->\n```lmp\n(.*?)```", README, re.S).group(1)


def test_the_program_is_the_example():
    example = (ROOT / "examples" / "judge.lmp").read_text(encoding="utf-8")
    assert shown("examples/judge.lmp") == example.split("\n\n", 1)[1], "without the comment at its head"


def test_the_output_has_the_shape_of_the_program():
    output = re.search(r"\$ lmc run examples/judge\.lmp .*?\n(.*?)```", README, re.S).group(1)
    assert re.search(r"calls 7 · generated \d+ tokens · from cache [\d,]+ tokens · [\d.]+ s · seed \d+", output)
    assert re.search(r'\{\n  "grade": "[ABCD]",\n  "overall": [1-5],\n  "summary": ".*"\n\}', output)


def test_the_mistakes_are_reported_as_shown(tmp_path, monkeypatch, capsys):
    (tmp_path / "wrong.lmp").write_text(shown("wrong.lmp"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    code = run_command(["check", "wrong.lmp"])
    expected = re.search(r"\$ lmc check wrong\.lmp\n(.*?)```", README, re.S).group(1)
    assert code == 1
    # Lines may end in spaces on neither side.
    strip = lambda text: [line.rstrip() for line in text.strip().splitlines()]  # noqa: E731
    assert strip(''.join(capsys.readouterr())) == strip(expected)


def test_commands_and_files_exist():
    for command in set(re.findall(r"^lmc ([a-z]+)", README, re.M)):
        assert run_command([command, "--help"]) == 0, command
    for path in re.findall(r"\]\(([^)#]+)\)", README) + re.findall(r"examples/[\w./]+\.\w+", README):
        assert (ROOT / path).exists(), path
    for target in set(re.findall(r"^make ([a-z]+)", README, re.M)):
        assert f"\n{target}: " in (ROOT / "Makefile").read_text(), target


def test_the_commands_that_need_no_model(monkeypatch, capsys):
    """The lines under "Everyday use" that can be run here, on the stand-in model."""
    monkeypatch.chdir(ROOT)
    listed = [line.split("#")[0].strip() for line in README.splitlines() if line.startswith("lmc ")]
    ran = 0
    for line in listed:
        words = [w.strip('"') for w in re.findall(r'"[^"]*"|\S+', line)][1:]
        if words[0] == "check":
            words = ["check", *map(str, sorted(ROOT.glob("examples/*.lmp")))]
        elif words[0] == "run" and "--batch" not in words and "&&" not in words and "--help" not in words:
            words = [*words, *([] if "--dry" in words else ["--dry"])]
        elif words[0] in ("explain", "fmt") or words[0] == "compile" and "-o" not in words or "--help" in words:
            pass
        else:
            continue
        monkeypatch.setattr("sys.stdin", io.StringIO(""))
        assert run_command(words) == 0, (line, capsys.readouterr())
        ran += 1
    assert ran >= 5


def test_python_program(monkeypatch):
    """The Python lines, with the stand-in model in place of the real one."""
    import lmc

    monkeypatch.chdir(ROOT)
    lines = re.search(r"```python\n(.*?)```", README, re.S).group(1)
    assert 'lmc.load("examples/judge.lmp")' in lines
    with lmc.load("examples/judge.lmp", dry=True) as judge:
        verdict = judge.judge(essay="Libraries are warm, and open to all.")
        assert verdict.grade in "ABCD" and verdict.overall in range(1, 6)
