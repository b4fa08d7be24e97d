"""Each pass does what its docstring shows, and leaves its near miss alone; and the pipeline as a whole."""

import ast
from pathlib import Path

import pytest

from lmc.diagnostics import LmcError
from lmc.ir.printer import print_module
from lmc.ir.reader import read_module
from lmc.ir.verifier import verify
from lmc.levels import LEVELS
from lmc.passes import PASSES, PIPELINES, passes_of, run_passes
from tests.passes.docstrings import module_text, sections

FOLDER = Path(__file__).resolve().parents[2] / "lmc" / "passes"


def doc_of(name: str) -> str:
    return ast.get_docstring(ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8")), clean=True)


def run(name: str, body: str) -> str:
    module = read_module(module_text(body))
    verify(module)
    after = PASSES[name](module)
    verify(after)
    return print_module(after)


@pytest.mark.parametrize("name", sorted(PASSES))
def test_docstring(name):
    found = sections(doc_of(name))
    assert len(found["before"]) == len(found["after"]) == 1 and found["near miss"], found
    before, after = found["before"][0], found["after"][0]
    assert run(name, before) == print_module(read_module(module_text(after)))
    assert before != after


@pytest.mark.parametrize("name", sorted(PASSES))
def test_near_miss(name):
    for body in sections(doc_of(name))["near miss"]:
        assert run(name, body) == print_module(read_module(module_text(body)))


@pytest.mark.parametrize("name", sorted(PASSES))
def test_unchanged_module_is_the_same_object(name):
    for body in sections(doc_of(name))["near miss"]:
        module = read_module(module_text(body))
        assert PASSES[name](module) is module


@pytest.mark.parametrize("name", sorted(PASSES))
def test_running_twice_changes_nothing_more(name):
    for section in ("before", "after", "near miss"):
        for body in sections(doc_of(name))[section]:
            once = PASSES[name](read_module(module_text(body)))
            assert print_module(PASSES[name](once)) == print_module(once)


def test_observe_sees_each_pass_and_whether_it_changed():
    seen = []
    body = 'func @f() -> int {\n  %x: int = pure.call(2, 3)[function = "add"]\n  control.return(%x)\n}'
    run_passes(read_module(module_text(body)), ("fold", "dead_code"), lambda name, before, after: seen.append((name, before is after)))
    assert seen == [("fold", False), ("dead_code", True)]


@pytest.mark.parametrize("target", PIPELINES)
def test_a_level_runs_what_the_level_below_runs(target):
    assert passes_of(0, target) == ()
    assert passes_of(2, target) == tuple(step.name for step in PIPELINES[target])
    assert [name for name in passes_of(2, target) if name in passes_of(1, target)] == list(passes_of(1, target))
    assert {step.level for step in PIPELINES[target]} <= set(LEVELS)


def test_named_passes():
    module = read_module(module_text('func @f() -> int {\n  %x: int = pure.call(2, 3)[function = "add"]\n  control.return(%x)\n}'))
    assert run_passes(module, ()) is module
    assert run_passes(module, ("dead_code",)) is module
    assert "control.return(5)" in print_module(run_passes(module, ("fold",)))
    with pytest.raises(KeyError):
        run_passes(module, ("no_such_pass",))


def test_a_pass_that_breaks_the_module_is_found(monkeypatch):
    import dataclasses

    module = read_module(module_text("func @f(%x: int) -> int {\n  control.return(%x)\n}"))

    def break_it(m):
        function = m.functions[0]
        body = dataclasses.replace(function.body, args=())
        return dataclasses.replace(m, functions=(dataclasses.replace(function, body=body, params=()),))

    monkeypatch.setitem(PASSES, "fold", break_it)
    with pytest.raises(LmcError, match="used before it is defined"):
        run_passes(module, ("fold",))


# ------------------------------------------------------------------- single cases


def fold(body: str) -> str:
    return run("fold", body)


def test_fold_a_return_that_is_always_reached_ends_the_block():
    text = fold("""func @f(%c: context) -> str {
  control.if(true) {
    control.return("early")
  } {
    control.yield()
  }
  %c_1: context, %v: str = lm.gen(%c)[role = raw, site = "0"]
  control.return(%v)
}""")
    assert "lm.gen" not in text and 'control.return("early")' in text and "control.if" not in text


def test_fold_reads_fields_of_records_made_here():
    text = run("fold", "func @f(%a: str) -> str {\n  %e: @Scored = record.make(%a, 1.5)\n"
                       "  %o: str = record.get(%e)[field = \"option\"]\n  control.return(%o)\n}")
    assert "control.return(%a)" in text


@pytest.mark.parametrize("call", [
    'pure.call("x")[function = "int"]', 'pure.call(1, 0)[function = "floordiv"]',
    'pure.call(9223372036854775807, 1)[function = "add"]',
])
def test_fold_leaves_what_fails(call):
    text = fold(f"func @f() -> int {{\n  %x: int = {call}\n  control.return(%x)\n}}")
    assert call in text


def test_fold_leaves_large_results_to_the_run():
    assert "pure.call" in fold('func @f() -> str {\n  %x: str = pure.call("-", 100000)[function = "mul"]\n  control.return(%x)\n}')
    assert "pure.call" in fold('func @f() -> list<int> {\n  %x: list<int> = pure.call(100000)[function = "range"]\n  control.return(%x)\n}')


def test_fold_computes_with_constant_lists():
    text = fold('func @f() -> int {\n  %x: list<str> = const()[value = "[\\"a\\",\\"b\\"]"]\n'
                '  %n: int = pure.call(%x)[function = "len"]\n  control.return(%n)\n}')
    assert "control.return(2)" in text


def test_fold_writes_values_as_prompts_do():
    text = fold('func @f() -> str {\n  %x: str = text.concat(true, " ", 2.0, " ", 3)\n  control.return(%x)\n}')
    assert 'control.return("true 2.0 3")' in text


def test_merge_stops_at_another_role_and_at_what_was_generated():
    body = """func @f(%c: context) -> context {
  %c_1: context = context.append(%c, "a")[role = user]
  %c_2: context = context.append(%c_1, "b")[role = assistant]
  %c_3: context, %v: str = lm.gen(%c_2)[role = assistant, site = "0"]
  %c_4: context = context.append(%c_3, "c")[role = assistant]
  control.return(%c_4)
}"""
    assert run("merge_text", body) == print_module(read_module(module_text(body)))


def test_merge_keeps_a_text_that_others_read():
    text = run("merge_text", """func @f(%c: context, %n: int) -> str {
  %t: str = text.concat("n = ", %n)
  %c_1: context = context.append(%c, "a ")[role = user]
  %c_2: context = context.append(%c_1, %t)[role = user]
  %c_3: context, %v: str = lm.gen(%c_2)[role = assistant, site = "0"]
  control.return(%t)
}""")
    assert 'text.concat("n = ", %n)' in text and 'text.concat("a ", %t)' in text


def test_dead_code_drops_results_of_an_if_that_nobody_reads():
    text = run("dead_code", """func @f(%b: bool, %c: context) -> str {
  %x: int, %y: str = control.if(%b) {
    control.yield(1, "one")
  } {
    %c_1: context, %v: str = lm.gen(%c)[role = raw, site = "0"]
    control.yield(2, %v)
  }
  control.return(%y)
}""")
    assert "%y: str = control.if(%b)" in text and 'control.yield("one")' in text


def test_dead_code_keeps_effects_in_regions():
    body = """extern @log(text: str) -> none

func @f(%b: bool) -> none {
  control.if(%b) {
    %done: none = extern.call("seen")[name = "log"]
    control.yield()
  } {
    control.yield()
  }
  control.return(null)
}"""
    assert run("dead_code", body) == print_module(read_module(module_text(body)))


def test_a_loop_that_never_ends_is_not_dead(tmp_path):
    """Its budget is an error that the program may catch; dropping it would change the result."""
    import lmc

    path = tmp_path / "endless.lmp"
    path.write_text('def f() -> str:\n    said = ""\n    while True:\n        x = 1\n    return said\n', encoding="utf-8")
    for level in (0, 1):
        with lmc.load(path, dry=True, level=level) as module, pytest.raises(lmc.RunError) as error:
            module.f()
        assert error.value.kind == "budget"
