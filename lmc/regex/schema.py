"""Automata of types and JSON Schemas: what a constrained `gen` may write.

    compile_type(LiteralT(("A", "B")))        # A | B                    bare text at the top
    compile_type(ListT(LiteralT(("A",))))     # ["A","A"] …              JSON inside and everywhere else
    compile_schema('{"type": "integer"}')

At the top `str` and literal types are bare text; everything else is compact JSON (LANGUAGE §8).  Trees are built directly, never
by way of the text of a regex.
"""

from __future__ import annotations

import json
from typing import Any

from lmc.regex import json_nodes
from lmc.regex.build import compile_node
from lmc.regex.dfa import ByteDfa
from lmc.regex.grammar import SCHEMA, Grammar, GrammarError, check_grammar, installed
from lmc.regex.json_nodes import json_text
from lmc.regex.json_schema import BeyondAutomata, SchemaError, schema_node
from lmc.regex.nodes import Node, Words, alternate, concat, text
from lmc.regex.numbers import FLOAT, INT, int_range
from lmc.regex.parse import RegexError
from lmc.regex.schema_keywords import subschemas, under
from lmc.types import (
    BoolT, DictT, FloatT, IntT, ListT, LiteralT, NoneT, OptionalT, RangeT, RecordT, StrT, Type, UnionT,
)
from lmc.values import text_of


#: Characters of a schema; an enumeration of 8,000 names has a tenth of it.
MAX_SCHEMA = 4_000_000


def compile_type(t: Type) -> ByteDfa:
    """The automaton of the texts that stand for a value of the type.

    Raises `RegexError`: a type that cannot be generated (a tuple, a context), a bad regex in it, or no value at all.
    """
    try:
        return compile_node(_top(t), str(t))
    except RecursionError:
        raise RegexError("the type is nested too deeply", 0) from None


def compile_schema(schema: str) -> ByteDfa:
    """The automaton of a JSON Schema, given as JSON text: objects are closed, their keys come in the order of `properties`.

    Raises `SchemaError`, which names the path of what is wrong or not supported (no keyword is ignored but annotations); and
    `BeyondAutomata` where a grammar may do, as where the automaton grows too large.
    """
    try:
        if len(schema) > MAX_SCHEMA:
            raise SchemaError("", f"the schema has more than {MAX_SCHEMA:,} characters")
        return compile_node(schema_node(json.loads(schema)), schema)
    except SchemaError:
        raise
    except RegexError as error:
        raise BeyondAutomata("", error.message) from None
    except json.JSONDecodeError as error:
        raise SchemaError("", f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise SchemaError("", "the schema is nested too deeply") from None


def schema_constraint(schema: str) -> ByteDfa | Grammar:
    """The automaton of a JSON Schema; where it is more than an automaton holds, a grammar, if the extra is installed.

    Raises as `compile_schema` does.
    """
    try:
        return compile_schema(schema)
    except BeyondAutomata as error:
        if not installed():
            reason = error.message.removeprefix(f"at `{error.path}`: ")
            raise SchemaError(error.path, f"{reason}; a grammar may hold it, with `pip install 'lmc[grammar]'`") from None
        grammar = Grammar(SCHEMA, schema)
        _check_formats(json.loads(schema), error)
        try:
            check_grammar(grammar)
        except GrammarError as second:
            reason = error.message.removeprefix(f"at `{error.path}`: ")
            raise SchemaError(error.path, f"{reason}; nor does a grammar hold the schema: {second.message}") from None
        return grammar


def _check_formats(schema: Any, reason: BeyondAutomata) -> None:
    """The grammar's own formats are laxer than ours (30 February is a date to it), but for these."""
    for inner, path in subschemas(schema, ""):
        if inner.get("format", "uuid") not in ("uuid", "ipv4"):
            raise SchemaError(under(path, "format"), f"the format is not supported in a grammar; {reason.message}")


def _top(t: Type) -> Node:
    match t:
        case StrT():
            return json_nodes.bare_string(t.min_len, t.max_len, t.regex)
        case LiteralT(values):
            return Words(tuple(text_of(v) for v in values))
    return _json(t)


def _json(t: Type) -> Node:
    match t:
        case StrT():
            return json_nodes.string(t.min_len, t.max_len, t.regex)
        case LiteralT(values):
            return Words(tuple(json_text(v) for v in values))
        case IntT():
            return INT
        case RangeT(low, high):
            return int_range(low, high)
        case FloatT():
            return FLOAT
        case BoolT():
            return Words(("true", "false"))
        case NoneT():
            return text("null")
        case OptionalT(inner):
            return alternate([_json(inner), text("null")])
        case ListT():
            return json_nodes.array(_json(t.element), t.min_items, t.max_items)
        case DictT(key, value):
            return json_nodes.mapping(_key(key), _json(value))
        case RecordT():
            return json_nodes.record(_fields(t))
        case UnionT(members=members):
            return alternate([json_nodes.record([_tag(m), *_fields(m)]) for m in members])
    raise RegexError(f"a value of type {t} cannot be generated", 0)


def _tag(member: RecordT) -> tuple[str, Node]:
    return '"type":', text(json_text(member.name.rpartition(".")[2]))


def _fields(t: RecordT) -> list[tuple[str, Node]]:
    fields = []
    for field in t.fields:
        try:
            fields.append((json_text(field.name) + ":", _json(field.type)))
        except RegexError as error:
            raise RegexError(f"in the field `{field.name}` of {t.name}: {error.message}", error.position) from None
    return fields


def _key(t: Type) -> Node:
    match t:
        case StrT():
            return _json(t)
        case LiteralT(values) if all(isinstance(v, str) for v in values):
            return _json(t)
        case IntT() | RangeT():
            return concat(text('"'), _json(t), text('"'))
    raise RegexError(f"a dict with keys of type {t} cannot be generated; keys are str or int", 0)
