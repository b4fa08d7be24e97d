"""One generation: which tokens may come next, what an accepted token does, and what the value is in the end.

    heal " "   drawn " par", "is", " END."   stop "END"

    bytes      | par|is| END.|            of all accepted tokens
                ^                         heal: reopened by the first token, no part of the value
    text        "paris "                  the value: characters between `heal` and the stop
    ids        [" par", "is"]             whole tokens before the stop
    carry      " "                        the kept bytes of the cut token; they open the next segment

A match of a stop string is decided on characters, so it does not depend on how the text falls into tokens.  An incomplete trailing
character is dropped.  This file knows neither slots nor batches, and draws nothing itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lmc.regex.dfa import DEAD, START
from lmc.runtime.detokenise import Detokeniser, settle
from lmc.runtime.model.sampling import Choice
from lmc.runtime.request import Finish, Generated, GenerateRequest, TokenLogprob, Usage
from lmc.runtime.token_sets import TokenSets

_NO_IDS = np.empty(0, np.int64)
# Half of the steps of real JSON allow at most 300 tokens, nearly all others half of the vocabulary.
_FEW = 1000


class Place(NamedTuple):
    """Where a constrained generation stands: the constraint's state, and the bytes that are still to be spelled before the value."""

    state: int
    heal: bytes


class Generation:
    """The state of one generation.  Ask `choice` what may be drawn, tell `accept` what was, until `finish` is set.

    `limit`: the most tokens of prompt and generation together (the model's context, or the pool)
    `kept`: how many of `ids` stay once it is over; the rest of the text is the carry
    `drafted`, `jumped`: as in `Usage`; whoever drafts counts them
    It may be over before the first token: where `max_tokens` is 0 or the constraint accepts only the empty value.
    Stop strings and end tokens count from `min_tokens` on.
    """

    __slots__ = ("request", "ids", "finish", "stop", "kept", "drafted", "jumped", "_sets", "_limit", "_heal", "_state", "_value",
                 "_characters", "_text", "_shown", "_counted", "_counts", "_records", "_carry")

    def __init__(self, request: GenerateRequest, sets: TokenSets, limit: int):
        assert all(request.stops), "an empty stop string"
        self.request = request
        self.ids: list[int] = []
        self.finish: Finish | None = None
        self.stop: str | None = None
        self._sets = sets
        self._limit = limit
        self._heal = request.heal  # what is still to be spelled
        self._state = START
        self._value = bytearray()
        self._characters = Detokeniser()
        self._text = ""
        self._shown = 0  # characters that `take_text` gave away
        self._counted = 0  # tokens that count towards `max_tokens`
        self._counts: dict[int, int] = {}
        self._records: list[TokenLogprob] = []
        self.kept, self._carry = 0, ""
        self.drafted = self.jumped = 0
        self._end_if_over()

    @property
    def wanted(self) -> int:
        """The position whose logits give the next token."""
        return len(self.request.prompt) + len(self.ids) - 1

    @property
    def place(self) -> Place:
        return Place(self._state, self._heal)

    @property
    def room(self) -> int:
        """How many more tokens can surely be accepted, if nothing ends it before."""
        return min(self.request.max_tokens - self._counted, self._limit - len(self.request.prompt) - len(self.ids))

    def advanced(self, place: Place, token: int) -> Place | None:
        """Where a token would lead from `place`; None where the constraint does not let it go on."""
        data = self._sets.token_bytes[token]
        spelt = min(len(data), len(place.heal))
        if not data or data[:spelt] != place.heal[:spelt]:
            return None
        state = self.request.constraint.advance(place.state, data[spelt:])
        return None if state == DEAD else Place(state, place.heal[spelt:])

    def only_token(self) -> int | None:
        """The token that must come next in a constrained generation, where the model need not be asked."""
        constraint = self.request.constraint
        if self.request.sampling.logit_bias:
            return None  # it may forbid the only token
        if not self._heal and constraint.accepting(self._state):
            return None
        ids = constraint.allowed(self._state, self._heal)
        return int(ids[0]) if len(ids) == 1 else None

    def choice(self) -> Choice:
        """What may be drawn next, and how."""
        allowed, banned = self.allowed_ids()
        request = self.request
        return Choice(request.sampling, allowed, banned, self._counts, request.prompt, len(self.ids), request.logprobs)

    def allowed_ids(self) -> tuple[np.ndarray | None, np.ndarray]:
        """The sorted ids that may come next, or None for all; and the ids that may not."""
        constraint = self.request.constraint
        if self._heal:
            if constraint is not None:
                return constraint.allowed(self._state, self._heal), _NO_IDS
            return self._sets.index.heal_only(self._heal), _NO_IDS
        if constraint is None:
            return None, self._sets.banned if self._end_token_may_come() else self._sets.banned_and_ends
        ids = constraint.allowed(self._state)
        if constraint.accepting(self._state) and self._counted >= self.request.min_tokens:
            if self.request.follow:
                ids = _merged(ids, self._sets.starting_with(self.request.follow))
            if self._end_token_may_come():
                ids = _merged(ids, self._sets.ends)
        return ids, _NO_IDS

    def few(self, guesses: Sequence[int]) -> list[np.ndarray | None]:
        """For the next token and those behind each guess: sorted ids among which it is sure to be, None where those are many."""
        if self.request.constraint is None or self.request.logprobs:
            return [None] * (1 + len(guesses))
        found, place = [], self.place
        for guess in guesses:
            found.append(self._few_at(place))
            place = self.advanced(place, guess)
            assert place is not None, "a guess that is not legal"
        return [*found, self._few_at(place)]

    def _few_at(self, place: Place) -> np.ndarray | None:
        constraint = self.request.constraint
        ids = constraint.allowed(place.state, place.heal)
        if len(ids) <= _FEW and not place.heal and constraint.accepting(place.state):
            ids = _merged(ids, self._sets.ends)
            if self.request.follow:
                ids = _merged(ids, self._sets.starting_with(self.request.follow))
        return ids if len(ids) <= _FEW else None

    def accept(self, token: int, record: TokenLogprob | None = None) -> bool:
        """Go on by a token that was allowed.  Returns whether the generation is over; a token that only ends it is not in `ids`."""
        assert self.finish is None, "a token after the end"
        if token in self._sets.end_ids or self.request.follow and self._only_follows(token):
            return self._end(Finish.EOS)
        data = self._sets.token_bytes[token]
        self.ids.append(token)
        self._counts[token] = self._counts.get(token, 0) + 1
        if record is not None:
            self._records.append(record)
        value = self._spell(data) if self._heal else data
        if value:
            self._counted += 1
            self._value += value
            if self.request.constraint is not None:
                self._state = self.request.constraint.advance(self._state, value)
            if self._stops_in(self._characters.push(value)):
                return True
        return self._end_if_over()

    def take_text(self) -> str:
        """Text that can no longer change and was not taken before: no part of a stop string, no incomplete character."""
        end = len(self._text)
        if self.finish is None:
            end -= max((_held_back(self._text, stop) for stop in self.request.stops), default=0)
        text = self._text[self._shown : end]
        self._shown = max(self._shown, end)
        return text

    def result(self, cached: int, computed: int, passes: int) -> Generated:
        """The outcome, once `finish` is set.  Arguments as in `Usage`."""
        assert self.finish is not None
        constraint = self.request.constraint
        valid = constraint is None or not self._heal and constraint.accepting(constraint.advance(START, self._value_bytes()))
        return Generated(tuple(self.ids[: self.kept]), self._text, self._carry, self.finish, self.stop, valid,
                         Usage(cached, computed, len(self.ids), passes, self.drafted, self.jumped), tuple(self._records[: self.kept]))

    def _end_token_may_come(self) -> bool:
        return not self.request.ignore_eos and self._counted >= self.request.min_tokens

    def _only_follows(self, token: int) -> bool:
        """Whether the token is legal only because the text that follows the value begins like it."""
        constraint, follow = self.request.constraint, self.request.follow
        if constraint is None or not follow or self._heal or self._sets.token_bytes[token][:1] != follow:
            return False
        legal = constraint.allowed(self._state)
        place = int(np.searchsorted(legal, token))
        return place == len(legal) or int(legal[place]) != token

    def _spell(self, data: bytes) -> bytes:
        """Take from `data` what is still to be healed; the rest belongs to the value."""
        length = min(len(data), len(self._heal))
        assert data[:length] == self._heal[:length], (data, self._heal)
        self._heal = self._heal[length:]
        return data[length:]

    def _stops_in(self, fresh: str) -> bool:
        """Add `fresh` to the text and end at the stop that completes first; of two that complete together the longer one counts."""
        before = len(self._text)
        self._text += fresh
        if not self.request.stops or self._counted < self.request.min_tokens:
            return False
        matches = []
        for stop in self.request.stops:
            start = self._text.find(stop, max(0, before - len(stop) + 1))
            if start >= 0:
                matches.append((start + len(stop), start, stop))
        if not matches:
            return False
        _, start, self.stop = min(matches)
        self._text = self._text[:start]
        return self._end(Finish.STOP)

    def _end_if_over(self) -> bool:
        """End where nothing more may come."""
        constraint = self.request.constraint
        if self._heal:
            over = None
        elif constraint is not None and constraint.accepting(self._state) and not len(constraint.allowed(self._state)):
            over = Finish.COMPLETE
        else:
            over = Finish.LENGTH if self._counted >= self.request.max_tokens else None
        if over is None and len(self.request.prompt) + len(self.ids) >= self._limit:
            over = Finish.LENGTH
        return over is not None and self._end(over)

    def _end(self, finish: Finish) -> bool:
        self.finish = finish
        spelt = len(self.request.heal) - len(self._heal)
        tokens = [self._sets.token_bytes[token] for token in self.ids]
        self.kept, self._carry = settle(tokens, spelt + len(self._value_bytes()))
        # Where the limit came first, what is still to be healed belongs to the context all the same.
        self._carry += self._heal.decode("utf-8", "replace")
        return True

    def _value_bytes(self) -> bytes:
        """The bytes that `text` stands for.  In free text several bytes that are no UTF-8 may be one U+FFFD: there it is looked for."""
        data = self._text.encode()
        if self._value.startswith(data):
            return data
        value = bytes(self._value)
        return next(value[:n] for n in range(len(value) + 1) if len(Detokeniser().push(value[:n])) >= len(self._text))


def _merged(ids: np.ndarray, more: np.ndarray) -> np.ndarray:
    """All of two sorted arrays, sorted, each once.  `np.union1d` would sort a mask of the whole vocabulary at every token."""
    places = np.searchsorted(ids, more)
    known = np.zeros(len(more), bool)
    inside = places < len(ids)
    known[inside] = ids[places[inside]] == more[inside]
    return np.insert(ids, places[~known], more[~known])


def _held_back(text: str, stop: str) -> int:
    """Length of the longest end of `text` that begins `stop`."""
    return next((n for n in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:n])), 0)
