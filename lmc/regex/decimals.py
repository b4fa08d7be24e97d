"""Decimal numbers between bounds, and multiples, as syntax trees.

    decimal_range(Decimal("0.5"), None, Decimal("2"), None)     # 0.5 0.75 1 1.999 2, each spelling of them

A number is a sign, digits and perhaps a fraction; there is no exponent.  Bounds are exact decimals, never floats.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from lmc.regex.build import Raw, compile_node, minimal
from lmc.regex.nodes import EMPTY, Chars, Embedded, Node, Repeat, alternate, concat, optional, text
from lmc.regex.numbers import FLOAT, INT, int_range
from lmc.regex.parse import RegexError
from lmc.regex.product import intersection

_DIGIT = Chars(((48, 57),))
_ANY_FRACTION = optional(concat(text("."), Repeat(_DIGIT, 1, None)))
_MOST = 10**15 - 1
#: A multiple is told by remainders, one state each and decimal place.
_MAX_STEP = 5000


@dataclass(frozen=True, slots=True)
class Bound:
    value: Decimal
    strict: bool


def decimal_range(low: Bound | None, high: Bound | None) -> Node:
    """The numbers that are not below `low` nor above `high`, as `FLOAT` writes them.  Raises `RegexError` where there is none."""
    options = []
    positive = _magnitude(low, high)
    if positive is not None:
        options.append(positive)
    negative = _magnitude(_mirror(high), _mirror(low))
    if negative is not None:
        options.append(concat(text("-"), negative))
    if not options:
        raise RegexError("no number lies between the bounds", 0)
    return Embedded(intersection(compile_node(FLOAT, "number"), compile_node(alternate(options), "bounds"), "number"))


def multiples(step: Decimal, *, whole: bool) -> Node:
    """The numbers that are a whole multiple of `step`, or of them the integers.  Raises `RegexError`: too fine or too large."""
    places = max(0, -int(step.normalize().as_tuple().exponent))
    unit = int(step.scaleb(places))
    if unit <= 0 or places > 6 or unit > _MAX_STEP:
        raise RegexError(f"multiples of {step} are not supported", 0)
    numbers = compile_node(INT if whole else FLOAT, "number")
    return Embedded(intersection(numbers, minimal(_remainders(unit, 0 if whole else places, places), "multiples"), "multiples"))


def _remainders(unit: int, digits: int, places: int) -> Raw:
    """States: (remainder, place); the byte classes are the digits, `.`, `-` and all else."""
    byte_class = [10 + (b == 46) + 2 * (b == 45) if not 48 <= b <= 57 else b - 48 for b in range(256)]
    numbers = {("start", 0): 0}
    order: list[tuple[str | int, int]] = [("start", 0)]

    def number(state: tuple[str | int, int]) -> int:
        if state not in numbers:
            numbers[state] = len(order)
            order.append(state)
        return numbers[state]

    rows = []
    for value, place in order:
        row = [-1] * 13
        started = value not in ("start", "signed")
        # `place` is one more than the digits behind the point once there is one.
        if place <= digits:
            for digit in range(10):
                row[digit] = number((((value if started else 0) * 10 + digit) % unit, place + 1 if place else 0))
        if value == "start":
            row[12] = number(("signed", 0))
        if started and place == 0 and digits:
            row[11] = number((value, 1))
        rows.append(row)
    accepting = [
        isinstance(value, int) and value * 10 ** (places - max(0, place - 1)) % unit == 0 for value, place in order
    ]
    return Raw(byte_class, rows, accepting)


def _mirror(bound: Bound | None) -> Bound | None:
    return None if bound is None else Bound(-bound.value, bound.strict)


def _magnitude(low: Bound | None, high: Bound | None) -> Node | None:
    """Unsigned numbers between the bounds, each of which may be negative."""
    if high is not None and (high.value < 0 or high.value == 0 and high.strict):
        return None
    if low is not None and low.value < 0:
        low = None
    sides = [_at_least(low)] if low is not None else []
    sides += [_at_most(high)] if high is not None else []
    if not sides:
        return concat(int_range(0, _MOST), _ANY_FRACTION)
    if len(sides) == 1:
        return sides[0]
    try:
        return Embedded(intersection(compile_node(sides[0], "low"), compile_node(sides[1], "high"), "range"))
    except RegexError:
        return None


def _split(value: Decimal) -> tuple[int, str]:
    whole, _, fraction = f"{value:f}".partition(".")
    return int(whole), fraction.rstrip("0")


def _at_most(bound: Bound) -> Node:
    whole, fraction = _split(bound.value)
    options = [] if whole == 0 else [concat(int_range(0, whole - 1), _ANY_FRACTION)]
    same: list[Node] = [] if bound.strict and not fraction else [EMPTY]
    digits = _digits_at_most(fraction, bound.strict)
    if digits is not None:
        same.append(concat(text("."), digits))
    if same:
        options.append(concat(text(str(whole)), alternate(same)))
    return alternate(options)


def _digits_at_most(fraction: str, strict: bool) -> Node | None:
    """Digits behind the point, at least one; None where there are none."""
    if not fraction:
        return None if strict else Repeat(text("0"), 1, None)
    digit = int(fraction[0])
    options: list[Node] = []
    if digit:
        options.append(concat(_between(0, digit - 1), Repeat(_DIGIT, 0, None)))
    rest = _digits_at_most(fraction[1:], strict)
    # Where the digits end here, zeros follow: that is less if there is more in the bound.
    ends = fraction[1:] or not strict
    if ends or rest is not None:
        options.append(concat(text(fraction[0]), *_or_end(rest, bool(ends))))
    return alternate(options) if options else None


def _at_least(bound: Bound) -> Node:
    whole, fraction = _split(bound.value)
    options: list[Node] = [concat(int_range(whole + 1, max(_MOST, whole + 1)), _ANY_FRACTION)]
    same: list[Node] = [] if bound.strict or fraction else [EMPTY]
    same.append(concat(text("."), _digits_at_least(fraction, bound.strict)))
    options.append(concat(text(str(whole)), alternate(same)))
    return alternate(options)


def _digits_at_least(fraction: str, strict: bool) -> Node:
    if not fraction:
        if not strict:
            return Repeat(_DIGIT, 1, None)
        return concat(Repeat(text("0"), 0, None), _between(1, 9), Repeat(_DIGIT, 0, None))
    digit = int(fraction[0])
    options: list[Node] = []
    if digit < 9:
        options.append(concat(_between(digit + 1, 9), Repeat(_DIGIT, 0, None)))
    options.append(concat(text(fraction[0]), *_or_end(_digits_at_least(fraction[1:], strict), not fraction[1:] and not strict)))
    return alternate(options)


def _or_end(rest: Node | None, ends: bool) -> list[Node]:
    if rest is None:
        return []
    return [optional(rest)] if ends else [rest]


def _between(low: int, high: int) -> Node:
    return Chars(((48 + low, 48 + high),))
