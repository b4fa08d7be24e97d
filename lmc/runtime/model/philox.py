"""The random number of a drawn token: Philox4x32-10, keyed by seed and index, so that no generator has a state to share.

    uniform(seed, 0), uniform(seed, 1), …     the numbers of one generation, whatever its neighbours draw

Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011, section 3.3; test vectors of their Random123
library.  This file knows nothing of tokens.
"""

from __future__ import annotations

_LOW = 0xFFFFFFFF
_MULTIPLY = (0xD2511F53, 0xCD9E8D57)
# The key grows by these between rounds: the golden ratio and the square root of three minus one, as 32-bit fractions.
_GROW = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10


def uniform(seed: int, index: int) -> float:
    """A number in [0, 1) with 53 random bits; `seed` and `index` are unsigned 64-bit."""
    first, second, _, _ = philox((index & _LOW, index >> 32 & _LOW, 0, 0), (seed & _LOW, seed >> 32 & _LOW))
    return ((second << 32 | first) >> 11) * 2.0**-53


def philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Philox4x32-10: four 32-bit words for a counter of four and a key of two."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(_ROUNDS):
        left, right = _MULTIPLY[0] * c0, _MULTIPLY[1] * c2
        c0, c1, c2, c3 = (right >> 32) ^ c1 ^ k0, right & _LOW, (left >> 32) ^ c3 ^ k1, left & _LOW
        k0, k1 = (k0 + _GROW[0]) & _LOW, (k1 + _GROW[1]) & _LOW
    return c0, c1, c2, c3
