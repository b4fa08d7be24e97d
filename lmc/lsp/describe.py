"""What a symbol, a type or a generation is, as Markdown.

    describe_symbol(analysis, judge)   ->   ```lmp
                                            def judge(essay: str, dimensions: list[str] = DIMENSIONS) -> Verdict
                                            ```
    describe_generation(call)          ->   its regex or JSON Schema and the size of the automaton

This file knows nothing of places.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from lmc.json_schema import json_schema
from lmc.lsp.analysis import Analysis
from lmc.lsp.builtin_docs import FUNCTIONS
from lmc.parser import ast
from lmc.parser.check.builtins import BUILTINS
from lmc.parser.check.model import (
    BuiltinSymbol, ConstSymbol, ExternSymbol, FunctionSymbol, GenCall, LocalSymbol, ModuleSymbol, ParamInfo, PartKind, Symbol,
    TypeSymbol,
)
from lmc.regex.build import compile_regex
from lmc.regex.dfa import START, ByteDfa
from lmc.regex.grammar import Grammar
from lmc.regex.json_nodes import bare_string
from lmc.regex.nodes import Words
from lmc.regex.numbers import FLOAT, INT, int_range
from lmc.regex.parse import RegexError
from lmc.regex.schema import compile_type, schema_constraint
from lmc.regex.spell import spell
from lmc.types import (
    NONE, STR, BoolT, Field, FloatT, IntT, LiteralT, RangeT, RecordT, StrT, Type, UnionT, spell_type,
)
from lmc.values import text_of

# A hover is read at a glance; a longer schema is cut.
_MAX_SHOWN = 4000


def code(text: str, language: str = "lmp") -> str:
    # A fence longer than any in the text cannot be closed by it.
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def describe_symbol(analysis: Analysis, symbol: Symbol, type: Type | None = None) -> str | None:
    """`type` is the static type of this use, where it is narrower than the symbol's."""
    match symbol:
        case LocalSymbol():
            return f"{code(f'{symbol.name}: {spell_type(type or symbol.type)}')}\n{symbol.kind.value}"
        case ConstSymbol():
            value = analysis.source(symbol.value.span)
            return f"{code(f'{symbol.name}: {spell_type(symbol.type)} = {_cut(value, 200)}')}\nconstant"
        case TypeSymbol():
            return describe_type(symbol.type, symbol.name)
        case FunctionSymbol() | ExternSymbol():
            text = code(signature(analysis, symbol))
            return f"{text}\n{doc}" if (doc := _doc(symbol.definition.doc)) else text
        case BuiltinSymbol():
            return f"{code(builtin_signature(symbol.name))}\n{FUNCTIONS[symbol.name]}"
        case ModuleSymbol():
            return f"{code(f'import {json.dumps(symbol.path)} as {symbol.name}')}\nimported file"
    return None


def describe_type(type: Type, name: str) -> str:
    """A type by its definition: the fields of a record, the members of a union."""
    match type:
        case RecordT(doc=doc):
            lines = [f"type {spell_type(type)}:", *(f"    {_field(f)}" for f in type.fields)]
            return code("\n".join(lines)) + (f"\n{doc}" if doc else "")
        case UnionT(members=members):
            return code(f"type {name} = {' | '.join(map(spell_type, members))}")
    shown = spell_type(type)
    return code(shown if shown == name else f"type {name} = {shown}")


def describe_field(record: RecordT, name: str) -> str:
    field = record.field(name)
    assert field is not None, (record.name, name)
    return f"{code(_field(field))}\nfield of `{spell_type(record)}`"


def signature(analysis: Analysis, symbol: FunctionSymbol | ExternSymbol) -> str:
    """`def judge(essay: str) -> Verdict`."""
    head = "def" if isinstance(symbol, FunctionSymbol) and symbol.part is None else "part"
    if isinstance(symbol, ExternSymbol):
        head = "pure extern def" if symbol.pure else "extern def"
    params = ", ".join(_param(analysis, p) for p in symbol.params)
    result = f" -> {spell_type(symbol.result)}" if symbol.result != NONE else ""
    kind = f"  # a {symbol.part.value} part" if isinstance(symbol, FunctionSymbol) and isinstance(symbol.part, PartKind) else ""
    return f"{head} {symbol.name}({params}){result}{kind}"


def builtin_signature(name: str) -> str:
    known = BUILTINS[name]
    names = [*known.names[: known.required], *(f"{n}=…" for n in known.names[known.required :])]
    if name in ("gen", "select") and known.names:
        names.append("…")
    return f"{name}({', '.join([*names, '…'] if known.repeats else names)})"


def describe_generation(analysis: Analysis, call: GenCall) -> str:
    """What constrains a `gen`, and how large its automaton is."""
    head = code(f"gen: {spell_type(call.type)}")
    try:
        constraint = _constraint(analysis, call)
    except (RegexError, RecursionError) as error:
        return f"{head}\nNo value can be generated: {error}"
    if constraint is None:
        return f"{head}\nFree text: no constraint."
    kind, text, language, build = constraint
    shown = f"{head}\n{kind}\n{code(_cut(text, _MAX_SHOWN), language)}\n"
    try:
        return shown + _size(build())
    except (RegexError, RecursionError) as error:
        return shown + f"No value can be generated: {error}"


def _size(built: ByteDfa | Grammar) -> str:
    if isinstance(built, Grammar):
        return "A grammar: no automaton."
    count = built.states - START
    return f"Automaton: {count:,} {'state' if count == 1 else 'states'}."


_Constraint = tuple[str, str, str, Callable[[], ByteDfa | Grammar]]


def _constraint(analysis: Analysis, call: GenCall) -> _Constraint | None:
    """What it is in words, its text, the language of the text, and how the automaton is built."""
    if call.regex is not None:
        pattern = call.regex
        return "Regex", pattern, "regex", lambda: compile_regex(pattern)
    for name in ("schema", "grammar"):
        if name in call.options:
            text = _constant(analysis, call.options[name])
            if text is None:
                return None
            if name == "grammar":
                return "Grammar", text, "lark", lambda: Grammar("lark", text)
            return "JSON Schema", _pretty(text), "json", lambda: schema_constraint(text)
    if call.type == STR:
        return None
    pattern = _regex_of(call.type)
    if pattern is not None:
        return f"Regex{_lengths(call.type)}", pattern, "regex", lambda: compile_type(call.type)
    schema = json.dumps(json_schema(call.type), indent=2, ensure_ascii=False)
    return "JSON Schema", schema, "json", lambda: compile_type(call.type)


def _regex_of(type: Type) -> str | None:
    """The regex of a type whose values are no JSON of several parts."""
    match type:
        case StrT(regex=str() as pattern):
            return pattern
        case StrT():
            return spell(bare_string(type.min_len, type.max_len))
        case LiteralT(values):
            return spell(Words(tuple(text_of(value) for value in values)))
        case BoolT():
            return "true|false"
        case RangeT(low, high):
            return spell(int_range(low, high))
        case IntT():
            return spell(INT)
        case FloatT():
            return spell(FLOAT)
    return None


def _lengths(type: Type) -> str:
    """The lengths that hold beside a regex: one pattern for both would say neither."""
    if not isinstance(type, StrT) or type.regex is None or (type.min_len, type.max_len) == (None, None):
        return ""
    if type.max_len is None:
        return f", at least {type.min_len} characters"
    return f", {type.min_len or 0} to {type.max_len} characters"


def _constant(analysis: Analysis, expr: ast.Expr) -> str | None:
    if isinstance(expr, ast.Text):
        return expr.plain
    symbol = analysis.symbol(expr)
    value = analysis.checked.constants.get(symbol) if isinstance(symbol, ConstSymbol) else None
    return value if isinstance(value, str) else None


def _pretty(schema: str) -> str:
    try:
        return json.dumps(json.loads(schema), indent=2, ensure_ascii=False)
    except ValueError:
        return schema


def _param(analysis: Analysis, param: ParamInfo) -> str:
    default = f" = {_cut(analysis.source(param.default.span), 80)}" if param.default is not None else ""
    return f"{param.name}: {spell_type(param.type)}{default}"


def _field(field: Field) -> str:
    # The default is kept as JSON.
    default = {"null": "None", "true": "True", "false": "False"}.get(field.default or "", field.default)
    return f"{field.name}: {spell_type(field.type)}" + (f" = {default}" if default is not None else "")


def _doc(doc: ast.Text | None) -> str:
    return (doc.plain or "").strip() if doc is not None else ""


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + "…"
