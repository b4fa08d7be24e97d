"""Prompts are put in another order where the user asks for it, and never otherwise; what was moved is told with its place."""

import pytest

from lmc.cli.entry import run_command
from lmc.passes import passes_of
from tests.passes.sharing import compiled, edges, shown

PROGRAM = '''
def ask(document: str, question: str) -> str:
    user: """
        Question: ${question}

        Answer from this document: ${document}
        Answer in one word.
        """
    assistant: a = gen(max_tokens=2)
    return a

def main(document: str, questions: list[str]) -> list[str]:
    return [ask(document, q) for q in questions]
'''
QUESTIONS = ["When does it open?", "Who works there?"]
AS_WRITTEN = "Question: {}\n\nAnswer from this document: D\nAnswer in one word."
MOVED = "Answer from this document: D\nAnswer in one word.\nQuestion: {}\n"


def prompts_of(program) -> list[str]:
    from tests.runtime.programs import TOKENS, dry_session, run

    session = dry_session()
    run(program, session, "main", "D", QUESTIONS)
    return sorted(TOKENS.decode_bytes(r.prompt).decode() + r.heal.decode() for r in session.requests)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_no_level_moves_anything(level, tmp_path):
    assert "reorder" not in passes_of(level)
    prompts = prompts_of(compiled(PROGRAM, tmp_path, level).program)
    assert all(AS_WRITTEN.format(q) in p for q, p in zip(QUESTIONS, prompts))


def test_lines_that_do_not_vary_go_first_where_it_is_asked_for(tmp_path):
    from lmc.compiler import compile_file

    compiled(PROGRAM, tmp_path)
    result = compile_file(str(tmp_path / "program.lmp"), level=2, reordered=True)
    prompts = prompts_of(result.program)
    assert all(MOVED.format(q) in p for q, p in zip(QUESTIONS, prompts))
    assert [(d.code, d.span.line) for d in result.moved] == [("W183", 2), ("W183", 2)]
    assert [d.message.partition(": ")[2] for d in result.moved] == [
        '"Answer from this document: ${document}"', '"Answer in one word."']
    assert edges([(0, 0, p, 0) for p in prompts]) < edges([(0, 0, p, 0) for p in prompts_of(compiled(PROGRAM, tmp_path).program)])


def test_the_commands_say_what_they_moved(tmp_path, capsys):
    compiled(PROGRAM, tmp_path)
    file = str(tmp_path / "program.lmp")
    arguments = ["--document", "D", "--questions", '["a"]', "--dry", "-q"]
    for command in (["compile", file, "-O2", "--emit-ir"], ["run", f"{file}:main", "-O2", *arguments]):
        assert run_command(command) == 0
        assert "W183" not in capsys.readouterr().err
        assert run_command([*command, "--reorder"]) == 0
        err = capsys.readouterr().err
        assert err.count("warning[W183]: moved before the lines that vary: ") == 2 and "program.lmp:2:11" in err


def test_a_parameter_named_reorder_is_an_argument(tmp_path, capsys):
    compiled(PROGRAM.replace("def main(document: str", "def main(reorder: str").replace("ask(document, q)", "ask(reorder, q)"), tmp_path)
    command = ["run", f"{tmp_path / 'program.lmp'}:main", "-O2", "--reorder", "D", "--questions", '["a"]', "--dry", "-q"]
    assert run_command(command) == 0
    assert "W183" not in capsys.readouterr().err
    assert run_command([*command, "--lmc-reorder"]) == 0
    assert capsys.readouterr().err.count("W183") == 2


def test_answers_stay_in_place(tmp_path):
    """The results are those of other prompts, in the order of the questions."""
    one = shown(PROGRAM, tmp_path, "D", QUESTIONS)
    assert len(one.value) == 2 and not one.error
