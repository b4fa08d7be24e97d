"""The seven example programs: on the stand-in model and on the default model, as written and optimised."""

import re

import pytest

import lmc
from lmc.embed import load_program
from tests.differential.examples import ESSAY, EXAMPLES, calc, search


def run(name: str, *, level: int, **settings):
    """The results of one small run of an example, as plain data, with what it printed and streamed."""
    said: list[str] = []
    lines = iter(["What is a prime?", "Give one.", "/quit"])
    settings = {"seed": 11, "print": said.append, "stream": said.append, "level": level, "input": lambda prompt: next(lines), **settings}
    externs = {"search": search, "calc": calc} if name == "react" else {}
    with lmc.load(EXAMPLES / f"{name}.lmp", externs=externs, **settings) as module:
        result = CALLS[name](module)
        report = module.report
    return result, "".join(said), report


CALLS = {
    "classify": lambda m: (m.classify(review="Loved it, five stars!"), m.classify_many(reviews=["Fine.", "Broken on arrival.", "Great!"])),
    "judge": lambda m: m.judge(essay=ESSAY[:600], dimensions=["clarity", "evidence"]),
    "react": lambda m: m.react(question="What is 12 * 7?", max_steps=2),
    "character": lambda m: m.character(name="Hermione Granger"),
    "chat": lambda m: m.main(),
    "vote": lambda m: m.solve(problem="Tom has 3 apples and buys 4 more. How many has he?", n=3),
    "tree": lambda m: m.tree(question="Use 4, 6, 8 and 8 to make 24.", width=2, depth=1),
}

LABELS = ("positive", "negative", "neutral")


def check_shape(name: str, result, said: str, report) -> None:
    """What the types promise, whatever the model wrote."""
    match name:
        case "classify":
            one, many = result
            assert one in LABELS and len(many) == 3 and set(many) <= set(LABELS)
        case "judge":
            assert result.grade in ("A", "B", "C", "D") and result.overall in range(1, 6) and len(result.summary) <= 240
            # Two branches think and note, one verdict.
            assert report.calls == 5
        case "react":
            assert isinstance(result, str) and (len(result) <= 80)
            assert report.calls in (2, 4)
        case "character":
            assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", result.born) and len(result.friends) <= 5 and len(result.name) <= 40
            assert result.house in ("Gryffindor", "Hufflepuff", "Ravenclaw", "Slytherin") and isinstance(result.alive, bool)
            assert result.wand.core in ("phoenix feather", "dragon heartstring", "unicorn hair") and isinstance(result.wand.length, float)
            assert result.patronus is None or len(result.patronus) <= 20
        case "chat":
            assert result is None and said and report.calls == 2
        case "vote":
            assert isinstance(result, int) and abs(result) < 10**18 and report.calls == 6
        case "tree":
            # Two branches propose and rate, one answer.
            assert isinstance(result, str) and report.calls == 5


@pytest.mark.parametrize("name", CALLS)
def test_on_the_stand_in_model(name):
    results = {}
    for level in (0, 1, 2):
        result, said, report = run(name, level=level, dry=True)
        check_shape(name, result, said, report)
        results[level] = (repr(result), said, report.calls, report.generated)
    assert results[0] == results[1] == results[2]


@pytest.mark.model
@pytest.mark.parametrize("name", CALLS)
def test_on_the_default_model_as_written_and_optimised(name, model_folder):
    """The issue's sentence: it runs, has its shape, and optimising changes no text in deterministic float32.

    -O2 runs all that -O1 runs, so that the two ends are enough here; the stand-in model and the random programs take the levels apart.
    """
    results = {}
    for level in (0, 2):
        result, said, report = run(name, level=level, model=str(model_folder), deterministic=True)
        check_shape(name, result, said, report)
        results[level] = (repr(result), said, report.calls, report.generated)
    assert results[0] == results[2]


def test_the_list_of_examples_is_whole():
    assert {path.stem for path in EXAMPLES.glob("*.lmp")} == set(CALLS)


def test_the_tools_answer_anything():
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("example_tools", EXAMPLES / "tools.py")
    tools = module_from_spec(spec)
    spec.loader.exec_module(tools)
    assert tools.calc("3 * (4 + 5)") == 27.0
    for text in ("", "1/0", "__import__('os')", "9**9**9", "(" * 500, "x" * 10_000, "\x00", "1e308*10", "3 apples"):
        assert tools.calc(text) == 0.0, text
    assert "Paris" in tools.search("Where is Paris?") and "Nothing" in tools.search("")


@pytest.mark.parametrize("name", CALLS)
def test_no_warning(name):
    from lmc.compiler import check_file

    checked = check_file(str(EXAMPLES / f"{name}.lmp"))
    assert checked.diagnostics == ()
    assert load_program(EXAMPLES / f"{name}.lmp").entries
