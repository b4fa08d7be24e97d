"""Random programs: every call that a run makes was foreseen, with the tokens that were said to be known, and no sure one is missing."""

import asyncio

import pytest

from lmc.diagnostics import LmcError, RunError
from lmc.passes import passes_of
from lmc.runtime.arguments import bind_arguments
from lmc.runtime.forecast.summary import rows_of, total_times
from lmc.runtime.forecast.tree import Call, Group
from lmc.runtime.host import bind_externs
from lmc.runtime.instance import RunOptions, Sinks
from lmc.runtime.machine import Machine
from tests.differential.programs import random_program
from tests.differential.runs import ARGUMENTS, BUDGETS, EXTERNS, compiled, lowered
from tests.runtime.forecast.runs import TOKENS, check_call, dry_template, foreseen, prompts_of, session_on

#: Programs in a test, and how many tests: enough to meet every kind of statement.
_PROGRAMS, _TESTS = 12, 5


def ran(program):
    """The report of a run, the prompts that it asked, and the error it stopped with."""
    session = session_on(TOKENS, dry_template(TOKENS))
    externs = bind_externs(program, EXTERNS)
    run = Machine(program, session, externs).start(RunOptions(seed=5, budgets=BUDGETS), Sinks(lambda text: None, lambda path, text: None))
    arguments = bind_arguments(program.functions["main"], ARGUMENTS, {}, externs.types)

    async def main():
        try:
            await run.call("main", arguments)
        except RunError as error:
            return error
        return None

    error = asyncio.run(main())
    session.close()
    return run.report, prompts_of(session), error


def repeats(node: Group | Call) -> bool:
    return isinstance(node, Group) and (node.repeated or bool(node.note) or any(map(repeats, node.members)))


def check(seed: int, level: int) -> None:
    program = compiled(lowered(random_program(seed)), passes_of(level))
    forecast = foreseen(program, "main", *ARGUMENTS, options=RunOptions(seed=5, budgets=BUDGETS))
    try:
        report, prompts, error = ran(program)
    except LmcError as error:
        # The generator writes a `max_tokens` now and then in which no value fits: no run of it begins.
        assert all(d.code == "E0641" for d in error.diagnostics), error
        return
    assert error is None or error.kind != "internal", error
    calls = {(c.call.kind, c.call.path, str(c.call.span)): c for c in forecast.all_calls}
    for count in report.by_call:
        call = calls.get((count.kind, count.path, count.where))
        if call is None:
            # What stands beside a certain failure may have been asked before it.
            assert repeats(forecast.root) or forecast.note or forecast.error is not None, f"{count} was not foreseen"
        else:
            check_call(call, count, prompts.get((count.kind, count.path, count.where)))
    if error is None:
        assert forecast.error is None
        asked = {(c.kind, c.path, c.where) for c in report.by_call}
        missing = [key for key, c in calls.items() if c.call.sure and key not in asked]
        assert not missing or forecast.note, f"foreseen and not asked: {missing}"
        times = total_times(rows_of(forecast, summarised=True))
        assert forecast.note or repeats(forecast.root) or times.least <= report.calls and (times.most is None or report.calls <= times.most)
    assert forecast.text() and forecast.data() and forecast.data(calls=True)


@pytest.mark.parametrize("test", range(_TESTS))
def test_what_a_run_asks_was_foreseen(test):
    for number in range(_PROGRAMS):
        check(test * _PROGRAMS + number, (test + number) % 3)
