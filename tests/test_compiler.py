"""From a file to a program: the stages together, their errors, the observer."""

from pathlib import Path

import pytest

from lmc.compiler import compile_file
from lmc.diagnostics import CompileError
from lmc.ir.printer import print_module
from lmc.ir.reader import read_module
from lmc.ir.verifier import verify
from lmc.levels import DEFAULT_LEVEL, LEVELS
from lmc.passes import passes_of

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def compiled(source: str, **options):
    return compile_file("/p/t.lmp", read=lambda path: source, **options)


def error(source: str) -> CompileError:
    with pytest.raises(CompileError) as caught:
        compiled(source)
    return caught.value


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.lmp")), ids=lambda p: p.stem)
def test_examples_compile_without_warnings(path):
    for level in LEVELS:
        result = compile_file(str(path), level=level)
        assert result.warnings == ()
        assert result.program.entries and set(result.program.functions) == {f.name for f in result.module.functions}
        text = print_module(result.module)
        assert print_module(read_module(text)) == text
        verify(result.module)


def test_passes_on_one_function_keep_every_generation_and_its_site():
    def sites(module):
        from lmc.ir.core import walk_ops
        return {f.name: [op.site for op in walk_ops(f.body) if op.mnemonic == "lm.gen"] for f in module.functions}

    for path in EXAMPLES.glob("*.lmp"):
        assert sites(compile_file(str(path), level=0).module) == sites(compile_file(str(path), level=1).module)


def test_observer_sees_lowering_and_each_pass():
    seen = []
    compiled("def f() -> int:\n    return 1 + 2\n", observe=lambda name, before, after: seen.append((name, before is after)))
    assert seen == [("lower", True), *((name, name != "fold") for name in passes_of(DEFAULT_LEVEL))]
    module = compiled("def f() -> int:\n    return 1 + 2\n", passes=()).module
    assert "pure.call(1, 2)" in print_module(module)


def test_all_errors_come_with_their_sources():
    caught = error("def f() -> int:\n    return a\n\ndef g() -> int:\n    return b\n")
    assert len(caught.diagnostics) == 2 and "return a" in str(caught) and "return b" in str(caught)
    with pytest.raises(CompileError):
        compile_file("/nowhere/at/all.lmp")


def nested_elifs(name: str, count: int) -> str:
    levels = (f"{' ' * at}if n == 0:\n{' ' * at} pass\n{' ' * at}elif n == {at}:\n" for at in range(1, count + 1))
    return f"def {name}(n: int) -> int:\n{''.join(levels)}{' ' * (count + 1)}pass\n return n\n"


def test_blocks_that_are_nested_too_deeply_are_refused_all_at_once_each_with_its_place():
    compiled(nested_elifs("f", 49))
    found = error(nested_elifs("f", 60) + "\n" + nested_elifs("g", 60)).diagnostics
    assert [(d.code, d.span.line) for d in found] == [("E0015", 152), ("E0015", 336)]
    assert all("100 levels" in d.message and "`elif`" in d.help for d in found)


def test_all_constraints_that_cannot_be_built_are_reported_at_once():
    function = 'def f{}() -> str:\n    user: "x"\n    assistant: a = gen(grammar="start: A")\n    return a\n'
    assert [(d.code, d.span.line) for d in error(function.format(1) + "\n" + function.format(2)).diagnostics] == [
        ("E0606", 3), ("E0606", 8)]


def test_a_constraint_without_automaton_has_the_place_of_its_gen():
    source = 'def f() -> str:\n    user: "x"\n    assistant: a = gen(schema="""{"not": {}}""")\n    return a\n'
    (diagnostic,) = error(source).diagnostics
    assert diagnostic.code in ("E0610", "E0605") and diagnostic.span.line == 3


def chain(kind: str, count: int) -> str:
    if kind == "or":
        return "def f(n: int) -> bool:\n    return " + " or ".join(f"n == {i}" for i in range(count)) + "\n"
    if kind == "elif":
        arms = "".join(f"    elif n == {i}:\n        return {i}\n" for i in range(count))
        return f"def f(n: int) -> int:\n    if n < 0:\n        return n\n{arms}    return -1\n"
    cases = "".join(f"        case {i}:\n            return {i}\n" for i in range(count))
    return f"def f(n: int) -> int:\n    match n:\n{cases}        case _:\n            return -1\n"


@pytest.mark.parametrize("kind", ["or", "match", "elif"])
def test_long_chains_compile(kind):
    compiled(chain(kind, 400))


def test_line_ends_and_mark_give_the_same_ir(tmp_path):
    source = EXAMPLES.joinpath("judge.lmp").read_text(encoding="utf-8")
    texts = []
    for i, data in enumerate((source, source.replace("\n", "\r\n"), "\ufeff" + source)):
        path = tmp_path / str(i) / "judge.lmp"
        path.parent.mkdir()
        path.write_bytes(data.encode())
        texts.append(print_module(compile_file(str(path)).module))
    assert texts[0] == texts[1] == texts[2]
