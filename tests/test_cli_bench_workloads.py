"""`lmc bench workloads`: each program has the shape of its workload, runs on the sample, and is reported with numbers that fit together."""

import json
import re
import shlex
from itertools import islice
from pathlib import Path

import pytest

import lmc
from lmc.cli.entry import run_command
from lmc.cli.workloads.articles import Articles
from lmc.cli.workloads.data import Data
from lmc.cli.workloads.peak_memory import peak_bytes, reset_peak
from lmc.cli.workloads.ranking import ranked
from lmc.cli.workloads.table import QUICK_DOCUMENT, QUICK_TOKENS, WORKLOADS, quick
from lmc.compiler import check_file

EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "workloads"
SAMPLE = Data(EXAMPLES / "sample")
BY_NAME = {workload.name: workload for workload in WORKLOADS}

# Of the sample's first row: calls of the model, how many of them at once, how many in sequence, and the most tokens that they write.
SHAPES = {
    "mmlu": (1, 1, 1, {1}),
    "hellaswag": (1, 1, 1, set()),
    "react_replay": (3, 1, 3, {200}),
    "generative_agents": (1, 1, 1, {10}),
    "tree_of_thought_30": (2 + 4 + 8 + 16, 16, 4, {256}),
    "tree_of_thought_39": (3 + 9 + 27, 27, 3, {256}),
    "skeleton_of_thought": (5 + 5, 2, 6, {24, 128}),
    "llm_judge": (6 + 1, 6, 2, {256, 2}),
    # Its limit is 256, and the regex allows 229 characters at most.
    "json_object": (1, 1, 1, {229}),
    # A latitude has seven characters at most, with its space.
    "json_fields": (5, 1, 5, {8, 7, 24}),
    "json_character": (1, 1, 1, {256}),
    "multi_turn_chat_short": (4, 1, 4, {4, 5, 6, 8}),
    "multi_turn_chat_long": (4, 1, 4, {260, 333, 401, 512}),
    "rag": (1, 1, 1, {75}),
    "self_consistency": (5 + 1, 5, 2, {256, 16}),
}
# Of the five kinds of the simulation's questions.
EVENT_LIMITS = {"Poignancy": 2, "Triple": 20, "Emoji": 6, "Sector": 10, "Area": 5}


def rows(name: str, count: int):
    return list(islice(BY_NAME[name].rows(SAMPLE), count))


def plan(name: str, row) -> dict:
    workload = BY_NAME[name]
    with lmc.load(EXAMPLES / f"{workload.program}.lmp", dry=True, externs=workload.externs(SAMPLE)) as module:
        return getattr(module, workload.function).plan(**row).data(calls=True)


def calls_of(node: dict) -> list[dict]:
    return [node] if node["node"] == "call" else [call for member in node["members"] for call in calls_of(member)]


def test_the_table_is_whole():
    assert set(BY_NAME) == set(SHAPES) | {"react_agent"}
    assert {workload.program for workload in WORKLOADS} == {path.stem for path in EXAMPLES.glob("*.lmp")}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.lmp")), ids=lambda path: path.stem)
def test_no_warning(path):
    assert check_file(str(path)).diagnostics == ()


@pytest.mark.parametrize("name", SHAPES)
def test_shape(name):
    calls, at_once, in_sequence, most = SHAPES[name]
    data = plan(name, rows(name, 1)[0])
    assert data["error"] is None and data["calls"] == {"least": calls, "most": calls}
    assert (data["at_once"], data["in_sequence"]) == (at_once, in_sequence)
    assert {call["writes"]["most"] for call in calls_of(data["tree"]) if call["kind"] == "gen"} == most


def test_the_live_agent_ends_within_seven_steps():
    assert plan("react_agent", rows("react_agent", 1)[0])["calls"] == {"least": 2, "most": 14}


def test_a_replay_generates_once_for_each_step_and_once_more():
    assert [(len(row["steps"]), plan("react_replay", row)["calls"]["least"]) for row in rows("react_replay", 3)] == [(2, 3), (1, 2), (3, 4)]


def test_five_kinds_of_events():
    for kind, most in EVENT_LIMITS.items():
        row = next(row for row in rows("generative_agents", 10) if row["event"]["type"] == kind)
        (call,) = calls_of(plan("generative_agents", row)["tree"])
        assert call["writes"]["most"] == most, kind


def test_shots_choices_and_passages():
    assert [len(row["shots"]) for row in rows("mmlu", 2)] == [5, 5]
    assert [(len(row["shots"]), len(row["endings"])) for row in rows("hellaswag", 2)] == [(20, 4), (20, 4)]
    assert rows("react_replay", 1)[0]["examples"].count("Question:") == 6
    assert [len(row["passages"]) for row in rows("rag", 2)] == [3, 3]


def test_every_workload_runs_on_the_sample(tmp_path, capsys):
    out = tmp_path / "results.json"
    assert run_command(["bench", "workloads", "--dry", "--rows", "2", "--programs", str(EXAMPLES), "--out", str(out)]) == 0
    head, *lines, cut, took = capsys.readouterr().out.splitlines()
    assert cut.startswith(f"quick: free texts end at {QUICK_TOKENS} tokens and documents at 3,000 characters")
    assert re.fullmatch(r"\d+ seconds in all", took)
    assert head.split()[:3] == ["workload", "by", "rows"] and [line.split()[0] for line in lines] == list(BY_NAME)
    data = json.loads(out.read_text())
    assert (data["model"], data["scale"]) == ("the stand-in model", "quick") and data["data"] == str(EXAMPLES / "sample")
    for outcome in data["outcomes"]:
        check(outcome)


def check(outcome: dict) -> None:
    name = outcome["workload"]
    assert (outcome["programs"], outcome["failed"], outcome["errors"]) == (2, 0, []) and None not in outcome["values"], name
    assert outcome["passes"] > 0 and outcome["computed"] > 0 and outcome["output"] > 0 and outcome["peak_bytes"] > 0, name
    assert outcome["hit_rate"] == 1 - outcome["computed"] / outcome["prompt"] <= outcome["best_hit_rate"] == 1 - outcome["fewest"] / outcome["prompt"]
    assert len(outcome["asked"]) >= outcome["calls"], name
    if name in SHAPES and name != "react_replay":
        assert outcome["calls"] == 2 * SHAPES[name][0], name
    if name in ("multi_turn_chat_short", "multi_turn_chat_long"):
        asked = [min(turn["reply_tokens"], QUICK_TOKENS) for row in rows(name, 2) for turn in row["turns"]]
        assert outcome["output"] == sum(asked), "end tokens are passed over"
    if name == "tree_of_thought_39":
        assert outcome["hit_rate"] > 0.9, "a branch reads what stands above it from the cache"


def test_quick_shortens_documents_and_nothing_else_of_a_row():
    class Long(Data):
        def read(self, name, **fields):
            return [{**row, "document": row["document"] * 9} for row in super().read(name, **fields)] if "country" in name else super().read(name, **fields)

    data = Long(SAMPLE.folder)
    for name, workload in BY_NAME.items():
        for short, whole in zip(islice(quick(workload).rows(data), 3), workload.rows(data)):
            assert short == (whole | {"document": whole["document"][:QUICK_DOCUMENT]} if "document" in whole else whole), name
            assert len(whole.get("document", "x" * 9999)) > QUICK_DOCUMENT


def test_full_has_the_limits_of_the_programs(tmp_path, capsys):
    out = tmp_path / "results.json"
    words = ["bench", "workloads", "--dry", "--rows", "1", "--scale", "full", "--only", "multi_turn_chat_long", "--programs", str(EXAMPLES)]
    assert run_command([*words, "--out", str(out)]) == 0
    assert json.loads(out.read_text())["outcomes"][0]["output"] == 260 + 333 + 401 + 512
    assert "quick" not in capsys.readouterr().out


def test_no_run_finds_what_another_has_left(tmp_path):
    """Both read the same documents; had they one cache, the second would compute less than alone."""
    def computed(*names: str) -> dict[str, int]:
        out = tmp_path / "results.json"
        only = [word for name in names for word in ("--only", name)]
        assert run_command(["bench", "workloads", "--dry", "--rows", "1", *only, "--programs", str(EXAMPLES), "--out", str(out)]) == 0
        return {outcome["workload"]: outcome["computed"] for outcome in json.loads(out.read_text())["outcomes"]}

    assert computed("json_object", "json_fields") == computed("json_object") | computed("json_fields")


def test_failed_rows_are_counted(tmp_path, capsys):
    """A document that is longer than the context fails alone."""
    documents = [json.dumps({"document": text}) for text in ("A small country.", "word " * 9000)]
    (tmp_path / "country_docs.jsonl").write_text("\n".join(documents))
    words = ["bench", "workloads", "--dry", "--scale", "full", "--only", "json_object", "--data", str(tmp_path), "--programs", str(EXAMPLES)]
    assert run_command(words) == 3
    shown = capsys.readouterr().out
    assert "    1 of 2 rows failed\n" in shown and "the model's context 8192" in shown


def test_what_is_missing_is_named(tmp_path, capsys):
    words = ["bench", "workloads", "--dry", "--only", "mmlu"]
    assert run_command([*words, "--data", str(tmp_path), "--programs", str(EXAMPLES)]) == 2
    assert "mmlu.jsonl` does not exist" in capsys.readouterr().err
    for text, message in (('{"split": "shot"', "line 2 of `"), ("[1]", "is no JSON object"), ('{"split": "test"}', "have no `subject`")):
        (tmp_path / "mmlu.jsonl").write_text("\n" + text)
        assert run_command([*words, "--data", str(tmp_path), "--programs", str(EXAMPLES)]) == 2
        assert message in capsys.readouterr().err
    assert run_command([*words, "--data", str(SAMPLE.folder), "--programs", str(tmp_path)]) == 2
    assert "mmlu.lmp` does not exist" in capsys.readouterr().err
    out = tmp_path / "nowhere" / "results.json"
    assert run_command([*words, "--rows", "1", "--programs", str(EXAMPLES), "--out", str(out)]) == 2
    assert "results.json` cannot be written" in capsys.readouterr().err


def test_articles():
    articles = Articles(SAMPLE)
    assert articles.search("lake PERLE") == "Lake Perle is a lake in the hills."
    assert articles.search("Lake Maud").startswith("Could not find [Lake Maud]. Similar: lake orne, lake perle,")
    assert articles.lookup("Lake Orne", "area") == "(Result 1 / 1) Lake Orne has an area of 31 square kilometres."
    assert articles.lookup("", "area") == "No sentence with [area]."


def test_ranking():
    passages = ["Bread | Bread is baked.", "Valmont | A bridge of 1904.", "Orne | A lake, and a bridge; a lake of a lake."]
    assert ranked(["Who built the bridge of Valmont?", "bread"], passages, 2) == [[passages[1], passages[2]], [passages[0], passages[1]]]
    assert ranked([], [], 3) == [] and ranked(["x"], [], 3) == [[]]


def test_peak_memory():
    """A peak goes with its allocation, and comes back no lower than what is held."""
    reset_peak()
    before = peak_bytes()
    block = bytearray(64 << 20)
    block[::4096] = b"x" * len(block[::4096])
    assert peak_bytes() - before > 48 << 20


def test_the_page_lists_what_there_is():
    page = (EXAMPLES.parent.parent / "docs" / "workloads.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \| `(\w+)\.lmp` \|.*\| (\d+) \|$", page, re.MULTILINE)
    assert listed == [(workload.name, workload.program, str(workload.full)) for workload in WORKLOADS]
    assert set(re.findall(r"^\| `(\w+\.jsonl)` \|", page, re.MULTILINE)) == {path.name for path in SAMPLE.folder.iterdir()}


COMMANDS = [shlex.split(line[1:]) for path in sorted(EXAMPLES.glob("*.lmp")) for line in path.read_text(encoding="utf-8").splitlines()
            if line.startswith("#   lmc ")]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[2].rpartition("/")[2] if words[1] == "run" else words[-1])
def test_commands_in_the_programs(words, monkeypatch, capsys):
    """What a program's first lines say can be typed."""
    monkeypatch.chdir(EXAMPLES.parent.parent)
    assert len(COMMANDS) == len(list(EXAMPLES.glob("*.lmp")))
    if words[1] == "run":
        assert run_command([*words[1:], "--dry", "--quiet"]) == 0
    else:
        assert words[:4] == ["lmc", "bench", "workloads", "--only"] and set(words[4::2]) <= set(BY_NAME)
