"""The text form after each pass reads back and prints the same, for every program that this repository has."""

import pytest

from lmc.compiler import compile_file
from lmc.diagnostics import CompileError
from lmc.ir.printer import print_module
from lmc.ir.reader import read_module
from lmc.ir.verifier import verify
from lmc.passes import PIPELINES
from tests.passes.sources import FILES, language_programs


def reads_back(name, before, after):
    if after is before and name != "lower":
        return
    text = print_module(after)
    again = read_module(text)
    verify(again)
    assert print_module(again) == text, name


@pytest.mark.parametrize("target", PIPELINES)
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_files(path, target):
    compile_file(str(path), level=2, target=target, observe=reads_back)


def test_programs_of_the_language(tmp_path):
    path, compiled = tmp_path / "program.lmp", 0
    for place, text in language_programs().items():
        path.write_text(text, encoding="utf-8")
        try:
            compile_file(str(path), level=2, observe=reads_back)
            compiled += 1
        except CompileError as error:
            # Those are programs with a mistake; a pass that breaks a module is E0903.
            assert all(not d.code.startswith("E09") or d.code == "E0901" for d in error.diagnostics), (place, str(error))
    assert compiled > 100
