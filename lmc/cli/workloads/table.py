"""Which workloads there are: each one's program, where its rows come from, and how many there are.

    mmlu        examples/workloads/mmlu.lmp:mmlu        a header, five examples, one token
    llm_judge   examples/workloads/llm_judge.lmp:…      an essay, six branches, one grade

This file knows neither a model nor who runs the programs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lmc.cli.workloads import rows
from lmc.cli.workloads.articles import Articles
from lmc.cli.workloads.data import Data

#: The arguments of one run of a program, by name.
Row = dict[str, Any]

#: At `quick`: the most tokens of a text that nothing constrains, and the most characters of a document.
QUICK_TOKENS, QUICK_DOCUMENT = 32, 3000


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
    few: rows where it is only looked at
    shorter: a row with less text, for where it is only looked at
    most_tokens: of a text that nothing constrains, where its `gen` allows more; None: what the program says
    in_order: one run after the other, because each one needs the world that the one before has left
    side_by_side: whether a run asks for several things at once
    externs: the Python functions that the program is bound to
    """

    name: str
    program: str
    function: str
    rows: Callable[[Data], Iterator[Row]]
    full: int
    few: int = 4
    shorter: Callable[[Row], Row] = dict
    most_tokens: int | None = None
    in_order: bool = False
    side_by_side: bool = False
    externs: Callable[[Data], Mapping[str, Callable[..., Any]]] = _none


def quick(workload: Workload) -> Workload:
    """The same calls on less text: a round of all, with three peers beside, is over within minutes."""
    return replace(workload, rows=lambda data: map(workload.shorter, workload.rows(data)), most_tokens=QUICK_TOKENS)


def _short_page(row: Row) -> Row:
    return row | {"document": row["document"][:QUICK_DOCUMENT]}


WORKLOADS = (
    Workload("mmlu", "mmlu", "mmlu", rows.mmlu, 400),
    Workload("hellaswag", "hellaswag", "hellaswag", rows.hellaswag, 200, few=2),
    Workload("react_replay", "react_replay", "react_replay", rows.react_replay, 100, few=1),
    Workload("react_agent", "react_agent", "react_agent", rows.react_agent, 100, few=2, externs=_articles),
    # Two of each of the five kinds.
    Workload("generative_agents", "generative_agents", "generative_agents", rows.generative_agents, 400, few=10, in_order=True),
    Workload("tree_of_thought_30", "tree_of_thought", "deep", rows.questions, 32, few=1, side_by_side=True),
    Workload("tree_of_thought_39", "tree_of_thought", "wide", rows.questions, 32, few=1, side_by_side=True),
    Workload("skeleton_of_thought", "skeleton_of_thought", "skeleton_of_thought", rows.topics, 50, few=2, side_by_side=True),
    Workload("llm_judge", "llm_judge", "llm_judge", rows.essays, 25, few=1, side_by_side=True),
    Workload("json_object", "json_decoding", "country", rows.documents, 30, shorter=_short_page),
    Workload("json_fields", "json_decoding", "by_field", rows.documents, 20, shorter=_short_page),
    Workload("json_character", "json_decoding", "character", rows.names, 50),
    Workload("multi_turn_chat_short", "multi_turn_chat", "multi_turn_chat", partial(rows.chats, "new_tokens_short"), 20, few=2),
    Workload("multi_turn_chat_long", "multi_turn_chat", "multi_turn_chat", partial(rows.chats, "new_tokens_long"), 20, few=1),
    Workload("rag", "rag", "rag", rows.with_passages, 60),
    Workload("self_consistency", "self_consistency", "self_consistency", rows.questions, 64, few=2, side_by_side=True),
)

NAMES = tuple(workload.name for workload in WORKLOADS)
