"""`.lmp` -> `.ir`, for the seven programs and one file for each part of the language.

    pytest tests/parser/lower --update      rewrites the `.ir` files from what is printed now
"""

from pathlib import Path

import pytest

from lmc.compiler import check_file, lower_program
from lmc.ir.printer import print_module
from lmc.ir.reader import read_module
from lmc.ir.verifier import verify

HERE = Path(__file__).parent / "golden"
EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
FILES = sorted(HERE.glob("*.lmp")) + sorted(EXAMPLES.glob("*.lmp"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_golden(path, update):
    checked = check_file(str(path))
    assert not checked.errors, checked.errors
    module = lower_program(checked)
    text = print_module(module)
    golden = HERE / (path.stem + ".ir")
    if update:
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")
    assert print_module(read_module(text)) == text
    verify(read_module(text))


def test_the_seven_programs_are_here():
    assert {"classify", "judge", "react", "character", "chat", "vote", "tree"} <= {p.stem for p in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_every_op_has_a_place_in_the_source(path):
    from lmc.ir.core import walk_ops

    module = lower_program(check_file(str(path)))
    sources = dict(module.sources)
    for function in module.functions:
        for op in walk_ops(function.body):
            assert op.span is not None, op
            lines = sources[op.span.file].split("\n")
            assert 1 <= op.span.line <= len(lines) and op.span.column <= len(lines[op.span.line - 1]) + 1
    text = print_module(module, locations=True)
    assert print_module(read_module(text), locations=True) == text
