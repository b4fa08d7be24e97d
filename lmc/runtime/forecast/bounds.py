"""What an automaton says of the texts that it accepts: the length of the longest, and how much of one is forced.

    1..5                 1 byte, 0 % forced
    {"a": 1..5}          7 bytes, 86 % forced
"""

from __future__ import annotations

import numpy as np

from lmc.regex.compress import compress
from lmc.regex.dfa import DEAD, START, ByteDfa
from lmc.regex.grammar import Grammar

# Larger automata than this have texts far longer than any bound on tokens.
_MOST_STATES = 20_000


def longest_text(constraint: ByteDfa | Grammar) -> int | None:
    """Bytes of the longest text that is accepted; None where there is none, or where it is not worth finding out."""
    if isinstance(constraint, Grammar) or constraint.states > _MOST_STATES:
        return None
    after = [set(row[row != DEAD].tolist()) for row in constraint.table]
    order: list[int] = []
    # Depth first without recursion; a state that is open and met again closes a circle.
    open_now, seen, stack = {START}, {START}, [(START, iter(after[START]))]
    while stack:
        state, targets = stack[-1]
        target = next(targets, None)
        if target is None:
            stack.pop()
            open_now.discard(state)
            order.append(state)
        elif target in open_now:
            return None
        elif target not in seen:
            seen.add(target)
            open_now.add(target)
            stack.append((target, iter(after[target])))
    length = np.zeros(constraint.states, np.int64)
    for state in order:
        length[state] = max((length[target] + 1 for target in after[state]), default=0)
    return int(length[START])


def forced_share(constraint: ByteDfa | Grammar) -> float | None:
    """The share of forced bytes in the shortest accepted text, 0 to 1; None of a grammar, which has no automaton."""
    if isinstance(constraint, Grammar):
        return None
    small = compress(constraint)
    text = small.shortest
    return small.forced_bytes(text) / len(text) if text else 0.0
