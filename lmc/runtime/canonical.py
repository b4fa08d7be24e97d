"""Forced text as the tokenizer itself would cut it.

    state where only `{"name": "` can come    ->    tokens of `{"`, `name`, `":`, ` "`

Text that is forced only up to the middle of a token that may come is held back where nobody checks it: of `order(Id|Name)` the token
`order` is, because `orderId` is one token.  Each result spells the forced bytes or a beginning of them, ends no token inside a
character that its bytes do not end in, and is empty where the tokenizer spells something else.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from lmc.runtime.generation import Place
from lmc.runtime.grammar import Constraint
from lmc.runtime.token_sets import TokenSets, TokenTable

# Places of one constraint whose tokens are kept; beyond, it begins anew.
_KEEP = 1 << 14
# Tokens at the end of a forced text that another token may span; llguidance found two to be enough.
_HELD_BACK = 4


class CanonicalTokens:
    """The tokens of forced text, by the place where it begins."""

    __slots__ = ("_sets", "_encode", "_forced", "_certain")

    def __init__(self, tokens: TokenTable, sets: TokenSets):
        self._sets, self._encode = sets, tokens.encode
        self._forced: WeakKeyDictionary[Constraint, dict[Place, tuple[int, ...]]] = WeakKeyDictionary()
        self._certain: WeakKeyDictionary[Constraint, dict[Place, tuple[int, ...]]] = WeakKeyDictionary()

    def forced(self, constraint: Constraint, place: Place) -> tuple[int, ...]:
        """Tokens of the text that must come at `place`, none where several may."""
        kept = self._forced.setdefault(constraint, {})
        if place not in kept:
            if len(kept) >= _KEEP:
                kept.clear()
            kept[place] = self._tokens(place.heal + constraint.forced(place.state))
        return kept[place]

    def certain(self, constraint: Constraint, place: Place) -> tuple[int, ...]:
        """As `forced`, up to the first token from which on another one might span the end of the forced text."""
        kept = self._certain.setdefault(constraint, {})
        if place not in kept:
            if len(kept) >= _KEEP:
                kept.clear()
            kept[place] = self._held_back(constraint, place, self.forced(constraint, place))
        return kept[place]

    def _held_back(self, constraint: Constraint, place: Place, ids: tuple[int, ...]) -> tuple[int, ...]:
        spelt = self._spelt(ids)
        if len(spelt) < len(place.heal):
            return ()
        after = constraint.advance(place.state, spelt[len(place.heal) :])
        for first in range(max(0, len(ids) - _HELD_BACK), len(ids)):
            tail = self._spelt(ids[first:])
            if any(len(self._sets.token_bytes[i]) > len(tail) for i in constraint.allowed(after, tail).tolist()):
                return ids[:first]
        return ids

    def _spelt(self, ids: tuple[int, ...] | list[int]) -> bytes:
        return b"".join(map(self._sets.token_bytes.__getitem__, ids))

    def _tokens(self, data: bytes) -> tuple[int, ...]:
        text, lead = data, []
        while text and 0x80 <= text[0] < 0xC0:
            # Behind the first bytes of a character: its other bytes are tokens of their own or nothing is said.
            alone = self._sets.index.exactly(text[:1])
            if not len(alone):
                return ()
            lead.append(int(alone[0]))
            text = text[1:]
        body = text.decode("utf-8", "ignore")
        if not text.startswith(body.encode()):
            return tuple(lead)
        try:
            ids = self._encode(body) if body else []
        except ValueError:
            return tuple(lead)
        return (*lead, *ids) if self._spelt(ids) == body.encode() else tuple(lead)
