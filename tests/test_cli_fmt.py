"""`lmc fmt`: files, folders, standard input, `--check`, `--diff`, and what it leaves alone."""

import io
import os
import sys
from types import SimpleNamespace

import pytest

from lmc.cli.entry import run_command

UGLY = "X=1 # c\n"
NICE = "X = 1  # c\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / ".hidden").mkdir()
    for name, text in (("a.lmp", UGLY), ("b.lmp", NICE), ("lib/c.lmp", UGLY), (".hidden/d.lmp", UGLY), ("e.txt", UGLY)):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_folder_in_place(folder, capsys):
    os.chmod(folder / "a.lmp", 0o640)
    inode = (folder / "b.lmp").stat().st_ino
    assert run_command(["fmt", str(folder)]) == 0
    assert [(folder / n).read_text() for n in ("a.lmp", "b.lmp", "lib/c.lmp")] == [NICE] * 3
    assert (folder / ".hidden/d.lmp").read_text() == (folder / "e.txt").read_text() == UGLY
    assert (folder / "a.lmp").stat().st_mode & 0o777 == 0o640
    assert (folder / "b.lmp").stat().st_ino == inode, "a file in the style is not written"
    assert sorted(p.name for p in folder.iterdir()) == [".hidden", "a.lmp", "b.lmp", "e.txt", "lib"]
    assert capsys.readouterr().err == "2 files changed, 1 file as it should be\n"
    assert run_command(["fmt", "-q", str(folder)]) == 0
    assert capsys.readouterr().err == ""


def test_no_argument_is_this_folder(folder, monkeypatch):
    monkeypatch.chdir(folder / "lib")
    assert run_command(["fmt"]) == 0
    assert (folder / "lib/c.lmp").read_text() == NICE and (folder / "a.lmp").read_text() == UGLY


def test_check_lists_and_writes_nothing(folder, capsys):
    assert run_command(["fmt", "--check", str(folder)]) == 1
    out = capsys.readouterr()
    assert out.out.splitlines() == [str(folder / "a.lmp"), str(folder / "lib/c.lmp")]
    assert out.err == "2 files would change, 1 file as it should be\n"
    assert (folder / "a.lmp").read_text() == UGLY
    assert run_command(["fmt", "--check", str(folder / "b.lmp")]) == 0


def test_diff_shows_and_writes_nothing(folder, capsys):
    path = folder / "a.lmp"
    path.write_text("X=1")
    assert run_command(["fmt", "--diff", str(path)]) == 0
    assert capsys.readouterr().out == (f"--- {path}\n+++ {path}\n@@ -1 +1 @@\n-X=1\n\\ No newline at end of file\n+X = 1\n")
    assert path.read_text() == "X=1"
    assert run_command(["fmt", "--diff", "--check", str(path)]) == 1
    out = capsys.readouterr()
    assert out.out.startswith("---") and str(path) + "\n" in out.err


@pytest.mark.parametrize("source, status, out", [(UGLY, 0, NICE), ("X=[1\n", 1, "")])
def test_standard_input(source, status, out, monkeypatch, capsysbinary):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(source.encode())))
    assert run_command(["fmt", "-"]) == status
    said = capsysbinary.readouterr()
    assert said.out == out.encode() and (b"<stdin>:1:3" in said.err) == bool(status)


def test_files_with_mistakes_stay_and_the_others_are_written(folder, capsys):
    broken = folder / "broken.lmp"
    broken.write_text("X=[1\n\nY=(\n")
    wide = folder / "wide.lmp"
    wide.write_bytes("X=1".encode("utf-16"))
    assert run_command(["fmt", str(folder / "missing.lmp"), str(folder)]) == 1
    assert broken.read_text() == "X=[1\n\nY=(\n" and wide.read_bytes() == "X=1".encode("utf-16")
    assert (folder / "a.lmp").read_text() == NICE
    err = capsys.readouterr().err
    assert f"{broken}:1:3" in err and f"{broken}:3:3" in err and "UTF-16" in err and "missing.lmp" in err
    assert err.endswith("2 files changed, 3 files with errors left alone, 1 file as it should be\n")


def test_crlf_and_a_byte_order_mark_are_changes(folder):
    path = folder / "a.lmp"
    path.write_bytes(b"\xef\xbb\xbf" + NICE.replace("\n", "\r\n").encode())
    assert run_command(["fmt", "--check", str(path)]) == 1
    assert run_command(["fmt", str(path)]) == 0
    assert path.read_bytes() == NICE.encode()


def test_a_link_stays_a_link(folder):
    link = folder / "link.lmp"
    link.symlink_to(folder / "lib/c.lmp")
    assert run_command(["fmt", str(link)]) == 0
    assert link.is_symlink() and (folder / "lib/c.lmp").read_text() == NICE


def test_a_failed_write_leaves_the_file_and_no_other(folder, monkeypatch, capsys):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    assert run_command(["fmt", str(folder)]) == 1
    assert capsys.readouterr().err.count("No space left on device") == 2
    assert (folder / "a.lmp").read_text() == UGLY
    assert sorted(p.name for p in folder.iterdir()) == [".hidden", "a.lmp", "b.lmp", "e.txt", "lib"]


def test_a_folder_that_cannot_be_read_is_not_passed_over(folder, monkeypatch, capsys):
    real = os.scandir

    def refuse(path):
        if str(path).endswith("lib"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert run_command(["fmt", str(folder)]) == 1
    assert "cannot read the folder" in capsys.readouterr().err
    assert (folder / "a.lmp").read_text() == UGLY
