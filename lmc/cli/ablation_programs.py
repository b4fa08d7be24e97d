"""The five small programs of `lmc bench ablation`, each with its rows: what the SGLang paper leaves parts out for.

    judge       a fork over dimensions, then a verdict        parallel branches, one shared essay
    tot         a tree of thought, two levels of two          branches of branches
    few-shot    one long header, many short questions         one prefix for all rows
    chat        turns that go on from one another             a prefix that grows
    json        an object for each report, all reports behind one instruction     forced text, masks, a prefix that a loop makes anew
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_JUDGE = '''
def judge(essay: str) -> str:
    system: "You are a strict but fair essay judge."
    user: "Here is an essay.\\n${essay}\\n"
    fork d in ["clarity", "originality", "evidence", "style"]:
        user: "Judge only its ${d}."
        assistant: note = gen(max_tokens=24, ignore_eos=True)
    join note as notes
    user: "Panel notes:\\n${bullets(notes)}\\nThe verdict, please."
    assistant: verdict = gen(max_tokens=16, ignore_eos=True)
    return verdict
'''

_TREE = '''
def solve(question: str) -> str:
    user: "Solve step by step: ${question}"
    beam = [here]
    for level in range(2):
        fork c in [b for b in beam for i in range(2)] with temperature=0.7:
            resume c
            user: "Propose the next step."
            assistant: step = gen(max_tokens=24, ignore_eos=True)
        join step as steps, here as states
        beam = states
    fork c in beam:
        resume c
        user: "Now give the final answer."
        assistant: answer = gen(max_tokens=12, ignore_eos=True)
    join answer as answers
    return answers[0]
'''

_FEW_SHOT = '''
def ask(shots: str, question: str) -> str:
    raw:
        "${shots}Question: ${question}\\nAnswer:"
        answer = select(["A", "B", "C", "D"])
    return answer
'''

_JSON = '''
type Card:
    name: str(max_len=12)
    kind: "river" | "lake" | "mountain" | "valley"
    nearest_town: str(max_len=12)
    metres: 1..9999
    protected: bool

def file(reports: list[str]) -> list[Card]:
    return [_card(report) for report in reports]

def _card(report: str) -> Card:
    system: """
        You work in an office of maps, and you file a card for each report of a traveller. You write down what is there, and nothing else.
        A card is JSON that matches ${schema(Card)}
        """
    user: "The report: ${report}"
    assistant: card = gen(Card, max_tokens=120)
    return card
'''

_CHAT = '''
def talk(topic: str, questions: list[str]) -> str:
    system: "You are a friendly guide. Today's topic is ${topic}."
    reply = ""
    for question in questions:
        user: "${question}"
        assistant: reply = gen(max_tokens=16, ignore_eos=True)
    return reply
'''


@dataclass(frozen=True, slots=True)
class Ablated:
    """A program, its function, and the arguments of row `n`."""

    text: str
    function: str
    row: Callable[[int], dict[str, Any]]


def words(seed: object, count: int) -> str:
    """So many made-up words, the same ones for the same seed."""
    rng = random.Random(str(seed))
    return " ".join("".join(rng.choice("abcdefghiklmnoprstuvw") for _ in range(rng.randint(2, 7))) for _ in range(count))


PROGRAMS: dict[str, Ablated] = {
    "judge": Ablated(_JUDGE, "judge", lambda n: {"essay": words(("essay", n), 80)}),
    "tot": Ablated(_TREE, "solve", lambda n: {"question": words(("puzzle", n), 30)}),
    # Two subjects in turn, so that first come, first served changes the header with every row.
    "few-shot": Ablated(_FEW_SHOT, "ask", lambda n: {
        "shots": "".join(f"Question: {words((n % 2, shot), 15)}\nAnswer: A\n" for shot in range(5)),
        "question": words(("question", n), 15)}),
    "chat": Ablated(_CHAT, "talk", lambda n: {"topic": words(("topic", n), 3), "questions": [words((n, turn), 10) for turn in range(4)]}),
    "json": Ablated(_JSON, "file", lambda n: {"reports": [words(("report", n, number), 12) for number in range(3)]}),
}
