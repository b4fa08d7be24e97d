"""Rows start group by group and end in their order."""

import asyncio

import pytest

from lmc.ir.leading import leading_parameters
from lmc.runtime import rows as rows_module
from lmc.runtime.host import bind_externs
from lmc.runtime.instance import RunOptions, Sinks
from lmc.runtime.machine import Machine
from lmc.runtime.rows import ordered_rows, run_rows
from tests.runtime.programs import dry_session, program_of

QA = '''
def qa(question: str, document: str, style: str = "short") -> str:
    system: "Answer from the document."
    user: "Document: ${document}\\n"
    user: "Be ${style}. ${question}"
    assistant: a = gen(max_tokens=2, temperature=1.0)
    return a

def both(q: str, docs: list[str]) -> str:
    for d in docs:
        user: "<${d}>"
    x = qa(q, "none")
    user: "${x}"
    assistant: a = gen(max_tokens=2)
    return a

def through(q: str, d: str) -> str:
    return qa(q, bullets([d]))

def loud(d: str) -> str:
    print(d)
    user: "${d}"
    assistant: a = gen(max_tokens=2)
    return a
'''


@pytest.mark.parametrize("level", [0, 2])
def test_the_parameters_that_lead(level, tmp_path):
    functions = program_of(QA, tmp_path, level=level).functions
    found = {name: functions[name].leading for name in ("qa", "through", "loud")}
    assert found == {"qa": ("document", "style", "question"), "through": ("d", "q"), "loud": ("d",)}
    assert functions["both"].leading[0] == "docs"


def test_recursion_ends():
    from lmc.ir.reader import read_module
    from tests.passes.docstrings import module_text

    body = '''func @f(%a: str, %b: str) -> str {
  %c: context = context.new()
  %d: context = context.append(%c, %b)[role = raw]
  %x: str = call(%b, %a)[callee = "f", site = "0"]
  control.return(%x)
}'''
    assert leading_parameters(read_module(module_text(body)))["f"] == ("b",)


def started(code, rows) -> list[int]:
    return [index for index, _ in ordered_rows(code, enumerate(rows))]


def test_equal_leading_arguments_follow_one_another(tmp_path):
    functions = program_of(QA, tmp_path).functions
    rows = [{"question": q, "document": d, "style": s} for q, d, s in ["1Aa", "2Ba", "3Ab", "4Ca", "5Bb", "6Aa", "7Ba"]]
    assert started(functions["qa"], rows) == [0, 5, 2, 1, 6, 4, 3]
    assert started(functions["qa"], [("q", d) for d in "ABAB"]) == [0, 2, 1, 3]
    assert started(functions["loud"], [{"d": d} for d in "ABAB"]) == [0, 1, 2, 3]
    # A row that is no row, or lacks an argument, is refused when it runs.
    assert sorted(started(functions["qa"], [{"document": "A"}, None, {}, 5, {"document": ["A"]}])) == [0, 1, 2, 3, 4]


def test_long_batches_are_ordered_by_stretches(tmp_path, monkeypatch):
    monkeypatch.setattr(rows_module, "STRETCH", 4)
    code = program_of(QA, tmp_path).functions["qa"]
    assert started(code, ({"document": d} for d in "ABABAB")) == [0, 2, 1, 3, 4, 5]


def batch(program, rows, *, slots: int):
    session = dry_session(slots=slots)

    async def run():
        machine = Machine(program, session, bind_externs(program, {}))
        sinks = Sinks(print, lambda path, text: None)
        return [r async for r in run_rows(machine, program.functions["qa"], rows, RunOptions(seed=3), sinks)]

    try:
        results = asyncio.run(run())
    finally:
        session.close()
    return results, [r.prompt for r in session.requests]


def test_a_document_common_to_rows_is_computed_once_in_a_small_pool(tmp_path, monkeypatch):
    """Two documents in turn, and a pool that holds one of them: as the rows come, each is computed anew."""
    monkeypatch.setattr(rows_module, "WINDOW", 1)
    program = program_of(QA, tmp_path)
    documents = [" ".join(f"{word}{i}" for i in range(60)) for word in ("apple", "pear")]
    rows = [{"document": documents[i % 2], "question": f"Question {i}?"} for i in range(12)]
    grouped, prompts = batch(program, rows, slots=600)
    monkeypatch.setattr(rows_module, "ordered_rows", lambda code, rows: iter(rows))
    written, in_turn = batch(program, rows, slots=600)
    assert [r.index for r in grouped] == [r.index for r in written] == list(range(12))
    assert [r.value for r in grouped] == [r.value for r in written] and sorted(prompts) == sorted(in_turn) and prompts != in_turn
    computed = [sum(r.report.computed for r in results) for results in (grouped, written)]
    lengths = [len(p) for p in in_turn]
    # Grouped, of each row but the first of its document only the question is computed.
    assert computed[0] < 2 * max(lengths) + 10 * 60 and computed[1] > 3 * computed[0]
