"""Constraints as JSON data and back: an automaton's arrays as base64 of little-endian integers, a grammar as its text.

    [{"source": "1..5", "states": 3, "table": "AAAA…", …}, {"source": "[1-5]", "same": 0}]

Automata that share their arrays hold them once.
What is read is checked, so that no table can lead outside of itself.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lmc.backend.data import BadData, Fields, count
from lmc.regex.dfa import DEAD, ByteDfa
from lmc.regex.grammar import LARK, MAX_GRAMMAR, SCHEMA, Grammar

#: More than a thousand times what the regex builder lets through, minimised.
_MAX_STATES = 10_000_000


def constraints_to_data(constraints: Sequence[ByteDfa | Grammar]) -> list[dict[str, Any]]:
    data, first = [], {}
    for number, constraint in enumerate(constraints):
        if isinstance(constraint, ByteDfa) and (same := first.setdefault(id(constraint.table), number)) != number:
            data.append({"source": constraint.source, "same": same})
        else:
            data.append(constraint_to_data(constraint))
    return data


def constraints_from_data(data: list[Any]) -> tuple[ByteDfa | Grammar, ...]:
    """Raises `BadData`.  Whether a grammar can be read is seen when the program is bound to a model."""
    read: list[ByteDfa | Grammar] = []
    for one in data:
        read.append(_same(one, read) if isinstance(one, dict) and "same" in one else constraint_from_data(one))
    return tuple(read)


def _same(data: dict[str, Any], before: Sequence[ByteDfa | Grammar]) -> ByteDfa:
    fields = Fields(data, "an automaton")
    number, source = count(fields.take("same", int)), fields.take("source", str)
    fields.end()
    first = before[number] if number < len(before) else None
    if not isinstance(first, ByteDfa):
        raise BadData("an automaton that is the same as one that does not stand before it")
    return replace(first, source=source)


def constraint_to_data(constraint: ByteDfa | Grammar) -> dict[str, Any]:
    if isinstance(constraint, Grammar):
        return {"grammar": constraint.kind, "source": constraint.source}
    return dfa_to_data(constraint)


def constraint_from_data(data: Any) -> ByteDfa | Grammar:
    if not isinstance(data, dict) or "grammar" not in data:
        return dfa_from_data(data)
    fields = Fields(data, "a grammar")
    kind, source = fields.take("grammar", str), fields.take("source", str)
    fields.end()
    if kind not in (LARK, SCHEMA) or len(source) > MAX_GRAMMAR:
        raise BadData("a grammar of an unknown kind, or too long a one")
    try:
        if kind == SCHEMA:
            json.loads(source)
    except (ValueError, RecursionError):
        raise BadData("a grammar of a schema that is not JSON") from None
    return Grammar(kind, source)


def dfa_to_data(dfa: ByteDfa) -> dict[str, Any]:
    return {
        "source": dfa.source,
        "states": dfa.table.shape[0],
        "classes": dfa.table.shape[1],
        "byte_class": _encode(dfa.byte_class, "<u1"),
        "table": _encode(dfa.table, "<i4"),
        "accepting": _encode(dfa.accepting, "<u1"),
    }


def dfa_from_data(data: Any) -> ByteDfa:
    """Raises `BadData`."""
    fields = Fields(data, "an automaton")
    states, classes = fields.take("states", int), fields.take("classes", int)
    if not 2 <= states <= _MAX_STATES or not 1 <= classes <= 256:
        raise BadData(f"an automaton of {states} states and {classes} byte classes")
    byte_class = _decode(fields.take("byte_class", str), "<u1", 256)
    table = _decode(fields.take("table", str), "<i4", states * classes).reshape(states, classes)
    accepting = _decode(fields.take("accepting", str), "<u1", states)
    source = fields.take("source", str)
    fields.end()
    if byte_class.max() >= classes or table.min() < 0 or table.max() >= states or accepting.max() > 1:
        raise BadData("an automaton that leads outside of its table")
    if table[DEAD].any() or accepting[DEAD]:
        raise BadData("an automaton whose dead state is alive")
    return ByteDfa(byte_class.astype(np.uint8), table.astype(np.int32), accepting.astype(bool), source)


def _encode(array: np.ndarray, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array).astype(kind).tobytes()).decode("ascii")


def _decode(text: str, kind: str, elements: int) -> np.ndarray:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise BadData("an array that is not base64") from None
    if len(data) != elements * np.dtype(kind).itemsize:
        raise BadData(f"an array of {len(data)} bytes where {elements} elements are wanted")
    return np.frombuffer(data, dtype=kind)
