"""The parts of compact JSON as syntax trees: strings, arrays, objects.

    string(max_len=3)                       # "" … up to three characters between quotes, escapes counted as one
    array(INT, 1, None)                     # [1] [1,2] …
    record([('"a":', INT), ('"b":', INT)])  # {"a":1,"b":2}

There is no whitespace, and each value has one spelling: what must be escaped is escaped as `lmc.values.to_json` does it, nothing
else is.  So the length of a string and what its regex sees are those of the value.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lmc.regex.build import compile_node
from lmc.regex.dfa import ByteDfa
from lmc.regex.nodes import (
    ALL_RANGES, ANY, EMPTY, Alternate, Anchor, Chars, Concat, Embedded, Node, Repeat, Words, alternate, complement, concat,
    intersect, optional, text,
)
from lmc.regex.parse import RegexError, parse_regex
from lmc.regex.product import intersection

# What cannot stand in a JSON string as itself: control characters, `"` and `\`.
_ESCAPED = ((0, 31), (34, 34), (92, 92))


def json_text(value: Any) -> str:
    """Compact JSON, as `to_json` writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def string(min_len: int | None = None, max_len: int | None = None, regex: str | None = None, *, search: bool = False) -> Node:
    """A JSON string whose value has these lengths, in characters, and matches `regex` as a whole (anywhere, with `search`)."""
    quote = text('"')
    return concat(quote, _value(_JSON_CHAR, min_len, max_len, _pattern(regex, search=search, escaped=True)), quote)


def content(regex: str, *, search: bool) -> ByteDfa:
    """What stands between the quotes of a string whose value matches `regex` as a whole, or anywhere.  Raises `RegexError`."""
    found = _pattern(regex, search=search, escaped=True)
    assert found is not None
    return found


def string_of(contents: Sequence[ByteDfa], min_len: int | None, max_len: int | None) -> Node:
    """A JSON string that all these automata accept between its quotes, of these lengths.  Raises `RegexError`: there is none."""
    both = None
    for dfa in contents:
        both = dfa if both is None else intersection(both, dfa, f"{both.source} and {dfa.source}")
    return concat(text('"'), _value(_JSON_CHAR, min_len, max_len, both), text('"'))


def any_content() -> Node:
    """What stands between the quotes of any string."""
    return Repeat(_JSON_CHAR, 0, None)


def bare_string(min_len: int | None = None, max_len: int | None = None, regex: str | None = None) -> Node:
    """Text with these lengths that matches `regex`, as itself."""
    return _value(ANY, min_len, max_len, _pattern(regex, search=False, escaped=False))


def array(element: Node, min_items: int | None, max_items: int | None) -> Node:
    """A JSON array with so many elements."""
    low, high = min_items or 0, max_items
    if high is not None and low > high:
        raise RegexError(f"no list has at least {low} and at most {high} elements", 0)
    options: list[Node] = [text("[]")] if low == 0 else []
    if high != 0:
        more = Repeat(concat(text(","), element), max(low - 1, 0), None if high is None else high - 1)
        options.append(concat(text("["), element, more, text("]")))
    return alternate(options)


def record(fields: Sequence[tuple[str, Node]]) -> Node:
    """A JSON object with all these fields, in this order; each with the text of its key and colon."""
    parts: list[Node] = []
    for number, (key, value) in enumerate(fields):
        parts += [text(("," if number else "{") + key), value]
    return concat(*parts, text("}")) if parts else text("{}")


def partial_record(fields: Sequence[tuple[str, Node, bool]]) -> Node:
    """A JSON object with fields in this order, of which those marked False may be missing."""
    required = [number for number, field in enumerate(fields) if field[2]]
    members = [concat(text(key), value) for key, value, _ in fields]
    later = [
        concat(text(","), member) if field[2] else optional(concat(text(","), member)) for member, field in zip(members, fields)
    ]
    if required:
        # Before the first field that is certain, each field brings the comma behind it; after it, the comma before it.
        first = required[0]
        earlier = [optional(concat(member, text(","))) for member in members[:first]]
        return concat(text("{"), *earlier, members[first], *later[first + 1 :], text("}"))
    bodies = [concat(members[n], *later[n + 1 :]) for n in range(len(fields))]
    return concat(text("{"), alternate([*bodies, EMPTY]), text("}"))


def mapping(key: Node, value: Node) -> Node:
    """A JSON object with any number of keys.  That they differ is more than a finite automaton can tell: the last one counts."""
    member = concat(key, text(":"), value)
    return alternate([text("{}"), concat(text("{"), member, Repeat(concat(text(","), member), 0, None), text("}"))])


def _value(char: Node, min_len: int | None, max_len: int | None, pattern: ByteDfa | None) -> Node:
    if max_len is not None and (min_len or 0) > max_len:
        raise RegexError(f"no text has at least {min_len} and at most {max_len} characters", 0)
    lengths = Repeat(char, min_len or 0, max_len)
    if pattern is None:
        return lengths
    if min_len is None and max_len is None:
        return Embedded(pattern)
    return Embedded(intersection(pattern, compile_node(lengths, "lengths"), pattern.source))


def _pattern(regex: str | None, *, search: bool, escaped: bool) -> ByteDfa | None:
    """The automaton of a regex over the value, with its own ends for `^` and `$`."""
    if regex is None:
        return None
    node = parse_regex(regex, ecma=search)
    if search:
        anything = Repeat(ANY, 0, None)
        node = concat(anything, node, anything)
    return compile_node(_escape(node, {}) if escaped else node, regex)


def _escape(node: Node, done: dict[int, Node]) -> Node:
    """The tree whose strings are those of `node` as they stand between the quotes of JSON.  Shared nodes stay shared."""
    if id(node) not in done:
        done[id(node)] = _escape_new(node, done)
    return done[id(node)]


def _escape_new(node: Node, done: dict[int, Node]) -> Node:
    match node:
        case Chars(ranges):
            options: list[Node] = [Chars(intersect(ranges, complement(_ESCAPED)))]
            escapes = [json_text(chr(c))[1:-1] for low, high in intersect(ranges, _ESCAPED) for c in range(low, high + 1)]
            return alternate([*options, Words(tuple(escapes))] if escapes else options)
        case Words(words):
            return Words(tuple(json_text(word)[1:-1] for word in words))
        case Concat(parts):
            return Concat(tuple(_escape(part, done) for part in parts))
        case Alternate(options):
            return Alternate(tuple(_escape(option, done) for option in options))
        case Repeat(inner, low, high):
            return Repeat(_escape(inner, done), low, high)
    assert isinstance(node, Anchor), node
    return node


_JSON_CHAR = _escape(Chars(ALL_RANGES), {})
