"""What a program tells the engine about contexts: which live, which are over, which will be read soon or again.

    Prefill(7, ids)       several readers come: compute the prefix once, before them; it lives as 7
    Keep(8, ids, 2)       a context of these ids lives as 8; its next reader comes after two calls of the model
    Release(7)            nobody reads 7 any more
    Pin(ids)              later calls begin so

Hints change when work is done and what is evicted, never what comes out; the engine may pass over any of them.  A release means
"evict this first", it never frees; a pin means "evict this last", it never keeps a request out.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prefill:
    """Compute `ids` into the tree before their readers come; then as `Keep`.  `handle`: a ticket that `Engine.reserve` gave."""

    handle: int
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Keep:
    """A context of these `ids` lives until `Release(handle)`.  `next_use`: so many calls of the model lie before its next reader,
    and nothing that waits for the world outside; None where that is not known."""

    handle: int
    ids: tuple[int, ...]
    next_use: int | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """The context of `handle` is over.  Of an unknown handle nothing happens."""

    handle: int


@dataclass(frozen=True, slots=True)
class Pin:
    """Later calls begin with `ids`: what of them is in the tree is evicted last."""

    ids: tuple[int, ...]


Hint = Prefill | Keep | Release | Pin
