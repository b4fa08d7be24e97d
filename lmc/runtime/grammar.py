"""Which tokens may come next in a grammar: `TokenConstraint` for what no automaton holds, by `llguidance`.

    constraint = GrammarConstraint(Grammar("lark", 'start: "(" start ")" | "x"'), token_bytes)
    state = constraint.advance(START, b"((")
    constraint.allowed(state)                  # ids of `(`, `((`, `x` …

A state is the text read so far.  Matchers stand at the states used last and are made anew from the text for others, so states are
free to go back to.  The 256 bytes stand behind the vocabulary as tokens of their own: text is then read byte by byte, however it
fell into tokens.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from lmc.diagnostics import Diagnostic, LmcError
from lmc.regex.dfa import DEAD, START
from lmc.regex.grammar import Grammar, GrammarError, compiled_text, first_line
from lmc.runtime.constraint import TokenConstraint

# Matchers kept: one for each of a large batch's rows.
_KEEP_MATCHERS = 256
# Masks kept: rows of one document meet the same states.
_KEEP_MASKS = 512


class GrammarConstraint:
    """The masks of one grammar over one vocabulary; `token_bytes[id]` are empty for control tokens.

    Raises `LmcError` (E0646) where the grammar cannot be read or the extra is not installed.
    """

    __slots__ = ("grammar", "size", "_bytes", "_tokens", "_starting", "_texts", "_text_bytes", "_numbers", "_matchers", "_masks",
                 "__weakref__")

    def __init__(self, grammar: Grammar, token_bytes: Sequence[bytes]):
        self.grammar = grammar
        self.size = len(token_bytes)
        self._bytes = [*token_bytes, *(bytes([b]) for b in range(256)), b"\xff<end>"]
        try:
            matcher = _matcher(compiled_text(grammar), self._bytes)
        except GrammarError as error:
            raise LmcError(Diagnostic("E0646", str(error), None, help="see docs/constraints.md")) from None
        self._starting: dict[int, list[int]] = {}
        for number, data in enumerate(token_bytes):
            if data:
                self._starting.setdefault(data[0], []).append(number)
        #: State -> the text read; a text that cannot go on is `DEAD`.
        self._texts: list[bytes] = [b"", b""]
        self._text_bytes = 0
        self._numbers: dict[bytes, int] = {b"": START}
        self._matchers: OrderedDict[int, Any] = OrderedDict({START: matcher})
        self._masks: OrderedDict[int, np.ndarray] = OrderedDict()
        if not len(self.allowed(START)) and not self.accepting(START):
            message = "the model's tokens cannot spell any text of the grammar"
            raise LmcError(Diagnostic("E0642", message, None, help="some of its characters are in no token; allow others"))

    def allowed(self, state: int, prefix: bytes = b"") -> np.ndarray:
        """As `TokenConstraint.allowed`."""
        if state == DEAD:
            return np.zeros(0, np.int64)
        if prefix:
            return self._allowed_healing(state, prefix)
        if state not in self._masks:
            _trim(self._masks, _KEEP_MASKS)
            self._masks[state] = self._mask(state)
        return self._masks[state]

    def advance(self, state: int, data: bytes) -> int:
        """As `TokenConstraint.advance`."""
        if state == DEAD or not data:
            return state
        text = self._texts[state] + data
        if text not in self._numbers:
            matcher = self._matcher_at(state).deep_copy()
            if matcher.try_consume_tokens(self._ids_of(data)) < len(data):
                return DEAD
            self._numbers[text] = len(self._texts)
            self._texts.append(text)
            self._text_bytes += len(text)
            self._keep(self._numbers[text], matcher)
        return self._numbers[text]

    def accepting(self, state: int) -> bool:
        return state != DEAD and self._matcher_at(state).is_accepting()

    def complete(self, state: int) -> bool:
        return self.accepting(state) and not len(self.allowed(state))

    def forced(self, state: int) -> bytes:
        """As `TokenConstraint.forced`."""
        return b"" if state == DEAD or self.accepting(state) else self._matcher_at(state).compute_ff_bytes()

    def min_tokens(self, state: int = START, *, enough: int = 0) -> int:
        """A number of tokens that is certainly not too high: what a grammar needs at least is not searched for."""
        return 0 if self.accepting(state) else 1

    @property
    def held_bytes(self) -> int:
        """Of the texts that are states, and of the masks that are kept."""
        return len(self.grammar.source) + self._text_bytes + sum(mask.nbytes for mask in list(self._masks.values()))

    def _mask(self, state: int) -> np.ndarray:
        from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

        row = allocate_token_bitmask(1, len(self._bytes))
        matcher = self._matcher_at(state)
        if matcher.is_stopped():
            return np.zeros(0, np.int64)
        fill_next_token_bitmask(matcher, row)
        bits = np.unpackbits(row.view(np.uint8).reshape(-1), bitorder="little")[: self.size]
        return np.flatnonzero(bits).astype(np.int64)

    def _allowed_healing(self, state: int, prefix: bytes) -> np.ndarray:
        found = []
        for number in self._starting.get(prefix[0], ()):
            data = self._bytes[number]
            if data.startswith(prefix):
                rest = self._ids_of(data[len(prefix) :])
                if self._matcher_at(state).validate_tokens(rest) == len(rest):
                    found.append(number)
            elif prefix.startswith(data) and len(self._allowed_healing(state, prefix[len(data) :])):
                found.append(number)
        return np.array(sorted(found), np.int64)

    def _ids_of(self, data: bytes) -> list[int]:
        return [self.size + byte for byte in data]

    def _matcher_at(self, state: int) -> Any:
        """A matcher that stands there; it is shared, so copy it before it reads on."""
        if state not in self._matchers:
            matcher = self._matchers[START].deep_copy()
            matcher.consume_tokens(self._ids_of(self._texts[state]))
            self._keep(state, matcher)
        self._matchers.move_to_end(state)
        return self._matchers[state]

    def _keep(self, state: int, matcher: Any) -> None:
        self._matchers[state] = matcher
        self._matchers.move_to_end(START)
        _trim(self._matchers, _KEEP_MATCHERS)


#: What may constrain a generation; the two answer the same questions.
Constraint = TokenConstraint | GrammarConstraint


def _trim(kept: OrderedDict[int, Any], most: int) -> None:
    while len(kept) > most:
        kept.popitem(last=False)


class _Vocabulary:
    """What `llguidance` asks of a tokenizer: tokens as bytes, and how bytes are tokenised (byte by byte)."""

    def __init__(self, tokens: list[bytes]):
        self.tokens = tokens
        self.eos_token_id = len(tokens) - 1
        self.bos_token_id = None
        self.special_token_ids = [number for number, data in enumerate(tokens) if not data] + [self.eos_token_id]

    def __call__(self, text: bytes | str) -> list[int]:
        first = len(self.tokens) - 257
        return [first + byte for byte in (text.encode() if isinstance(text, str) else text)]


def _matcher(text: str, tokens: list[bytes]) -> Any:
    from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

    matcher = LLMatcher(LLTokenizer(TokenizerWrapper(_Vocabulary(tokens)), eos_token=len(tokens) - 1), text, log_level=0)
    if matcher.is_error():
        raise GrammarError(first_line(matcher.get_error()), 0)
    return matcher
