"""Automata from syntax trees: regex -> tree -> NFA -> DFA -> trimmed -> minimal.

    compile_regex(r"\\d+|yes").matches(b"42")

                 0-9
        1 --0-9--> 2 (accepting) <-\\
        |          \\------0-9------/
        \\--y--> 3 --e--> 4 --s--> 5 (accepting)

Matching is of whole texts and keeps every alternative: `a|ab` accepts "ab".  The result depends on the language alone, not on how
the regex is written.  Limits keep a hostile pattern from taking the process with it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from lmc.regex.dfa import DEAD, START, ByteDfa
from lmc.regex.minimise import equivalent_states
from lmc.regex.nfa import FINAL, ByteEdge, Nfa
from lmc.regex.nodes import Edge, Node
from lmc.regex.parse import RegexError, parse_regex

#: States of the automaton before it is minimised.
MAX_STATES = 100_000
#: Seconds of processor time that building one automaton may take, so that a busy machine refuses nothing that an idle one takes.
MAX_SECONDS = 5.0
#: Different states that are held beside one another to find bytes that always go together.
_MAX_PATTERNS = 1000


def compile_regex(pattern: str) -> ByteDfa:
    """The automaton that accepts what `re.fullmatch(pattern, text, re.ASCII)` does.

    Raises `RegexError` where the pattern is wrong or outside the dialect, matches nothing, or gives too large an automaton.
    """
    return compile_node(parse_regex(pattern), pattern)


def compile_node(node: Node, source: str) -> ByteDfa:
    """The automaton of a syntax tree; `source` is what it was made from, for people.  Raises `RegexError`."""
    try:
        nfa = Nfa.of(node)
    except RecursionError:
        raise RegexError("nested too deeply", 0) from None
    return minimal(_Determiniser(nfa).run(), source)


@dataclass(frozen=True, slots=True)
class Raw:
    """A deterministic automaton before it is trimmed: `rows[s][c]` is the next state, -1 where there is none; it starts in 0.

    `byte_class` has 256 entries.
    """

    byte_class: list[int]
    rows: list[list[int]]
    accepting: list[bool]


class _Determiniser:
    """The subset construction; a state is the set of NFA states that the next byte is read in."""

    __slots__ = ("nfa", "byte_class", "classes", "steps", "ranges", "closures", "numbers", "worklist", "rows", "accepting", "joined",
                 "deadline")

    def __init__(self, nfa: Nfa):
        self.nfa = nfa
        self.byte_class = _byte_classes(nfa.edges)
        self.classes = max(self.byte_class) + 1
        # What `step` and `between` have given.
        self.steps: dict[int, tuple[tuple[int, int], ...]] = {}
        self.ranges: dict[tuple[int, int], set[int]] = {}
        self.closures: dict[int, tuple[frozenset[int], bool]] = {}
        self.numbers: dict[tuple[frozenset[int], bool], int] = {}
        self.worklist: list[frozenset[int]] = []
        self.rows: list[list[int]] = []
        self.accepting: list[bool] = []
        self.joined: dict[tuple[int, ...], int] = {}
        self.deadline = time.thread_time() + MAX_SECONDS

    def run(self) -> Raw:
        self.number(self.closure(self.nfa.start, at_start=True))
        for at, states in enumerate(self.worklist):
            self.rows.append(self.row(states))
            if len(self.worklist) > MAX_STATES:
                raise RegexError(f"the automaton has more than {MAX_STATES:,} states; lower the counts in it", 0)
            if at % 8 == 0:
                self.check_time()
        return Raw(self.byte_class, self.rows, self.accepting)

    def check_time(self) -> None:
        if time.thread_time() > self.deadline:
            raise RegexError(f"building the automaton took more than {MAX_SECONDS:.0f} seconds; simplify it", 0)

    def number(self, closure: tuple[frozenset[int], bool]) -> int:
        if closure not in self.numbers:
            self.numbers[closure] = len(self.worklist)
            self.worklist.append(closure[0])
            self.accepting.append(closure[1])
        return self.numbers[closure]

    def row(self, states: frozenset[int]) -> list[int]:
        row = [-1] * self.classes
        if len(states) == 1:
            # One NFA state: its edges do not overlap.
            for number, target in self.step(next(iter(states))):
                row[number] = self.number(self.closure(target))
            return row
        targets: dict[int, set[int]] = {}
        for state in states:
            for number, target in self.step(state):
                targets.setdefault(number, set()).add(target)
        for number, found in targets.items():
            row[number] = self.join(tuple(sorted(found)))
        return row

    def step(self, state: int) -> tuple[tuple[int, int], ...]:
        """The edges of an NFA state as pairs of a byte class and where it leads."""
        if state not in self.steps:
            edges = self.nfa.edges[state]
            self.steps[state] = tuple({number: target for low, high, target in edges for number in self.between(low, high)}.items())
        return self.steps[state]

    def between(self, low: int, high: int) -> set[int]:
        """The classes of the bytes from `low` to `high`."""
        if (low, high) not in self.ranges:
            self.ranges[low, high] = set(self.byte_class[low : high + 1])
        return self.ranges[low, high]

    def join(self, targets: tuple[int, ...]) -> int:
        if targets not in self.joined:
            closures = [self.closure(t) for t in targets]
            union = frozenset().union(*(states for states, _ in closures))
            self.joined[targets] = self.number((union, any(accepts for _, accepts in closures)))
        return self.joined[targets]

    def closure(self, state: int, *, at_start: bool = False) -> tuple[frozenset[int], bool]:
        """The states with byte edges that free moves reach, and whether the end is among what they reach.

        `^` lets through at the start only.  Behind `$` nothing may be read any more, so only the end counts.
        """
        if not at_start and state in self.closures:
            return self.closures[state]
        # A row may need thousands of closures, each as large as the automaton.
        self.check_time()
        seen: set[tuple[int, bool]] = set()
        stack = [(state, False)]
        reading: set[int] = set()
        accepts = False
        while stack:
            item = stack.pop()
            if item in seen:
                continue
            seen.add(item)
            at, ended = item
            anchor = self.nfa.anchors.get(at)
            accepts = accepts or at == FINAL
            if self.nfa.edges[at] and not ended:
                reading.add(at)
            if anchor is not Edge.START or at_start:
                stack += [(target, ended or anchor is Edge.END) for target in self.nfa.free[at]]
        result = (frozenset(reading), accepts)
        if not at_start:
            self.closures[state] = result
        return result


def _byte_classes(edges: list[tuple[ByteEdge, ...]]) -> list[int]:
    """For each of the 256 bytes its class: bytes of one class go the same way from every state."""
    patterns = {_pattern(of_state) for of_state in edges}
    if len(patterns) > _MAX_PATTERNS:
        # So many states that differ leave hardly a class with more than one range.
        borders = sorted({0, *(b for pattern in patterns for low, high, _ in pattern for b in (low, high + 1))} - {256})
        return (np.searchsorted(borders, np.arange(256), side="right") - 1).tolist()
    ways = np.zeros((len(patterns), 256), np.int16)
    for row, pattern in zip(ways, patterns):
        for low, high, way in pattern:
            row[low : high + 1] = way
    return _distinct_columns(ways)[1].tolist()


def _pattern(edges: tuple[ByteEdge, ...]) -> tuple[tuple[int, int, int], ...]:
    """The edges with their targets numbered from 1 as they are met."""
    ways: dict[int, int] = {}
    return tuple((low, high, ways.setdefault(target, len(ways) + 1)) for low, high, target in edges)


def minimal(raw: Raw, source: str) -> ByteDfa:
    """The trimmed and minimal automaton.  Raises `RegexError` where it accepts nothing."""
    table = np.array(raw.rows, np.int32).reshape(len(raw.rows), -1)
    columns, column_of = _distinct_columns(table)
    byte_class = column_of[np.array(raw.byte_class)]
    edges = _edges(columns)
    alive = _alive(raw.accepting, edges)
    if not alive[0]:
        raise RegexError("nothing matches it", 0)
    kept = np.flatnonzero(alive)
    renamed = np.full(len(alive), -1)
    renamed[kept] = np.arange(len(kept))
    live_edges = [(int(renamed[s]), c, int(renamed[t])) for s, c, t in edges if alive[s] and alive[t]]
    accepting = [raw.accepting[s] for s in kept]
    block_of = equivalent_states(len(kept), accepting, live_edges)
    return _numbered(block_of, accepting, live_edges, byte_class, columns.shape[1], source)


def _distinct_columns(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The table with equal columns once, and for each old column its new number."""
    seen: dict[bytes, int] = {}
    column_of = np.array([seen.setdefault(table[:, c].tobytes(), len(seen)) for c in range(table.shape[1])])
    firsts = [int(np.flatnonzero(column_of == number)[0]) for number in range(len(seen))]
    return table[:, firsts], column_of


def _edges(table: np.ndarray) -> list[tuple[int, int, int]]:
    states, classes = np.nonzero(table >= 0)
    return list(zip(states.tolist(), classes.tolist(), table[states, classes].tolist()))


def _alive(accepting: list[bool], edges: list[tuple[int, int, int]]) -> np.ndarray:
    """Which states reach an accepting one."""
    sources: list[list[int]] = [[] for _ in accepting]
    for source, _, target in edges:
        sources[target].append(source)
    alive = np.array(accepting, bool)
    stack = np.flatnonzero(alive).tolist()
    while stack:
        for source in sources[stack.pop()]:
            if not alive[source]:
                alive[source] = True
                stack.append(source)
    return alive


def _numbered(
    block_of: list[int], accepting: list[bool], edges: list[tuple[int, int, int]], byte_class: np.ndarray, classes: int,
    source: str,
) -> ByteDfa:
    """Blocks as states, numbered from `START` as they are met, so that equal languages give equal tables."""
    count = max(block_of) + 1
    rows = np.full((count, classes), -1, np.int32)
    accepts = np.zeros(count, bool)
    for state, number, target in edges:
        rows[block_of[state], number] = block_of[target]
    for state, ends in enumerate(accepting):
        accepts[block_of[state]] |= ends
    # Trimming makes some columns equal; here they come in the order in which the bytes use them.
    rows, byte_class = _distinct_columns(rows[:, byte_class])
    order = [block_of[0]]
    new = {block_of[0]: START}
    for block in order:
        for target in rows[block].tolist():
            if target >= 0 and target not in new:
                new[target] = START + len(order)
                order.append(target)
    rename = np.full(count + 1, DEAD, np.int32)
    rename[list(new)] = list(new.values())
    table = np.zeros((START + len(order), rows.shape[1]), np.int32)
    table[START:] = rename[rows[order]]
    final = np.zeros(START + len(order), bool)
    final[START:] = accepts[order]
    return ByteDfa(byte_class.astype(np.uint8), table, final, source)
