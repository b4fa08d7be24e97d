"""Drafts: guesses of the next tokens of a constrained generation, for one forward pass to check.

    automaton   { " n a m e " : ...            drafts    memo       what each state chose last: `{"`, `name`, `":`
                (one way only)                           canonical  `{"name":` as the tokenizer cuts it, where the memo is empty

The engine draws at each position of a draft by the plain rule and keeps what it drew, so a draft changes the number of passes and
never a token.  A guess is worth its price where it is likely enough: each state counts how often its last token came again, and what
a right guess saves is a row's part of a later pass.  This file draws nothing and knows no slots.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from lmc.runtime.canonical import CanonicalTokens
from lmc.runtime.generation import Generation, Place
from lmc.runtime.grammar import Constraint
from lmc.runtime.token_sets import TokenSets

#: The longest draft.
MAX_DRAFT = 16
# What a forward pass costs, and each of its rows, beside the tokens, counted in the price of one more token.  From whole runs of the
# default model in float32 on one thread: at 8 rows a pass takes 118 ms and a guess adds 4.8, at 32 rows 207 and 3.2.
_PASS, _ROW = 12.0, 0.6
# Places that the memo of one automaton holds; beyond, it begins anew.
_KEEP = 1 << 14
# A guess counts as right this often before it was tried: one of a state with one way on, and of any other.
_FORCED_PRIOR, _FREE_PRIOR = (4.0, 0.5), (0.5, 1.0)
# So many trials weigh in a state's record; older ones fade, since documents change.
_RECORD = 16.0


class _Memo:
    """What one automaton's states chose last: place -> [token, trials, hits]; and the record of canonical guesses."""

    __slots__ = ("last", "canonical")

    def __init__(self):
        self.last: dict[Place, list] = {}
        self.canonical = [0.0, 0.0]


class Drafts:
    """The memos of one engine, and the drafts made from them."""

    __slots__ = ("_sets", "_canonical", "_memos")

    def __init__(self, sets: TokenSets, canonical: CanonicalTokens):
        self._sets, self._canonical = sets, canonical
        self._memos: WeakKeyDictionary[Constraint, _Memo] = WeakKeyDictionary()

    def propose(self, work: Generation, requests: int) -> list[int]:
        """Guesses of the tokens to come, while each is likely enough beside `requests` in the batch; none where nothing is known."""
        constraint = work.request.constraint
        if constraint is None or work.finish is not None:
            return []
        memo, least = self._memo(constraint), 1 / (1 + _ROW + _PASS / requests)
        draft: list[int] = []
        place, chance, canonical = work.place, 1.0, []
        most = min(MAX_DRAFT, work.room - 1)  # the token behind the draft is drawn too
        while len(draft) < most:
            if place not in memo.last and not canonical:
                canonical = list(self._canonical.forced(constraint, place))
            token, likely = self._guess(memo, constraint, place, canonical)
            chance *= likely
            if token is None or token in self._sets.end_ids or chance < least:
                break
            canonical = canonical[1:] if canonical[:1] == [token] else []
            after = work.advanced(place, token)
            if after is None or not after.heal and constraint.complete(after.state):
                break  # what ends the value need not be computed
            draft.append(token)
            place = after
        return draft

    def note(self, work: Generation, token: int) -> None:
        """Remember that `token` comes next, before it is accepted."""
        constraint, place = work.request.constraint, work.place
        if constraint is None:
            return
        memo = self._memo(constraint)
        known = memo.last.get(place)
        if known is None:
            if len(memo.last) >= _KEEP:
                memo.last.clear()
            memo.last[place] = [token, 0.0, 0.0]
            if forced := self._canonical.forced(constraint, place):
                _count(memo.canonical, 0, forced[0] == token)
        else:
            _count(known, 1, known[0] == token)
            known[0] = token

    def _guess(self, memo: _Memo, constraint: Constraint, place: Place, canonical: list[int]) -> tuple[int | None, float]:
        """The token to expect, and how likely it is."""
        known = memo.last.get(place)
        if known is not None:
            prior = _FORCED_PRIOR if constraint.forced(place.state) else _FREE_PRIOR
            return known[0], _rate(known[1], known[2], prior)
        if canonical:
            return canonical[0], _rate(*memo.canonical, _FREE_PRIOR)
        return None, 0.0

    def _memo(self, constraint: Constraint) -> _Memo:
        memo = self._memos.get(constraint)
        if memo is None:
            memo = self._memos[constraint] = _Memo()
        return memo


def _count(record: list, first: int, hit: bool) -> None:
    """Add a trial to (trials, hits), which stand at `first` in `record`."""
    fade = _RECORD / (_RECORD + 1) if record[first] >= _RECORD else 1.0
    record[first] = record[first] * fade + 1
    record[first + 1] = record[first + 1] * fade + hit


def _rate(trials: float, hits: float, prior: tuple[float, float]) -> float:
    return (hits + prior[0]) / (trials + prior[0] + prior[1])
