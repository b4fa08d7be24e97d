"""The members of an object: those declared, and which others may follow.

    {"properties": {"a": …}, "patternProperties": {"^x-": …}, "additionalProperties": {"type": "null"}}
        declared: a        others: keys with `^x-` and their schema; all other keys but `a`, with null

An object that declares `properties` and says nothing of others is closed; one that declares none is open.
"""

from __future__ import annotations

from lmc.regex import json_nodes
from lmc.regex.build import compile_node
from lmc.regex.dfa import ByteDfa
from lmc.regex.json_nodes import json_text
from lmc.regex.nodes import Embedded, Node, Words, alternate, concat, text
from lmc.regex.parse import RegexError
from lmc.regex.product import difference, intersection
from lmc.regex.schema_arrays import Member
from lmc.regex.schema_flat import Flat, Part
from lmc.regex.schema_keywords import BeyondAutomata
from lmc.regex.schema_reader import Schemas

# Keys are parted by every pattern: at most 2 to this power kinds of key.
_MAX_PATTERNS = 8


def members_of(reader: Schemas, flat: Flat) -> list[Member] | None:
    """The declared members in their order; None where one that is required cannot be."""
    names = dict.fromkeys([*flat.properties, *flat.required])
    members = []
    for name in names:
        node = None
        if _name_fits(reader, flat, name):
            parts = parts_of_key(flat, name)
            node = reader.node(parts) if parts else reader.free(max(reader.depth - 1, 0))
        if node is not None:
            key = concat(text(json_text(name)), reader.marks.colon)
            members.append(Member(concat(key, node), name in flat.required))
        elif name in flat.required:
            return None
    return members


def parts_of_key(flat: Flat, name: str) -> tuple[Part, ...]:
    """All that the value of a key must fulfil; nothing where any value does."""
    found = list(flat.properties.get(name, ()))
    for rule in flat.rules:
        matched = [part for pattern, part in rule.patterns if key_pattern(pattern, part[1]).matches(json_text(name)[1:-1].encode())]
        found += matched
        if not matched and name not in rule.names and rule.additional is not None:
            found.append(rule.additional)
    return tuple(found)


def key_pattern(pattern: str, path: str) -> ByteDfa:
    """The keys, as they stand between their quotes, in which a pattern is found."""
    try:
        return json_nodes.content(pattern, search=True)
    except RegexError as error:
        raise BeyondAutomata(path, error.message) from None


def closed(flat: Flat) -> bool:
    """Whether only declared keys are generated: by what it says, or since it declares some and says nothing of others."""
    others = [rule.additional for rule in flat.rules if rule.additional is not None]
    patterns = any(rule.patterns for rule in flat.rules)
    if any(schema is False for schema, _ in others):
        return not patterns
    # A property that must not be there declares nothing.
    declares = any(any(schema is not False for schema, _ in parts) for parts in flat.properties.values())
    return declares and not others and not patterns


def others_of(reader: Schemas, flat: Flat) -> Node | None:
    """A member with a key that is not declared; None where there is none."""
    if closed(flat):
        return None
    declared = [json_text(name)[1:-1] for name in dict.fromkeys([*flat.properties, *flat.required])]
    keys: ByteDfa | None = compile_node(json_nodes.any_content(), "keys")
    for part in flat.names:
        keys = _both(keys, _unquoted(reader, part))
    if declared:
        keys = _without(keys, compile_node(Words(tuple(declared)), "declared"))
    options = []
    for kind, parts in _kinds(flat, keys):
        node = reader.node(parts) if parts else reader.free(max(reader.depth - 1, 0))
        if node is not None:
            options.append(concat(text('"'), Embedded(kind), text('"'), reader.marks.colon, node))
    return alternate(options) if options else None


def _kinds(flat: Flat, keys: ByteDfa | None) -> list[tuple[ByteDfa, tuple[Part, ...]]]:
    """Keys parted by which patterns are found in them, each kind with what its values must fulfil."""
    kinds: list[tuple[ByteDfa, frozenset[str]]] = [] if keys is None else [(keys, frozenset())]
    patterns = {pattern: part[1] for rule in flat.rules for pattern, part in rule.patterns}
    if len(patterns) > _MAX_PATTERNS:
        raise BeyondAutomata(next(iter(patterns.values())), f"more than {_MAX_PATTERNS} patterns for keys")
    for pattern, path in patterns.items():
        found = key_pattern(pattern, path)
        parted = [(_both(kind, found), matched | {pattern}) for kind, matched in kinds]
        parted += [(_without(kind, found), matched) for kind, matched in kinds]
        kinds = [(kind, matched) for kind, matched in parted if kind is not None]
    result = []
    for kind, matched in kinds:
        parts: list[Part] = []
        for rule in flat.rules:
            own = [part for pattern, part in rule.patterns if pattern in matched]
            parts += own if own or rule.additional is None else [rule.additional]
        silent = not parts and flat.rules
        if not silent:
            result.append((kind, tuple(parts)))
    return result


def _name_fits(reader: Schemas, flat: Flat, name: str) -> bool:
    for part in flat.names:
        dfa = _unquoted(reader, part)
        if dfa is None or not dfa.matches(json_text(name)[1:-1].encode()):
            return False
    return True


def _unquoted(reader: Schemas, part: Part) -> ByteDfa | None:
    """What `propertyNames` allows, between the quotes."""
    node = reader.node((({"type": "string", "allOf": [part[0]]}, part[1]),))
    if node is None:
        return None
    quoted = compile_node(node, "names")
    start = quoted.step(1, b'"')
    return _between_quotes(quoted, start)


def _between_quotes(quoted: ByteDfa, start: int) -> ByteDfa:
    from lmc.regex.build import Raw, minimal

    rows = [[target or -1 for target in row] for row in quoted.table.tolist()]
    quote = int(quoted.byte_class[34])
    # `"` cannot stand in a string as itself, so the edges that end the text are those of the quote.
    accepting = [row[quote] >= 0 for row in rows]
    order = [start, *(state for state in range(len(rows)) if state != start)]
    place = {state: number for number, state in enumerate(order)}
    byte_class = quoted.byte_class.tolist()
    byte_class[34] = len(rows[0])
    moved = [[place[target] if target >= 0 else -1 for target in rows[state]] + [-1] for state in order]
    return minimal(Raw(byte_class, moved, [accepting[state] for state in order]), "names")


def _both(a: ByteDfa | None, b: ByteDfa | None) -> ByteDfa | None:
    return None if a is None or b is None else _or_none(intersection, a, b)


def _without(a: ByteDfa | None, b: ByteDfa) -> ByteDfa | None:
    return None if a is None else _or_none(difference, a, b)


def _or_none(make, a: ByteDfa, b: ByteDfa) -> ByteDfa | None:
    try:
        return make(a, b, "keys")
    except RegexError as error:
        if error.message == "nothing matches it":
            return None
        raise
