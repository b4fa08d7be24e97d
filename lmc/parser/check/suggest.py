"""The one best candidate for a misspelt name: `revew` -> `review`.  Knows nothing of where names come from."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate most like `name`, or None where none is near enough to be meant."""
    found = difflib.get_close_matches(name, list(candidates), n=1, cutoff=0.65)
    return found[0] if found else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """A help text for a closed list of names, shown whole where nothing is near and it is short."""
    known = list(candidates)
    found = nearest(name, known)
    if found is not None:
        return f"did you mean `{found}`?"
    return "known: " + ", ".join(f"`{k}`" for k in known) if 0 < len(known) <= 24 else None
