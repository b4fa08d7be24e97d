"""Functions that are too large, or return too early, to be inlined share what they begin with all the same."""

import pytest

from lmc.ir.core import walk_ops
from lmc.ir.ops import Call, ContextAppend, Map
from tests.passes.sharing import compiled, edges, shown

AGENT = '''
def solve(tools: str, problem: str, rounds: int) -> str:
    system: "You solve problems step by step, and say DONE when you have an answer. Your tools: ${tools}"
    user: "The problem: ${problem}"
    for i in range(rounds):
        assistant: step = gen(max_tokens=3, temperature=0.8)
        if len(step) > 10:
            return step
        user: "Go on."
    assistant: last = select(["yes", "no"])
    return last

def main(tools: str, problems: list[str], rounds: int) -> list[str]:
    return [solve(tools, p, rounds) for p in problems]
'''
ARGUMENTS = ["a hammer, a saw and a very long list of other things", ["two and two", "the sea", "x"]]


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_nothing_changes_and_the_system_text_is_computed_once(rounds, tmp_path):
    plain, split = (shown(AGENT, tmp_path, *ARGUMENTS, rounds, level=level) for level in (0, 2))
    assert plain.same == split.same and not plain.error and (plain.prompts or not rounds)
    if rounds == 1:
        firsts = [p for p in split.prompts if p[0].endswith("/0:0/1")]
        assert len(firsts) == 3 and split.computed < sum(len(p[2]) for p in split.prompts)
        assert edges(firsts) < sum(len(p[2]) for p in firsts)


def test_the_loop_is_left_by_what_does_not_vary(tmp_path):
    main = compiled(AGENT, tmp_path).module.function("main")
    loop, = (op for op in main.body.ops if isinstance(op, Map))
    call, = (op for op in loop.body.ops if isinstance(op, Call))
    assert call.callee == "solve+prefix"
    # The problem, behind which a loop may have no round, stays in the function.
    assert len([op for op in main.body.ops if isinstance(op, ContextAppend)]) == 1
    assert not any(isinstance(op, ContextAppend) for op in walk_ops(loop.body))


def test_errors_and_budgets_name_the_function_as_it_was_written(tmp_path):
    text = AGENT.replace("        if len(step)", "        assert len(problem) > 1\n        if len(step)")
    plain, split = (shown(text, tmp_path, *ARGUMENTS, 2, level=level) for level in (0, 2))
    assert plain.error == split.error and "in `solve`, called at" in plain.error
    from lmc.runtime.instance import Budgets

    plain, split = (shown(AGENT, tmp_path, *ARGUMENTS, 2, level=level, budgets=Budgets(calls=1)) for level in (0, 2))
    assert "E0838" in plain.error and "in `solve`" in plain.error and plain.error == split.error


def test_an_entry_that_is_also_called_keeps_its_own_beginning(tmp_path):
    plain, split = (shown(AGENT, tmp_path, "none", "p", 1, level=level, name="solve") for level in (0, 2))
    assert plain.same == split.same
    assert compiled(AGENT, tmp_path).program.functions["solve"].leading == ("tools", "problem")
