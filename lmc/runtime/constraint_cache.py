"""The constraints of a session's programs: equal automata have one, and those not used for longest are let go.

    cache = ConstraintCache(make, most_bytes=256 << 20)
    cache.get(dfa) is cache.get(equal_dfa)

A constraint that a bound program or a running request holds stays the one for its automaton, whatever is let go here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from lmc.regex.dfa import ByteDfa
from lmc.regex.grammar import Grammar
from lmc.runtime.constraint import TokenConstraint
from lmc.runtime.grammar import Constraint, GrammarConstraint
from lmc.runtime.mask_store import MaskStore
from lmc.runtime.token_index import TokenIndex

if TYPE_CHECKING:
    from lmc.runtime.tokenizer import Tokenizer

#: A large program has dozens.
MOST = 1024
#: Automata with the masks that were made of them.
MOST_BYTES = 256 << 20


class ConstraintCache:
    """`make`: a new constraint of an automaton or grammar; `most`, `most_bytes`: what is kept where nobody else holds it, but for the
    one used last."""

    __slots__ = ("_make", "_most", "_most_bytes", "_alive", "_kept")

    def __init__(self, make: Callable[[ByteDfa | Grammar], Constraint], *, most: int = MOST, most_bytes: int = MOST_BYTES):
        self._make, self._most, self._most_bytes = make, most, most_bytes
        self._alive: WeakValueDictionary[str | Grammar, Constraint] = WeakValueDictionary()
        self._kept: OrderedDict[str | Grammar, Constraint] = OrderedDict()

    def get(self, automaton: ByteDfa | Grammar) -> Constraint:
        """The automaton's constraint.  Raises as `make` does."""
        key = automaton if isinstance(automaton, Grammar) else automaton.digest()
        constraint = self._alive.get(key)
        if constraint is None:
            constraint = self._alive[key] = self._make(automaton)
        self._kept[key] = constraint
        self._kept.move_to_end(key)
        while len(self._kept) > 1 and (len(self._kept) > self._most or self._bytes() > self._most_bytes):
            _save(self._kept.popitem(last=False)[1])
        return constraint

    def save(self) -> None:
        """Put masks that are new into the session's store."""
        for constraint in self._alive.values():
            _save(constraint)

    def _bytes(self) -> int:
        return sum(constraint.held_bytes for constraint in self._kept.values())


def new_constraint(tokenizer: Tokenizer, index: TokenIndex, store: MaskStore | None, automaton: ByteDfa | Grammar) -> Constraint:
    """The constraint over a vocabulary.  Raises `LmcError` where its tokens cannot spell what the automaton accepts."""
    if isinstance(automaton, Grammar):
        return GrammarConstraint(automaton, tokenizer.token_bytes)
    return TokenConstraint(automaton, index, store)


def _save(constraint: Constraint) -> None:
    if not isinstance(constraint, GrammarConstraint):
        constraint.save()
