"""From the rows of the data to the arguments of the programs.

    {"activity": "Skating", "ctx": "Children tie…", "endings": […], …}
    ->  {"shots": [{"activity": …, "begins": …, "ends": …}, …], "activity": "Skating", "begins": "Children tie…", "endings": […]}

What many rows share (examples, a header) stands in each of them, as it would in the prompts: that it is computed once is the
runtime's work, and part of what is measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lmc.cli.workloads.data import Data
from lmc.cli.workloads.ranking import ranked

_MMLU_SHOTS, _HELLASWAG_SHOTS = 5, 20
#: Passages before a question.
_PASSAGES = 3


def mmlu(data: Data) -> Iterator[dict[str, Any]]:
    """The five examples of a question's own subject, and the question."""
    shots: dict[str, list[dict[str, Any]]] = {}
    for row in data.read("mmlu.jsonl", split="shot"):
        shots.setdefault(row["subject"], []).append({"asked": _question(row), "answer": row["answer"]})
    for row in data.read("mmlu.jsonl", split="test"):
        subject = row["subject"]
        yield {"subject": subject.replace("_", " "), "shots": shots[subject][:_MMLU_SHOTS], "asked": _question(row)}


def _question(row: dict[str, Any]) -> dict[str, Any]:
    return {"question": row["question"], "choices": row["choices"]}


def hellaswag(data: Data) -> Iterator[dict[str, Any]]:
    shots = [{"activity": row["activity"], "begins": row["ctx"], "ends": row["endings"][row["label"]]}
             for row in data.read("hellaswag.jsonl", split="shot")[:_HELLASWAG_SHOTS]]
    for row in data.read("hellaswag.jsonl", split="test"):
        yield {"shots": shots, "activity": row["activity"], "begins": row["ctx"], "endings": row["endings"]}


def react_replay(data: Data) -> Iterator[dict[str, Any]]:
    """The recorded steps of each trace; what ends it is left to the model."""
    examples = _react_examples(data)
    for row in data.read("react_hotpotqa.jsonl"):
        steps = [{name: step[name] for name in ("thought", "action", "observation")} for step in row["steps"]]
        yield {"examples": examples, "question": row["question"], "steps": steps}


def react_agent(data: Data) -> Iterator[dict[str, Any]]:
    examples = _react_examples(data)
    for row in data.read("react_hotpotqa.jsonl"):
        yield {"examples": examples, "question": row["question"]}


def _react_examples(data: Data) -> str:
    """The instruction and six worked examples: the text of the template before the question."""
    templates = {row["id"]: row for row in data.read("prompt_templates.jsonl")}
    return templates["react_6shot"]["segments"][0]["lit"]


#: For each recorded function: the member of the program's `Event`, and its fields by the names of the recorded arguments.
_EVENTS = {
    "poignancy_event": ("Poignancy", {"person": "persona_name", "description": "persona_iss", "event": "event"}),
    "generate_event_triple": ("Triple", {"person": "persona_name", "action": "action"}),
    "generate_pronunciatio": ("Emoji", {"action": "action"}),
    "action_location_sector": ("Sector", {
        "person": "persona_name", "home": "living_sector", "home_areas": "living_sector_areas", "place": "current_sector",
        "place_areas": "current_sector_areas", "plan": "daily_plan", "options": "sector_options", "action": "current_action",
        "next": "next_action",
    }),
    "action_location_object": ("Area", {
        "person": "persona_name", "sector": "target_sector", "areas": "target_sector_areas", "action": "current_action",
        "next": "next_action",
    }),
}


def generative_agents(data: Data) -> Iterator[dict[str, Any]]:
    """The events of the simulation, in the order of its clock."""
    for row in data.read("generative_agents.jsonl"):
        kind, fields = _EVENTS[row["function"]]
        yield {"event": {"type": kind, **{field: row["args"][recorded] for field, recorded in fields.items()}}}


def questions(data: Data) -> Iterator[dict[str, Any]]:
    for row in data.read("gsm8k.jsonl", split="test"):
        yield {"question": row["question"]}


def topics(data: Data) -> Iterator[dict[str, Any]]:
    for row in data.read("skeleton_tips.jsonl", kind="tip_topic"):
        yield {"topic": row["text"]}


def essays(data: Data) -> Iterator[dict[str, Any]]:
    for row in data.read("judge_essays.jsonl"):
        yield {"article": row["text"]}


def documents(data: Data) -> Iterator[dict[str, Any]]:
    for row in data.read("country_docs.jsonl"):
        yield {"document": row["document"]}


def names(data: Data) -> Iterator[dict[str, Any]]:
    for row in data.read("character_names.jsonl"):
        yield {"name": row["name"]}


def chats(lengths: str, data: Data) -> Iterator[dict[str, Any]]:
    """`lengths`: the field with the number of tokens of each reply."""
    for row in data.read("multi_turn_chat.jsonl"):
        yield {"turns": [{"prompt": turn["prompt"], "reply_tokens": turn[lengths]} for turn in row["turns"]]}


def with_passages(data: Data) -> Iterator[dict[str, Any]]:
    """Each question with the passages that fit it best, of those of all questions."""
    found = data.read("hotpotqa_rag.jsonl")
    # The same page may belong to several questions.
    passages = list(dict.fromkeys(f"{page['title']} | {''.join(page['sentences'])}" for row in found for page in row["paragraphs"]))
    best = ranked([row["question"] for row in found], passages, _PASSAGES)
    for row, chosen in zip(found, best):
        yield {"question": row["question"], "passages": chosen}
