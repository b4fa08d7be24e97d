"""Contexts are built once where nobody can tell, and the model reads the same."""

import pytest

from lmc.ir.core import walk_ops
from lmc.ir.ops import ContextAppend, ContextNew
from lmc.ir.printer import print_module
from lmc.ir.reader import read_module
from lmc.ir.verifier import verify
from lmc.passes import PASSES
from tests.passes.docstrings import module_text
from tests.passes.sharing import compiled, edges, shown
from tests.runtime.programs import dry_session, program_of, run


def numbered(body: str):
    module = PASSES["number_contexts"](read_module(module_text(body)))
    verify(module)
    return module


def texts(module) -> list:
    return [op.text.value for f in module.functions for op in walk_ops(f.body) if isinstance(op, ContextAppend)]


def appends(*lines: str) -> str:
    """A function that appends these texts to one context, each followed by a generation."""
    ops = "".join(
        f"  %a{i}: context = context.append(%c, {line})[role = user]\n"
        f'  %b{i}: context, %v{i}: str = lm.gen(%a{i})[role = assistant, site = "{i}"]\n' for i, line in enumerate(lines))
    return f"func @f(%c: context, %x: str, %y: str) -> str {{\n{ops}  control.return(%v0)\n}}"


LONG = "A text that is long enough "


@pytest.mark.parametrize("lines, expected", [
    (['"same"', '"same"'], ["same"]),
    # Where the texts part: at the end of one, inside both, after a value.
    ([f'"{LONG}"', f'"{LONG}and more"'], [LONG, "and more"]),
    ([f'"{LONG}and more"', f'"{LONG}"'], [LONG, "and more"]),
    ([f'"{LONG}1"', f'"{LONG}2"', f'"{LONG}3"'], [LONG, "1", "2", "3"]),
    ([f'"{LONG}{LONG}1"', f'"{LONG}{LONG}2"', f'"{LONG}3"'], [LONG, LONG, "1", "2", "3"]),
    ([f'"{LONG}3"', f'"{LONG}{LONG}1"', f'"{LONG}{LONG}2"'], [LONG, "3", LONG, "1", "2"]),
    # Too little is shared.
    (['"one"', '"on"', '"two"'], ["on", "e", "two"]),
    (['"one 1"', '"one 2"'], ["one 1", "one 2"]),
])
def test_texts_to_one_context(lines, expected):
    module = numbered(appends(*lines))
    assert texts(module) == expected
    assert PASSES["number_contexts"](module) is module


def test_texts_with_values_part_behind_the_values():
    body = appends("%t0", "%t1").replace(
        " {\n", ' {\n  %t0: str = text.concat(%x, "; a")\n  %t1: str = text.concat(%x, "; b", %y)\n', 1)
    text = print_module(numbered(body))
    assert 'text.concat(%x, "; ")' in text and 'context.append(%start, "a")' in text and 'text.concat("b", %y)' in text


def test_what_a_region_computes_stays_in_it():
    text = print_module(numbered(f'''func @f(%c: context, %b: bool) -> str {{
  %x: str = control.if(%b) {{
    %a: context = context.append(%c, "{LONG}1")[role = user]
    %a_1: context, %v: str = lm.gen(%a)[role = assistant, site = "0"]
    control.yield(%v)
  }} {{
    control.yield("")
  }}
  %d: context = context.append(%c, "{LONG}1")[role = user]
  %d_1: context, %w: str = lm.gen(%d)[role = assistant, site = "1"]
  %e: str = control.if(%b) {{
    %a_2: context = context.append(%c, "{LONG}1")[role = user]
    %a_3: context, %u: str = lm.gen(%a_2)[role = assistant, site = "2"]
    control.yield(%u)
  }} {{
    control.yield("")
  }}
  control.return(%w)
}}'''))
    assert text.count("context.append") == 2 and "lm.gen(%d)" in text.split("%e: str")[1]


@pytest.mark.parametrize("body, stay", [
    ("list.make(%a0, %a1)", 2), ("list.make(%a0)", 1), ("list.make(%c)", 1),
])
def test_contexts_that_may_be_compared_stay_apart(body, stay):
    text = appends('"same"', '"same"').replace("  control.return", f"  %l: list<context> = {body}\n  control.return")
    assert len(texts(numbered(text))) == stay


def test_an_empty_rest_would_be_the_same_context():
    """An append of nothing gives the very context: what may be compared is not cut where only a value may follow."""
    body = appends("%t0", "%t1").replace(" {\n", f' {{\n  %t0: str = text.concat("{LONG}", %x)\n  %t1: str = text.concat("{LONG}", %y)\n', 1)
    assert print_module(numbered(body)).count("%start") > 1
    seen = body.replace("  control.return", "  %l: list<context> = list.make(%a0, %a1)\n  control.return")
    assert "%start" not in print_module(numbered(seen))


IDENTITY = '''
def main() -> list[bool]:
    user: "The beginning of it all"
    a = here
    b = here
    resume a
    user: "y"
    c = here
    resume a
    user: "y"
    d = here
    empty = ""
    resume a
    user: "${empty}"
    e = here
    return [a == b, a != b, c == d, a == c, c in [d], a == e]
'''


def test_the_program_sees_the_same_identities(tmp_path):
    for level in (0, 1, 2):
        assert run(program_of(IDENTITY, tmp_path, level=level), dry_session(), "main").value == (True, False, False, False, False, True)


TWO_FUNCTIONS = '''
SYSTEM = "You answer in one word, and never explain what you have answered."

def first(q: str) -> str:
    system: "${SYSTEM}"
    user: "First: ${q}"
    assistant: a = gen(max_tokens=3)
    return a

def second(q: str) -> str:
    system: "${SYSTEM}"
    user: "Second: ${q}"
    assistant: a = gen(max_tokens=3)
    return a

def main(q: str) -> list[str]:
    return [first(q), second(q)]
'''


def test_a_system_text_common_to_two_functions(tmp_path):
    from lmc.compiler import compile_file

    path = tmp_path / "two.lmp"
    path.write_text(TWO_FUNCTIONS, encoding="utf-8")
    main = compile_file(str(path), level=2).module.function("main")
    assert sum(isinstance(op, ContextNew) for op in walk_ops(main.body)) == 1
    outcomes = []
    for level in (0, 2):
        session = dry_session()
        ended = run(program_of(TWO_FUNCTIONS, tmp_path, level=level), session, "main", "why")
        prompts = [r.prompt for r in session.requests]
        outcomes.append((ended.value, sorted(prompts)))
    assert outcomes[0] == outcomes[1]
    shared = next(i for i, (a, b) in enumerate(zip(*prompts)) if a != b)
    # The second call computes what it does not share, and the last token of what it does.
    assert ended.report.computed <= sum(map(len, prompts)) - shared + 2 + ended.report.generated


TWO_LITERALS = '''
def main() -> list[str]:
    user: "Here is an essay about the sea. Read it twice, take your time, and then say in one word how clear it is."
    assistant: a = gen(max_tokens=3)
    return [a, other()]

def other() -> str:
    user: "Here is an essay about the sea. Read it twice, take your time, and then say in one word how kind it is."
    assistant: b = gen(max_tokens=3)
    return b
'''


def test_text_common_to_two_literals_that_differ_at_the_end(tmp_path):
    """It is an append of its own, and the engine computes it once, though both are asked at once."""
    plain, shared = (shown(TWO_LITERALS, tmp_path, level=level) for level in (0, 2))
    assert plain.same == shared.same and not plain.error
    main = compiled(TWO_LITERALS, tmp_path).module.function("main")
    start, *ends = [op.text.value for op in walk_ops(main.body) if isinstance(op, ContextAppend)]
    assert start.endswith("in one word how ") and sorted(ends) == ["clear it is.", "kind it is."]
    assert shared.computed <= edges(shared.prompts) + len(shared.prompts)

