"""The kinds of traces of `lmc bench lifetimes`: how many sessions, how often each asks, how long it waits in between.

    few-shot, tot, judge     nobody waits: the order of what is asked does nearly all
    chat, agents             a person or a tool is waited for, and meanwhile others need the memory
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """A trace: `header` tokens that all sessions begin with; of each session the turns, the tokens that a turn adds and gets, the
    steps that it waits between turns, and how far apart sessions begin (0: all at once)."""

    header: int
    sessions: int
    turns: tuple[int, int]
    added: tuple[int, int]
    answer: int
    wait: int
    apart: int
    branches: int = 1


SHAPES = {
    "few-shot": Shape(700, 60, (1, 1), (40, 120), 4, 0, 0),
    "tot": Shape(120, 16, (3, 3), (30, 60), 12, 0, 20, 3),
    "judge": Shape(40, 12, (1, 1), (300, 500), 10, 0, 10, 6),
    "chat": Shape(30, 40, (3, 6), (60, 200), 20, 220, 25),
    "agents": Shape(500, 40, (4, 8), (60, 200), 20, 120, 20),
}
