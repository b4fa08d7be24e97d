"""Which workloads there are: each one's program, where its rows come from, and how many there are.

    mmlu        examples/workloads/mmlu.lmp:mmlu        a header, five examples, one token
    llm_judge   examples/workloads/llm_judge.lmp:…      an essay, six branches, one grade

This file knows neither a model nor who runs the programs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from lmc.cli.workloads import rows
from lmc.cli.workloads.articles import Articles
from lmc.cli.workloads.data import Data

#: The arguments of one run of a program, by name.
Row = dict[str, Any]


def _none(data: Data) -> Mapping[str, Callable[..., Any]]:
    return {}


def _articles(data: Data) -> Mapping[str, Callable[..., Any]]:
    articles = Articles(data)
    return {"search": articles.search, "lookup": articles.lookup}


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload of the paper, or a form of one.

    name: as `--only` has it
    program, function: the `.lmp` file without its suffix, and what is called in it
    rows: from the data to the arguments of each run, in order
    full: rows at the size of the paper's scripts; there may be fewer in the data
    quick: rows where it is only looked at
    in_order: one run after the other, because each one needs the world that the one before has left
    side_by_side: whether a run asks for several things at once
    externs: the Python functions that the program is bound to
    """

    name: str
    program: str
    function: str
    rows: Callable[[Data], Iterator[Row]]
    full: int
    quick: int = 4
    in_order: bool = False
    side_by_side: bool = False
    externs: Callable[[Data], Mapping[str, Callable[..., Any]]] = _none


WORKLOADS = (
    Workload("mmlu", "mmlu", "mmlu", rows.mmlu, 400),
    Workload("hellaswag", "hellaswag", "hellaswag", rows.hellaswag, 200),
    Workload("react_replay", "react_replay", "react_replay", rows.react_replay, 100, quick=2),
    Workload("react_agent", "react_agent", "react_agent", rows.react_agent, 100, quick=2, externs=_articles),
    # Quick is a round of all within minutes, so about a thousand generated tokens of each; here two of each of the five kinds.
    Workload("generative_agents", "generative_agents", "generative_agents", rows.generative_agents, 400, quick=10, in_order=True),
    Workload("tree_of_thought_30", "tree_of_thought", "deep", rows.questions, 32, quick=1, side_by_side=True),
    Workload("tree_of_thought_39", "tree_of_thought", "wide", rows.questions, 32, quick=1, side_by_side=True),
    Workload("skeleton_of_thought", "skeleton_of_thought", "skeleton_of_thought", rows.topics, 50, quick=2, side_by_side=True),
    Workload("llm_judge", "llm_judge", "llm_judge", rows.essays, 25, quick=2, side_by_side=True),
    Workload("json_object", "json_decoding", "country", rows.documents, 30),
    Workload("json_fields", "json_decoding", "by_field", rows.documents, 20),
    Workload("json_character", "json_decoding", "character", rows.names, 50),
    Workload("multi_turn_chat_short", "multi_turn_chat", "multi_turn_chat", partial(rows.chats, "new_tokens_short"), 20),
    Workload("multi_turn_chat_long", "multi_turn_chat", "multi_turn_chat", partial(rows.chats, "new_tokens_long"), 20, quick=1),
    Workload("rag", "rag", "rag", rows.with_passages, 60),
    Workload("self_consistency", "self_consistency", "self_consistency", rows.questions, 64, quick=2, side_by_side=True),
)

NAMES = tuple(workload.name for workload in WORKLOADS)
