"""What the assistant has said to a client here, in the tokens it said it in.

    answered    user: Hi   assistant: "Hello there"          written as  Hel|lo th|ere
    asked       user: Hi   assistant: "Hello there" …        read as     Hel|lo th|ere, not as Hello| there

A client sends text back, and text that is tokenised anew may fall into other tokens than it was written in.  Then the model reads
something else than it wrote, as a program that holds its context never does, and the cache does not know it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from lmc.runtime.context import Context

#: Tokens of all contexts that are kept for one client, and beginnings of one turn.
_MOST_TOKENS, _MOST_TEXTS = 1 << 18, 64

#: The state of a context in which a turn begins: its final ids and its open text.
_Place = tuple[tuple[int, ...], str]


class KnownTurns:
    """Of one client; what was used least recently is forgotten.  Safe from any thread."""

    __slots__ = ("_lock", "_turns", "_tokens")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns: OrderedDict[_Place, dict[str, Context]] = OrderedDict()
        self._tokens = 0

    def note(self, opened: Context, text: str, after: Context) -> None:
        """The turn that begins in `opened` has become `text`, and the context `after`."""
        place = (opened.ids, opened.text)
        with self._lock:
            texts = self._turns.setdefault(place, {})
            self._turns.move_to_end(place)
            self._drop(texts, text)
            texts[text] = after
            self._tokens += len(after.ids)
            if len(texts) > _MOST_TEXTS:
                self._drop(texts, next(iter(texts)))
            while self._tokens > _MOST_TOKENS and len(self._turns) > 1:
                oldest = self._turns.popitem(last=False)[1]
                self._tokens -= sum(len(context.ids) for context in oldest.values())

    def begun(self, opened: Context, text: str) -> tuple[Context, str]:
        """The context in which the longest known beginning of `text` has been said in this turn, and the rest of `text`."""
        place = (opened.ids, opened.text)
        with self._lock:
            texts = self._turns.get(place)
            if texts is None:
                return opened, text
            self._turns.move_to_end(place)
            known = max((said for said in texts if text.startswith(said)), key=len, default=None)
            return (opened, text) if known is None else (texts[known], text[len(known):])

    def _drop(self, texts: dict[str, Context], text: str) -> None:
        old = texts.pop(text, None)
        self._tokens -= 0 if old is None else len(old.ids)
