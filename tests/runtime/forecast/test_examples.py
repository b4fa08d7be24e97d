"""Every example: the plan's counts of text known before the run are those that the run reports, token for token."""

from pathlib import Path

import pytest

from lmc.compiler import compile_file
from lmc.levels import DEFAULT_LEVEL, LEVELS
from tests.runtime.forecast.runs import check_against_run

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
ESSAY = (EXAMPLES / "essay.txt").read_text(encoding="utf-8")

#: example: (function, arguments, fewest calls of the run)
RUNS = {
    "classify": ("classify_many", (["Fine.", "Broken on arrival.", "Great!"],), 3),
    "classify one": ("classify", ("Loved it, five stars!",), 1),
    "judge": ("judge", (ESSAY[:600], ["clarity", "evidence"]), 5),
    "react": ("react", ("What is 12 * 7?", 3), 2),
    "character": ("character", ("Hermione Granger",), 1),
    "chat": ("main", (), 2),
    "vote": ("solve", ("Tom has 3 apples and buys 4 more. How many has he?", 3), 6),
    "tree": ("tree", ("Use 4, 6, 8 and 8 to make 24.", 2, 2), 13),
}


def check(example: str, level: int, **model):
    name, args, least = RUNS[example]
    file = example.split()[0]
    program = compile_file(str(EXAMPLES / f"{file}.lmp"), level=level).program
    lines = iter(["What is a prime?", "Give one.", "/quit"])
    externs = {"search": lambda query: f"Nothing is known about {query}.", "calc": lambda expr: 1.5} if file == "react" else {}
    return check_against_run(program, name, *args, externs=externs, ask=lambda prompt: next(lines), least=least, **model)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("example", RUNS)
def test_on_the_stand_in_model(example, level):
    forecast = check(example, level)
    assert forecast.error is None and not forecast.note


def test_the_list_of_examples_is_whole():
    assert {path.stem for path in EXAMPLES.glob("*.lmp")} == {name.split()[0] for name in RUNS}


@pytest.mark.model
@pytest.mark.parametrize("example", RUNS)
def test_with_the_default_models_tokenizer(example, model_folder):
    """The stand-in model behind the real tokenizer and template: what is compared is the prompts."""
    from lmc.runtime.template import load_template
    from lmc.runtime.tokenizer import load_tokenizer

    tokenizer = load_tokenizer(model_folder)
    check(example, DEFAULT_LEVEL, tokenizer=tokenizer, template=load_template(model_folder, tokenizer))
