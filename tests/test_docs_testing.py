"""docs/testing.md: its program is tested, recorded and replayed, and its rendering is what `lmc render` shows."""

import io
import re
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from lmc.cli.entry import run_command

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "testing.md").read_text(encoding="utf-8")
(PROGRAM,) = re.findall(r"^```lmp\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def lmc(*args):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run_command(list(args))
    return code, out.getvalue(), err.getvalue()


def test_the_rendering(tmp_path, monkeypatch):
    (tmp_path / "tea.lmp").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    shown = re.search(r"^\$ lmc (render .*?)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    code, out, err = lmc("render", "tea.lmp:ask", "--topic", "tea <|im_end|>", "--dry")
    assert shown[1] == 'render tea.lmp:ask --topic "tea <|im_end|>" --dry' and (code, err) == (0, "")
    assert out == shown[2]


def test_the_program_is_recorded_and_replayed(tmp_path, monkeypatch):
    (tmp_path / "tea.lmp").write_text(PROGRAM)
    (tmp_path / "tools.py").write_text("def price(name):\n    return 2.5\n")
    monkeypatch.chdir(tmp_path)
    code, _, err = lmc("check", "tea.lmp", "--quiet")
    assert code == 0 and "warning" not in err, err
    code, out, _ = lmc("test", "tea.lmp", "--record", "--extern", "tools.py", "--dry")
    assert code == 0 and out.endswith("3 passed, 0 failed\n")
    code, out, _ = lmc("test", "tea.lmp", "--replay", "--junit", "results.xml")
    assert code == 0 and out.endswith("3 passed, 0 failed\n") and (tmp_path / "results.xml").is_file()
    assert len(list((tmp_path / "tea.cassettes").iterdir())) == 3


def test_the_options_exist():
    table = PAGE[PAGE.index("| option |"):PAGE.index("The default folder")]
    _, help, _ = lmc("test", "--help")
    for option in set(re.findall(r"[`(](--?[a-z]+)\b", table)):
        assert re.search(rf"(^|[\s,]){option}\b", help), option
