"""Coroutines side by side: results in order, the failure of the lowest index, and none that asyncio complains of."""

import asyncio
import gc

import pytest

from lmc.diagnostics import Diagnostic, RunError
from lmc.runtime.dry import DryModel
from lmc.runtime.side_by_side import in_program_order
from lmc.runtime.template import dry_template
from tests.runtime.programs import TOKENS, WatchedSession, program_of, run


async def after(turns: int, value: object, ended: list[object]) -> object:
    for _ in range(turns):
        await asyncio.sleep(0)
    ended.append(value)
    if isinstance(value, Exception):
        raise value
    return value


def side_by_side(*work: tuple[int, object]) -> tuple[object, list[object]]:
    """What comes out, and what ran to its end, in the order of time."""
    ended: list[object] = []
    try:
        return asyncio.run(in_program_order(after(turns, value, ended) for turns, value in work)), ended
    except RunError as error:
        return error.args[0], ended


def failure(message: str) -> RunError:
    return RunError(Diagnostic("E0833", message, None), kind="value")


def test_results_are_in_order_whatever_ends_first():
    assert side_by_side((5, "a"), (1, "b"), (3, "c")) == (["a", "b", "c"], ["b", "c", "a"])
    assert side_by_side() == ([], [])


def test_the_failure_of_the_lowest_index_counts_and_cancels_what_comes_after():
    late, early = failure("late"), failure("early")
    assert side_by_side((9, late), (2, early), (50, "cut"), (1, "done")) == ("late", ["done", early, late])
    assert side_by_side((9, "whole"), (2, early), (50, "cut")) == ("early", [early, "whole"])
    assert side_by_side((1, late), (1, early)) == ("late", [late, early])


BOTH = '''
def main() -> str:
    fork i in range(3):
        xs: list[str] = []
        raw: "Say ${i}: ${gen(max_tokens=2, min_tokens=2)}"
        x = xs[0]
    join x as found
    return found[0]
'''
CHOICE = 'def main() -> str:\n    raw: "One: ${x := select(["tea", "rain", "salt"])}"\n    return x\n'


class FailingModel(DryModel):
    def forward(self, rows):
        raise ValueError("no memory")


@pytest.mark.parametrize("text, model, message", [
    (BOTH, DryModel, "index 0 is out of range"), (CHOICE, FailingModel, "no memory"),
], ids=["branches", "options"])
def test_failures_beside_the_one_reported_are_looked_at(text, model, message, tmp_path, caplog):
    session = WatchedSession(model(TOKENS), TOKENS, dry_template(TOKENS), slots=512)
    ended = run(program_of(text, tmp_path), session, "main")
    assert message in ended.error.diagnostics[0].message
    del session, ended
    gc.collect()
    assert "never retrieved" not in caplog.text
