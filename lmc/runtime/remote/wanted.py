"""What a value must match, as a server is told it, and the answer as the value's own text.

    int, 1..5      schema {"type": "integer", …}       answer ` 3`      text `3`
    "yes" | "no"   regex (yes)|(no)                    answer `yes`     text `yes`

Servers read regexes and schemas in their own ways, so every answer is held against the program's automaton: what does not match is
no value.  JSON may come with other spaces than `lmc` writes; it is spelled again before it is compared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lmc.json_schema import json_schema
from lmc.regex.build import compile_regex
from lmc.regex.dfa import ByteDfa
from lmc.types import LiteralT, StrT, Type
from lmc.values import ValueMismatch, from_data, text_of, to_json


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a value must match.

    schema, regex: how a server is told, None where this has no such form; bare: the value's text is not JSON but its string's content
    type: of JSON values, None where a schema says it all; dfa: the program's automaton; options: what it must be one of, where that
    is all
    """

    schema: dict[str, Any]
    regex: str | None
    bare: bool
    type: Type | None
    dfa: ByteDfa | None = None
    options: tuple[str, ...] = ()

    def spelled(self, answer: str, *, wrapped: bool = False) -> str | None:
        """The value's text where the answer is one; `wrapped`: it should be the object `{"value": …}`."""
        if not wrapped and self._fits(answer):
            return answer
        if self.bare and not wrapped:
            return None
        try:
            data = json.loads(answer)
            text = self._text_of(data["value"] if wrapped else data)
        except (ValueError, KeyError, TypeError, RecursionError, ValueMismatch):
            return None
        return text if text is not None and self._fits(text) else None

    def automaton(self) -> ByteDfa:
        """What the value's text is held against."""
        return self.dfa if self.dfa is not None else compile_regex("|".join(map(re.escape, self.options)))

    def _text_of(self, data: Any) -> str | None:
        """Raises `ValueMismatch`."""
        if self.bare:
            return data if isinstance(data, str) else None
        if self.type is None:
            return json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        return to_json(from_data(data, self.type), self.type)

    def _fits(self, text: str) -> bool:
        return self.dfa.matches(text.encode()) if self.dfa is not None else text in self.options


def wanted_value(dfa: ByteDfa, type: Type) -> Wanted:
    """What the automaton of a generation asks for whose value has this type."""
    text = isinstance(type, (StrT, LiteralT))
    if dfa.source == str(type):
        if isinstance(type, LiteralT):
            return wanted_option(tuple(text_of(value) for value in type.values), dfa, type)
        return Wanted(json_schema(type), _text_regex(type), text, type, dfa)
    schema = _schema(dfa.source) if text else None
    if schema is not None:
        return Wanted(schema, None, False, None, dfa)
    # A regex: the type says only how the text is read.
    schema = {"type": "string", "pattern": f"^(?:{dfa.source})$"} if text else json_schema(type)
    return Wanted(schema, dfa.source, text, type, dfa)


def wanted_option(options: Sequence[str], dfa: ByteDfa | None = None, type: Type | None = None) -> Wanted:
    """One of these texts."""
    regex = "|".join(f"({re.escape(option)})" for option in options)
    return Wanted({"type": "string", "enum": list(options)}, regex, True, type, dfa, tuple(options))


def wrapped(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object that holds the value: interfaces that take schemas want objects."""
    return {"type": "object", "properties": {"value": schema}, "required": ["value"], "additionalProperties": False}


def _schema(source: str) -> dict[str, Any] | None:
    """The JSON Schema that an automaton was made of, None where it was a regex."""
    try:
        data = json.loads(source)
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


def _text_regex(type: Type) -> str | None:
    if not isinstance(type, StrT):
        return None
    if type.regex is not None:
        return type.regex
    return rf"[\s\S]{{{type.min_len or 0},{'' if type.max_len is None else type.max_len}}}"
