"""The pages of `lmc explain`: every code has one, and its programs show what it says.

A page's programs are fences of `lmp`: `fails` is reported at compile time, `runs` when it runs on the stand-in model, `binds` only in
the situation that the page tells, `utf-16` in that encoding; `fixed` is right.  A name behind that is the file's, `main.lmp` where
there is none; `␀` stands for a null byte.
"""

import re
from pathlib import Path

import pytest

import lmc
from lmc.cli.entry import run_command
from lmc.codes import CODES
from lmc.compiler import compile_file
from lmc.diagnostics import LmcError

FOLDER = Path(lmc.__file__).parent / "explain"
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md"))}
_FENCE = re.compile(r"^```lmp (fails|runs|binds|utf-16|fixed)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def kind_of(page: str) -> str:
    (kind,) = {kind for kind, _, _ in _FENCE.findall(page)} - {"fixed"}
    return kind


def written(page: str, kind: str, folder: Path) -> Path:
    """The page's program of this kind, its files written to `folder`; the path of its root file."""
    files = {name or "main.lmp": text for found, name, text in _FENCE.findall(page) if found == kind}
    assert "main.lmp" in files, f"the page has no `{kind}` program"
    for name, text in files.items():
        (folder / name).write_bytes(text.replace("␀", "\0").encode("utf-16" if kind == "utf-16" else "utf-8"))
    return folder / "main.lmp"


def compiled(path: Path) -> set[str]:
    """The codes that compiling gives, warnings included."""
    try:
        return {d.code for d in compile_file(str(path)).warnings}
    except LmcError as error:
        return {d.code for d in error.diagnostics}


def ran(path: Path) -> str | None:
    """The code of the error that running the entry `f` on the stand-in model ends in."""
    try:
        with lmc.load(path, dry=True, seed=1) as module:
            module.f()
    except LmcError as error:
        return error.diagnostics[0].code
    return None


def test_every_code_has_a_page_and_every_page_a_code():
    assert set(PAGES) == set(CODES)
    assert [code for code, page in PAGES.items() if not page.startswith(f"# {code}: {CODES[code]}\n")] == []


@pytest.mark.parametrize("code", PAGES)
def test_the_failing_program_gives_the_code(code, tmp_path):
    kind = kind_of(PAGES[code])
    path = written(PAGES[code], kind, tmp_path)
    assert compiled(path) == ({code} if kind in ("fails", "utf-16") else set())
    if kind == "runs":
        assert ran(path) == code


@pytest.mark.parametrize("code", PAGES)
def test_the_fixed_program_gives_nothing(code, tmp_path):
    path = written(PAGES[code], "fixed", tmp_path)
    assert compiled(path) == set()
    if kind_of(PAGES[code]) == "runs":
        assert ran(path) is None


def test_explain_shows_a_page(capsys):
    assert run_command(["explain", "e0201"]) == 0
    assert capsys.readouterr().out.rstrip() == PAGES["E0201"].rstrip()


def test_explain_lists_all_codes(capsys):
    assert run_command(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"{code}  {title}" if len(code) == 5 else f"{code}   {title}" for code, title in CODES.items()]


def test_an_unknown_code_is_refused_with_the_nearest(capsys):
    assert run_command(["explain", "E0299"]) == 2
    assert "E02" in capsys.readouterr().err
