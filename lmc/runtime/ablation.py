"""What of the runtime can be left out or exchanged, to see what it brings; no result depends on it.

    lmc run judge.lmp --policy fcfs --without tree --without fork-hints

`lmc bench ablation` compares them.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

from lmc.diagnostics import Diagnostic, UsageError
from lmc.runtime.admission import Policy


class Part(Enum):
    """CACHE: nothing is computed once for several requests.  TREE: only whole prompts are found again (`flat_table.py`).
    PARALLELISM: one call of the model at a time in each run.  FORK_HINTS: readers of one context may come before it is computed.
    NARROW_HEAD: logits are computed of all tokens, also where a mask allows few."""

    CACHE = "cache"
    TREE = "tree"
    PARALLELISM = "parallelism"
    FORK_HINTS = "fork-hints"
    NARROW_HEAD = "narrow-head"


def check_policy(policy: str) -> None:
    """Raises `UsageError` for what is no order of admission."""
    _check("policy", policy, [p.value for p in Policy])


def check_without(parts: Collection[str]) -> None:
    """Raises `UsageError` for what cannot be left out."""
    for part in parts:
        _check("without", part, [p.value for p in Part])


def _check(name: str, given: str, known: list[str]) -> None:
    if given not in known:
        message = f"`{name}` has {given!r}, expected {', '.join(map(repr, known))}"
        raise UsageError(Diagnostic("E0851", message, None, help="left out, everything works together and is fastest"))
