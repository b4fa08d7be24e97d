"""The tokenizer of the stand-in model: all bytes, a few hundred longer tokens, four control tokens.

    encode("the cat\\n\\n")   ->  [b"the", b" c", b"at", b"\\n\\n"]

It has what makes real tokenizers awkward: words with a leading space, pieces of JSON in one token, characters of several tokens.  It
is made from the lists below alone, so it is the same everywhere.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from functools import cache

#: Of the stand-in model: bytes of a slot, which holds a token and its position, and the longest context.
DRY_SLOT_BYTES, DRY_POSITIONS = 16, 8192

END_OF_TEXT, TURN_START, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
_CONTROL = (END_OF_TEXT, TURN_START, TURN_END)

#: Words that the stand-in model writes; each is a token with and without a space before it.
_WORDS = """
    the of and to a in is it that was for on are as with his they at be this have from or one had by word but not what all were we when
    your can said there use an each which she do how their if will up other about out many then them these so some her would make like
    him into time has look two more write go see number no way could people my than first water been call who oil its now find long down
    day did get come made may part over new sound take only little work know place year live me back give most very after thing our just
    name good sentence man think say great where help through much before line right too mean old any same tell boy follow came want show
    also around form three small set put end does another well large must big even such because turn here why ask went men read need land
""".split()

#: Pieces of JSON and of code, runs of white space, and ends of words.
_PIECES = [
    "\n\n", "\n\n\n", "  ", "    ", "        ", '": ', '":', '": "', '":"', '", "', '","', '{"', '"}', '["', '"]', "[]", "{}", "},",
    "}}", "]}", ", ", ". ", ": ", " {", " [", ' "', "://", "...", "####", "ing", "ed", "er", "es", "est", "ly", "tion", "ment", "ness",
    "true", "false", "null", "10", "100", "2024", "user", "assistant", "system", "Thought", "Action", "é", "–", "’", "日本", "😀",
]


class DryTokenizer:
    """Bytes and common pieces, longest piece first.  The interface is that of `lmc.runtime.tokenizer.Tokenizer`."""

    def __init__(self, pieces: list[bytes], control: tuple[str, ...], ends: tuple[str, ...]):
        self.token_bytes: tuple[bytes, ...] = tuple(bytes([b]) for b in range(256)) + tuple(pieces) + (b"",) * len(control)
        self.size = len(self.token_bytes)
        self.longest_token = max(map(len, self.token_bytes))
        first = self.size - len(control)
        self._control = {text: first + i for i, text in enumerate(control)}
        self.control_ids = frozenset(self._control.values())
        self.end_ids = frozenset(self._control[text] for text in ends)
        self.bos_id: int | None = None
        self.eos_id: int | None = self._control[ends[0]]
        self.begin_id = self.eos_id  # as in `Tokenizer`: what stands before text that nothing comes before
        self.lossy = False
        self._ids = {data: i for i, data in enumerate(self.token_bytes) if data}
        self._sorted_bytes = sorted(self._ids)
        self._pattern = re.compile(_longest_of(pieces) + b"|.", re.DOTALL)
        # The longest first, so that no marker is taken for a shorter one that it begins with.
        self._control_pattern = re.compile("|".join(map(re.escape, sorted(control, key=len, reverse=True))))

    def encode(self, text: str, *, at_start: bool = False) -> list[int]:
        """Ids of ordinary text; the spelling of a control token is ordinary text too.  `at_start` makes no difference here."""
        return [self._ids[piece] for piece in self._pattern.findall(text.encode())]

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The bytes of the ids; control tokens have none."""
        return b"".join(self.token_bytes[i] for i in ids)

    def control_id(self, text: str) -> int | None:
        """The id of the control token that is spelled so."""
        return self._control.get(text)

    def control_text(self, id: int) -> str:
        """How a control token is spelled; the empty string for any other id."""
        return next((text for text, i in self._control.items() if i == id), "")

    def split_control(self, text: str) -> tuple[int | str, ...]:
        """A template's text as control tokens (ids) and ordinary text between them (never empty)."""
        pieces: list[int | str] = []
        place = 0
        for found in self._control_pattern.finditer(text):
            pieces += [text[place : found.start()], self._control[found[0]]]
            place = found.end()
        return tuple(piece for piece in (*pieces, text[place:]) if piece != "")

    def begins_longer_token(self, data: bytes) -> bool:
        """Whether `data` is a proper prefix of what some token spells."""
        after = bisect_right(self._sorted_bytes, data)
        return after < len(self._sorted_bytes) and self._sorted_bytes[after].startswith(data)


def _longest_of(pieces: Iterable[bytes]) -> bytes:
    """A pattern of the longest piece that comes next, as a tree of what they share: an alternation would be tried piece by piece."""
    rests: dict[bytes, list[bytes]] = {}
    for piece in pieces:
        rests.setdefault(piece[:1], []).append(piece[1:])
    ways = [re.escape(first) + _longest_of(rest) for first, rest in sorted(rests.items()) if first]
    return b"(?:" + b"|".join(ways) + b")" + b"?" * (b"" in rests) if ways else b""


@cache
def dry_tokenizer() -> DryTokenizer:
    """The tokenizer of `DryModel`."""
    words = [form for word in _WORDS for form in (" " + word, word) if len(form) > 1]
    pieces = dict.fromkeys(piece.encode() for piece in words + _PIECES)
    return DryTokenizer(list(pieces), _CONTROL, (END_OF_TEXT, TURN_END))
