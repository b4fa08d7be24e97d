r"""What an automaton is built from, as the text of a regex for people to read.

    spell(int_range(8, 12))                   # [89]|1[0-2]
    spell(bare_string(max_len=5))             # [\s\S]{0,5}

Reading the text again gives the same automaton.  Embedded automata have no such text.
"""

from __future__ import annotations

from lmc.regex.nodes import ALL_RANGES, Alternate, Anchor, Chars, Concat, Edge, Node, Ranges, Repeat, Words, normalise

_SPECIAL = frozenset("\\.^$*+?()[]{}|")


class NoSpelling(ValueError):
    """The node holds a finished automaton."""


def spell(node: Node) -> str:
    """A regex that matches what the node stands for.  Raises `NoSpelling`."""
    one = _one_character(node)
    if one is not None:
        return _chars(one)
    match node:
        case Words(words):
            return "|".join(map(_literal, words))
        case Alternate(options):
            return "|".join(map(spell, options))
        case Concat(parts):
            return "".join(_grouped(p, Alternate, Words) for p in parts)
        case Repeat(inner, low, high):
            return _grouped(inner, Alternate, Words, Concat, Repeat) + _count(low, high) if high != 0 else ""
        case Anchor(edge):
            return "^" if edge is Edge.START else "$"
    raise NoSpelling(type(node).__name__)


def _one_character(node: Node) -> Ranges | None:
    """The characters of which the node is any one; None where it is anything else."""
    match node:
        case Chars(ranges):
            return ranges
        case Words(words):
            return normalise((ord(w), ord(w)) for w in words) if all(len(w) == 1 for w in words) else None
        case Concat(parts):
            said = [p for p in parts if not (isinstance(p, Concat) and not p.parts or isinstance(p, Repeat) and p.high == 0)]
            return _one_character(said[0]) if len(said) == 1 else None
        case Alternate(options):
            found = [_one_character(o) for o in options]
            return normalise(r for ranges in found for r in ranges or ()) if all(f is not None for f in found) else None
    return None


def _grouped(node: Node, *loose: type[Node]) -> str:
    """In parentheses where the node is of a kind that would fall apart."""
    plain = _one_character(node) is not None or isinstance(node, Words) and len(node.words) == 1 and Concat not in loose
    return f"({spell(node)})" if isinstance(node, loose) and not plain else spell(node)


def _count(low: int, high: int | None) -> str:
    short = {(0, 1): "?", (0, None): "*", (1, None): "+", (1, 1): ""}.get((low, high))
    if short is not None:
        return short
    return f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}"


def _literal(word: str) -> str:
    return "".join(_escaped(char) if char in _SPECIAL or char in "\n\r\t" else char for char in word)


def _escaped(char: str) -> str:
    return {"\n": r"\n", "\r": r"\r", "\t": r"\t"}.get(char) or "\\" + char


def _chars(ranges: Ranges) -> str:
    if ranges == ALL_RANGES:
        return r"[\s\S]"
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _literal(chr(ranges[0][0]))
    return "[" + "".join(_range(low, high) for low, high in ranges) + "]"


def _range(low: int, high: int) -> str:
    ends = [_class_literal(chr(low)), _class_literal(chr(high))]
    return ends[0] if low == high else ("-" if high - low > 1 else "").join(ends)


def _class_literal(char: str) -> str:
    return _escaped(char) if char in "\\]^-[\n\r\t" else char
