"""A regex as a grammar of llama.cpp (GBNF): literals, classes, groups, alternatives and repetitions.

    grammar(r"(yes|no){1,2} [a-z]+")    root ::= ("yes" | "no"){1,2} " " [a-z]+

What it has no word for (anchors, look-around, back-references, classes of Unicode) is a ValueError, so that no engine is held to
something else than the others.
"""

import re._constants as kind
import re._parser as parser

_DIGITS, _WORD, _SPACE = "0-9", "a-zA-Z0-9_", " \\t\\n\\r\\x0b\\x0c"
_CATEGORIES = {kind.CATEGORY_DIGIT: _DIGITS, kind.CATEGORY_WORD: _WORD, kind.CATEGORY_SPACE: _SPACE}


def grammar(regex):
    """Classes are those of ASCII."""
    return "root ::= " + _sequence(parser.parse(regex))


def _sequence(nodes):
    parts, text = [], ""
    for code, value in nodes:
        if code is kind.LITERAL:
            text += _escaped(value, '"')
            continue
        if text:
            parts.append(f'"{text}"')
            text = ""
        parts.append(_node(code, value))
    if text:
        parts.append(f'"{text}"')
    return " ".join(parts) or '""'


def _node(code, value):
    if code is kind.IN:
        return _class(value)
    if code is kind.NOT_LITERAL:
        return f"[^{_escaped(value, ']')}]"
    if code is kind.ANY:
        return "[^\\n]"
    if code is kind.SUBPATTERN:
        return f"({_sequence(value[3])})"
    if code is kind.BRANCH:
        return f"({' | '.join(_sequence(branch) for branch in value[1])})"
    if code in (kind.MAX_REPEAT, kind.MIN_REPEAT):
        low, high, inner = value
        return f"({_sequence(inner)})" + (f"{{{low},}}" if high is kind.MAXREPEAT else f"{{{low},{high}}}")
    raise ValueError(f"the grammar has no word for {code} in a regex")


def _class(members):
    text = ""
    for code, value in members:
        if code is kind.NEGATE:
            text += "^"
        elif code is kind.LITERAL:
            text += _escaped(value, "]")
        elif code is kind.RANGE:
            text += f"{_escaped(value[0], ']')}-{_escaped(value[1], ']')}"
        elif code is kind.CATEGORY and value in _CATEGORIES:
            text += _CATEGORIES[value]
        else:
            raise ValueError(f"the grammar has no word for {code} {value} in a class")
    return f"[{text}]"


def _escaped(number, end):
    """A character inside quotes or, where `end` is a bracket, inside a class."""
    named = {10: "\\n", 13: "\\r", 9: "\\t", 92: "\\\\"}
    if number in named:
        return named[number]
    if chr(number) == end or (end == "]" and chr(number) in "[^-"):
        return f"\\{chr(number)}" if chr(number) in '"[]' else f"\\x{number:02x}"
    return chr(number) if 32 <= number < 127 else f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}" if number < 65536 else f"\\U{number:08x}"
