"""From the bytes of generated tokens to text: while they stream, and where a generation is cut.

    tokens            " caf"  "\\xc3"  "\\xa9"  " au"  " lait"
    Detokeniser       " caf"  ""      "é"     " au"  " lait"       only whole characters leave
    settle(…, 8)      keeps 3 tokens (" café"), carry " a"          a stop string cut the fourth token

It knows bytes and characters; it does not know ids, stops or constraints.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from itertools import accumulate


class Detokeniser:
    """Collects the bytes of one generation, token by token, and gives out whole characters.

    Bytes that can never become a character give U+FFFD, as a one-shot decode of all bytes would.
    """

    __slots__ = ("_decoder",)

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, data: bytes) -> str:
        """The characters that `data` (the next token's bytes) completes; an unfinished character is held back."""
        return self._decoder.decode(data)

    @property
    def pending(self) -> bytes:
        """Bytes of the unfinished character; they are dropped when the generation ends here."""
        return self._decoder.getstate()[0]


def settle(tokens: Sequence[bytes], keep: int) -> tuple[int, str]:
    """Which generated tokens stay when only their first `keep` bytes do: (number of tokens that stay whole, carry).

    tokens: the bytes of each generated token in order, those that spell `heal` included, so `keep` counts these bytes too
    keep: number of bytes before the stop string (or all of them)

    An unfinished character at the cut is dropped.  Tokens before the cut stay while they end between two characters; the bytes
    after the last such token are the carry: text of the context that opens its next segment.  The text of what stays, then, is
    always `b"".join(tokens[:count]).decode() + carry`.
    """
    data = b"".join(tokens)
    assert 0 <= keep <= len(data), (keep, len(data))
    keep = whole_characters(data[:keep])
    count, end = 0, 0
    for index, stop in enumerate(accumulate(map(len, tokens)), 1):
        if stop > keep:
            break
        if stop == len(data) or not _continues(data[stop]):
            count, end = index, stop
    return count, data[end:keep].decode("utf-8", "replace")


def whole_characters(data: bytes) -> int:
    """Length of `data` without an unfinished character at its end."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    return len(data) - len(decoder.getstate()[0])


def _continues(byte: int) -> bool:
    # The second and later bytes of a character in UTF-8.
    return byte & 0xC0 == 0x80
