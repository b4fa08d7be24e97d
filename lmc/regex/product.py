"""Automata from two automata: what both accept, or the first and not the second.

    intersection(compile_regex("a*"), compile_regex(".{0,3}"), "…")     # "", "a", "aa", "aaa"
    difference(compile_regex("a*"), compile_regex(".{0,3}"), "…")       # "aaaa" …
"""

from __future__ import annotations

import numpy as np

from lmc.regex.build import MAX_STATES, Raw, minimal
from lmc.regex.dfa import DEAD, START, ByteDfa
from lmc.regex.parse import RegexError


def intersection(a: ByteDfa, b: ByteDfa, source: str) -> ByteDfa:
    """What both accept.  Raises `RegexError` where that is nothing or the automaton grows too large."""
    return minimal(_product(a, b, without=False), source)


def difference(a: ByteDfa, b: ByteDfa, source: str) -> ByteDfa:
    """What `a` accepts and `b` does not.  Raises as `intersection` does."""
    return minimal(_product(a, b, without=True), source)


def disjoint(a: ByteDfa, b: ByteDfa) -> bool:
    """Whether no text is accepted by both.  Raises `RegexError` where the automaton grows too large."""
    return not any(_product(a, b, without=False).accepting)


def _product(a: ByteDfa, b: ByteDfa, *, without: bool) -> Raw:
    pairs, byte_class = np.unique(np.stack([a.byte_class, b.byte_class]), axis=1, return_inverse=True)
    table_a, table_b = a.table[:, pairs[0]].tolist(), b.table[:, pairs[1]].tolist()
    order = [(START, START)]
    numbers = {order[0]: 0}
    rows: list[list[int]] = []
    for p, q in order:
        row = []
        for next_p, next_q in zip(table_a[p], table_b[q]):
            if next_p == DEAD or next_q == DEAD and not without:
                row.append(-1)
                continue
            if (next_p, next_q) not in numbers:
                numbers[next_p, next_q] = len(order)
                order.append((next_p, next_q))
            row.append(numbers[next_p, next_q])
        rows.append(row)
        if len(order) > MAX_STATES:
            raise RegexError(f"the automaton has more than {MAX_STATES:,} states; lower the counts in it", 0)
    accepting = [bool(a.accepting[p] and b.accepting[q] != without) for p, q in order]
    return Raw(byte_class.reshape(-1).tolist(), rows, accepting)
