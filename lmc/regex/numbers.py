"""Numbers as they are written in JSON: any int, any float, or exactly the ints of a range.

    int_range(8, 12)      # 8 | 9 | 1(0|1|2): no enumeration, so that 1..1000000000 is as cheap
"""

from __future__ import annotations

from lmc.regex.nodes import EMPTY, Chars, Node, Repeat, alternate, concat, optional, text
from lmc.regex.parse import RegexError

_DIGIT = Chars(((48, 57),))
_NONZERO = Chars(((49, 57),))

#: At most 18 digits, so that each fits in 64 bits; no leading zero, no `-0`.
INT = alternate([text("0"), concat(optional(text("-")), _NONZERO, Repeat(_DIGIT, 0, 17))])
#: At most 15 digits on each side, no exponent.
FLOAT = concat(
    optional(text("-")),
    alternate([text("0"), concat(_NONZERO, Repeat(_DIGIT, 0, 14))]),
    optional(concat(text("."), Repeat(_DIGIT, 1, 15))),
)


def int_range(low: int, high: int) -> Node:
    """The ints from `low` to `high` in decimal.  Raises `RegexError` where there is none."""
    if low > high:
        raise RegexError(f"the range {low}..{high} is empty", 0)
    options = []
    if low < 0:
        options.append(concat(text("-"), _natural(max(1, -high), -low)))
    if high >= 0:
        options.append(_natural(max(0, low), high))
    return alternate(options)


def _natural(low: int, high: int) -> Node:
    options = []
    for length in range(len(str(low)), len(str(high)) + 1):
        first = max(low, 10 ** (length - 1) if length > 1 else 0)
        last = min(high, 10**length - 1)
        options.append(_same_length(str(first), str(last)))
    return alternate(options)


def _same_length(low: str, high: str) -> Node:
    """Strings of digits between two of equal length."""
    if not low:
        return EMPTY
    if set(low) == {"0"} and set(high) == {"9"}:
        return Repeat(_DIGIT, len(low), len(low))
    if low[0] == high[0]:
        return concat(text(low[0]), _same_length(low[1:], high[1:]))
    rest = len(low) - 1
    options = [concat(text(low[0]), _same_length(low[1:], "9" * rest)), concat(text(high[0]), _same_length("0" * rest, high[1:]))]
    if ord(high[0]) - ord(low[0]) > 1:
        between = Chars(((ord(low[0]) + 1, ord(high[0]) - 1),))
        options.append(concat(between, Repeat(_DIGIT, rest, rest)))
    return alternate(options)
