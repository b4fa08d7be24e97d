"""The automata of a program for people: `lmc compile --emit=fsm` and `--emit=dot`.

    constraint 0: of yes|no
      states 6, compressed 4; byte classes 6; accepting 1; forced 3 of 6 states, 3 of 2 bytes …
      run 2 --"es"--> 5
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lmc.backend.program import Program
from lmc.regex.compress import Compressed, Run, compress
from lmc.regex.dfa import DEAD, START, ByteDfa
from lmc.regex.grammar import Grammar

# More states than this make no picture.
_MAX_DRAWN = 400


def format_automata(program: Program) -> str:
    """Each constraint with its sizes, its forced runs and what share of it is forced."""
    if not program.constraints:
        return "no constraint: every `gen` is free\n"
    return "\n".join("\n".join(_listing(number, c)) for number, c in enumerate(program.constraints)) + "\n"


def draw_automata(program: Program) -> str:
    """DOT: one cluster for each automaton, forced runs as one edge."""
    lines = ["digraph constraints {", "  rankdir=LR;", "  node [shape=circle];"]
    for number, constraint in enumerate(program.constraints):
        lines += _drawing(number, constraint)
    return "\n".join([*lines, "}"]) + "\n"


def _listing(number: int, constraint: ByteDfa | Grammar) -> Iterator[str]:
    yield f"constraint {number}: of {_short(constraint.source)}"
    if isinstance(constraint, Grammar):
        yield "  a grammar: no automaton"
        return
    small = compress(constraint)
    states, forced = constraint.states - START, int(small.forced.sum())
    text = small.shortest
    yield (f"  states {states}, compressed {small.states}; byte classes {constraint.table.shape[1]}; "
           f"accepting {int(constraint.accepting.sum())}")
    yield (f"  forced {forced} of {states} states ({_share(forced, states)}), "
           f"{small.forced_bytes(text)} of {len(text)} bytes of the shortest text ({_share(small.forced_bytes(text), len(text))})")
    for run in small.runs:
        yield f"  run {run.start} --{shown_bytes(run.text)}--> {run.end}"


def _drawing(number: int, constraint: ByteDfa | Grammar) -> Iterator[str]:
    yield f"  subgraph cluster_{number} {{"
    yield f"    label={_quoted(f'constraint {number}: {_short(constraint.source)}')};"
    if isinstance(constraint, Grammar):
        yield f'    c{number} [shape=box, label="a grammar"];'
    else:
        small = compress(constraint)
        if small.states > _MAX_DRAWN:
            yield f'    c{number} [shape=box, label="{small.states:,} states: too many to draw"];'
        else:
            yield from _states(number, small)
    yield "  }"


def _states(number: int, small: Compressed) -> Iterator[str]:
    runs = {run.start: run for run in small.runs}
    yield f"    c{number}start [shape=point];"
    yield f"    c{number}start -> c{number}s{START};"
    for state in range(START, small.dfa.states):
        if state in runs:
            yield from _run(number, runs[state])
        elif not small.forced[state]:
            shape = " [shape=doublecircle]" if small.dfa.accepting[state] else ""
            yield f"    c{number}s{state}{shape};"
            row = small.dfa.table[state, small.dfa.byte_class]
            for target in sorted(set(row.tolist()) - {DEAD}):
                label = _quoted(_byte_set(np.flatnonzero(row == target).tolist()))
                yield f"    c{number}s{state} -> c{number}s{target} [label={label}];"


def _run(number: int, run: Run) -> Iterator[str]:
    yield f"    c{number}s{run.start};"
    yield f"    c{number}s{run.start} -> c{number}s{run.end} [label={_quoted(shown_bytes(run.text))}, penwidth=2];"


def shown_bytes(data: bytes) -> str:
    """A text in quotes; bytes that are no whole character as `\\xe9`."""
    text = data.decode("utf-8", "backslashreplace")
    return '"' + "".join(c if c.isprintable() and c != '"' else c.encode("unicode_escape").decode() if c != '"' else '\\"'
                         for c in text) + '"'


def _byte_set(values: list[int]) -> str:
    """`a-z 0-9 \\n`: runs of neighbouring bytes."""
    parts, first = [], values[0]
    for value, following in zip(values, [*values[1:], -1]):
        if following != value + 1:
            parts.append(_byte(first) if first == value else f"{_byte(first)}-{_byte(value)}")
            first = following
    return " ".join(parts)


def _byte(value: int) -> str:
    return chr(value) if 33 <= value < 127 else f"x{value:02x}"


def _short(source: str) -> str:
    line = " ".join(source.split())
    return line if len(line) <= 100 else line[:99] + "…"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f}%" if whole else "0%"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
