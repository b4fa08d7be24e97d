"""Ranges of code points as sequences of byte ranges: how UTF-8 spells a character class.

    byte_sequences(((0x41, 0x5A), (0xE9, 0xE9)))  ==  (((0x41, 0x5A),), ((0xC3, 0xC3), (0xA9, 0xA9)))

Each sequence stands for the product of its ranges; no string of bytes is in two sequences.  Surrogates must have been left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from lmc.regex.nodes import Ranges

Sequence = tuple[tuple[int, int], ...]

# The last code point of each length of UTF-8.
_LENGTH_ENDS = (0x7F, 0x7FF, 0xFFFF, 0x10FFFF)


@lru_cache(maxsize=1024)
def byte_sequences(ranges: Ranges) -> tuple[Sequence, ...]:
    """The sequences in ascending order of bytes."""
    return tuple(sequence for low, high in ranges for sequence in _split(low, high))


def _split(low: int, high: int) -> Iterator[Sequence]:
    """Cut a range until the lower bytes of each piece run over all their values, or the upper bytes are equal."""
    for end in _LENGTH_ENDS:
        if low <= end < high:
            yield from _split(low, end)
            low = end + 1
    if high <= 0x7F:
        yield ((low, high),)
        return
    for bits in (6, 12, 18):
        block = (1 << bits) - 1
        if low >> bits == high >> bits:
            break
        if low & block:
            yield from _split(low, low | block)
            yield from _split((low | block) + 1, high)
            return
        if high & block != block:
            yield from _split(low, (high & ~block) - 1)
            yield from _split(high & ~block, high)
            return
    yield tuple(zip(chr(low).encode(), chr(high).encode()))
