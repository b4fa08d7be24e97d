"""Reads the text form that `printer.py` writes.

Nothing is inferred: types are as written, and names must be defined before they are used.  Whether the module makes sense is for
the verifier.  The first mistake ends the reading, as a located `LmcError` with code E0902; time is linear and nesting is
bounded.
"""

from __future__ import annotations

import json
from dataclasses import replace
from enum import Enum
from typing import Any

from lmc.diagnostics import Inlined, LmcError, Span
from lmc.ir.core import (
    Automaton, Block, Extern, FieldKind, Function, Literal, Module, Op, Operand, OpField, Parameter, Value, op_fields,
)
from lmc.ir.ops import OPS
from lmc.ir.printer import canonical_json, literal_type
from lmc.ir.tokens import Cursor, Kind, Token
from lmc.type_text import parse_type
from lmc.types import BUILTIN_RECORDS, Field, RecordT, Type, UnionT

#: Regions and JSON data may not nest deeper: every stage walks them recursively.
MAX_DEPTH = 120

_WORDS = {"true": True, "false": False, "null": None, "NaN": float("nan"), "Infinity": float("inf")}


def read_module(text: str, path: str = "<ir>") -> Module:
    """The module that `text` describes; `path` is named in errors."""
    return _Reader(text, path).module()


class _Reader:
    __slots__ = ("cursor", "types", "values")

    def __init__(self, text: str, path: str):
        self.cursor = Cursor(text, path)
        self.types: dict[str, RecordT | UnionT] = {t.name: t for t in BUILTIN_RECORDS}
        self.values: dict[str, Value] = {}

    def module(self) -> Module:
        cursor = self.cursor
        cursor.expect("module", Kind.WORD)
        name = cursor.expect_kind(Kind.STRING, "the module's name in quotes").text
        cursor.expect("{")
        types, config, externs, automata, entries, functions = [], [], [], [], [], []
        while not cursor.accept("}"):
            if cursor.accept("type", Kind.WORD):
                types.append(self._named_type())
            elif cursor.accept("config", Kind.WORD):
                config.append(self._config())
            elif cursor.at("extern", Kind.WORD) or cursor.at("pure", Kind.WORD):
                externs.append(self._extern())
            elif cursor.accept("automaton", Kind.WORD):
                automata.append(self._automaton())
            elif cursor.accept("entries", Kind.WORD):
                entries += self._symbols(",")
            else:
                functions.append(self._function())
        cursor.expect_kind(Kind.END, "the end of the text")
        return Module(name, tuple(types), tuple(externs), tuple(functions), tuple(entries), tuple(config), automata=tuple(automata))

    # ----------------------------------------------------------- declarations

    def _named_type(self) -> RecordT | UnionT:
        name = self.cursor.expect_kind(Kind.SYMBOL, "the type's name, as `@Name`").text
        made = self._union(name) if self.cursor.accept("=") else self._record(name)
        self.types[name] = made
        return made

    def _union(self, name: str) -> UnionT:
        start = self.cursor.here
        known = {t.name: t for t in BUILTIN_RECORDS} | self.types
        members = [known.get(member) for member in self._symbols("|")]
        if not all(isinstance(m, RecordT) for m in members):
            self.cursor.fail_at(start, f"the members of `@{name}` must be records that stand above it")
        return UnionT(name, tuple(members))

    def _record(self, name: str) -> RecordT:
        doc = self._doc()
        self.cursor.expect("{")
        fields = []
        while not self.cursor.accept("}"):
            field = self.cursor.expect_kind(Kind.WORD, "a field's name or `}`").text
            self.cursor.expect(":")
            fields.append(Field(field, self._type(), self._default()))
        return RecordT(name, tuple(fields), doc)

    def _symbols(self, separator: str) -> list[str]:
        names = [self.cursor.expect_kind(Kind.SYMBOL, "a name, as `@name`").text]
        while self.cursor.accept(separator):
            names.append(self.cursor.expect_kind(Kind.SYMBOL, "a name, as `@name`").text)
        return names

    def _config(self) -> tuple[str, object]:
        name = self.cursor.expect_kind(Kind.WORD, "the name of a setting").text
        self.cursor.expect("=")
        return name, self._json()

    def _extern(self) -> Extern:
        pure = self.cursor.accept("pure", Kind.WORD)
        self.cursor.expect("extern", Kind.WORD)
        name = self.cursor.expect_kind(Kind.SYMBOL, "the extern's name, as `@name`").text
        params = []
        self.cursor.expect("(")
        while not self.cursor.accept(")"):
            param = self.cursor.expect_kind(Kind.WORD, "a parameter's name or `)`").text
            self.cursor.expect(":")
            params.append(Parameter(param, self._type(), self._default()))
            self._comma(")")
        self.cursor.expect("->")
        return Extern(name, tuple(params), self._type(), pure, self._doc())

    def _automaton(self) -> Automaton:
        # Building automata takes numpy, which nothing else here does.
        from lmc.ir.constraints import build_automaton

        kind = self.cursor.expect_kind(Kind.WORD, "`type`, `regex`, `schema` or `grammar`").text
        source = self.cursor.expect_kind(Kind.STRING, "what it is made from, in quotes")
        try:
            return build_automaton(kind, source.text, self.types)
        except ValueError as error:
            self.cursor.fail_at(source, f"no automaton can be made of it: {error}")

    def _function(self) -> Function:
        kinds = {"func": "def", "part": "part", "test": "test"}
        word = self.cursor.here
        if word.kind is not Kind.WORD or word.text not in kinds:
            self.cursor.fail_here("`type`, `config`, `extern`, `automaton`, `entries`, `func`, `part`, `test` or `}`")
        kind = kinds[self.cursor.take().text]
        name = self.cursor.expect_kind(Kind.SYMBOL, "the function's name, as `@name`").text
        self.values = {}
        args, params = self._parameters()
        self.cursor.expect("->")
        result = self._type()
        doc, span = self._doc(), self._location()
        self.cursor.expect("{")
        ops = self._ops(0)
        if kind == "part" and not args:
            self.cursor.fail_at(word, "a part's first argument is its context")
        params = params[1:] if kind == "part" else params
        return Function(name, kind, tuple(params), result, Block(tuple(args), ops), doc, span)

    def _parameters(self) -> tuple[list[Value], list[Parameter]]:
        args, params = [], []
        self.cursor.expect("(")
        while not self.cursor.accept(")"):
            value = self._new_value()
            args.append(value)
            params.append(Parameter(value.name, value.type, self._default()))
            self._comma(")")
        return args, params

    def _doc(self) -> str:
        if self.cursor.accept("doc", Kind.WORD):
            return self.cursor.expect_kind(Kind.STRING, "the text in quotes").text
        return ""

    def _default(self) -> str | None:
        return canonical_json(json.dumps(self._json())) if self.cursor.accept("=") else None

    # -------------------------------------------------------------------- ops

    def _ops(self, depth: int) -> tuple[Op, ...]:
        """The ops up to the closing brace, which is taken."""
        ops = []
        while not self.cursor.accept("}"):
            ops.append(self._op(depth))
        return tuple(ops)

    def _block(self, depth: int) -> Block:
        self.cursor.expect("{")
        if depth > MAX_DEPTH:
            self.cursor.fail_here(f"at most {MAX_DEPTH} blocks inside one another")
        args = []
        if self.cursor.accept("^"):
            self.cursor.expect("(")
            while not self.cursor.accept(")"):
                args.append(self._new_value())
                self._comma(")")
            self.cursor.expect(":")
        return Block(tuple(args), self._ops(depth))

    def _op(self, depth: int) -> Op:
        results = self._results()
        word = self.cursor.expect_kind(Kind.WORD, "an op")
        op_class = OPS.get(word.text)
        if op_class is None:
            self.cursor.fail_at(word, f"`{word.text}` is no op of the IR")
        fields: dict[str, Any] = {}
        positional, named = self._operands()
        self._place_operands(word, op_class, positional, named, fields)
        self._attributes(op_class, fields)
        span = self._location()
        self._regions(op_class, fields, depth, word)
        for field in op_fields(op_class):
            if field.required and field.name not in fields:
                self.cursor.fail_at(word, f"`{word.text}` needs `{field.name}`")
        for value in results:
            self.values[value.name] = value
        return op_class(tuple(results), span, **fields)

    def _results(self) -> list[Value]:
        results: list[Value] = []
        if self.cursor.here.kind is not Kind.VALUE:
            return results
        while True:
            results.append(self._new_value(visible=False))
            if not self.cursor.accept(","):
                break
        if len({v.name for v in results}) < len(results):
            self.cursor.fail_here("results with different names")
        self.cursor.expect("=")
        return results

    def _new_value(self, *, visible: bool = True) -> Value:
        token = self.cursor.expect_kind(Kind.VALUE, "a value, as `%name`")
        if token.text in self.values:
            self.cursor.fail_at(token, f"`%{token.text}` is defined twice")
        self.cursor.expect(":")
        value = Value(self._type(), token.text)
        if visible:
            self.values[token.text] = value
        return value

    def _operands(self) -> tuple[list[Operand], dict[str, Operand]]:
        positional: list[Operand] = []
        named: dict[str, Operand] = {}
        self.cursor.expect("(")
        while not self.cursor.accept(")"):
            following = self.cursor.following
            if self.cursor.here.kind is Kind.WORD and following.kind is Kind.PUNCTUATION and following.text == "=":
                name = self.cursor.take().text
                self.cursor.expect("=")
                named[name] = self._operand()
            else:
                positional.append(self._operand())
            self._comma(")")
        return positional, named

    def _operand(self) -> Operand:
        token = self.cursor.here
        if token.kind is Kind.VALUE:
            if token.text not in self.values:
                self.cursor.fail_at(token, f"`%{token.text}` is not defined above")
            return self.values[self.cursor.take().text]
        value = self._scalar("a value or a literal")
        plain = Literal(value, literal_type(Literal(value, None)))
        return Literal(value, self._type()) if self.cursor.accept(":") else plain

    def _place_operands(self, word: Token, op_class: type[Op], positional: list[Operand], named: dict[str, Operand],
                        fields: dict[str, Any]) -> None:
        rest = list(positional)
        for field in op_fields(op_class):
            if field.kind is FieldKind.OPERAND:
                if not rest:
                    self.cursor.fail_at(word, f"`{word.text}` needs the operand `{field.name}`")
                fields[field.name] = rest.pop(0)
        for field in op_fields(op_class):
            if field.kind is FieldKind.OPERANDS:
                fields[field.name], rest = tuple(rest), []
            elif field.kind is FieldKind.NAMED_OPERAND and field.name in named:
                fields[field.name] = named.pop(field.name)
        if rest or named:
            self.cursor.fail_at(word, f"`{word.text}` takes no operand " + (f"`{next(iter(named))}`" if named else "more"))

    def _attributes(self, op_class: type[Op], fields: dict[str, Any]) -> None:
        known = {f.name: f for f in op_fields(op_class) if f.kind is FieldKind.ATTRIBUTE}
        if not self.cursor.accept("["):
            return
        while not self.cursor.accept("]"):
            name = self.cursor.expect_kind(Kind.WORD, "an attribute's name or `]`")
            if name.text not in known or name.text in fields:
                self.cursor.fail_at(name, f"`{op_class.mnemonic}` has no attribute `{name.text}`, or it is given twice")
            self.cursor.expect("=")
            fields[name.text] = self._attribute(known[name.text])
            self._comma("]")

    def _attribute(self, field: OpField) -> Any:
        token = self.cursor.here
        if isinstance(field.annotation, type) and issubclass(field.annotation, Enum):
            word = self.cursor.expect_kind(Kind.WORD, f"a value of `{field.name}`")
            if word.text not in [member.value for member in field.annotation]:
                self.cursor.fail_at(word, f"`{word.text}` is no value of `{field.name}`")
            return field.annotation(word.text)
        value = self._json()
        element = {tuple[str, ...]: str, tuple[int, ...]: int}.get(field.annotation)
        if element is not None and isinstance(value, list) and all(type(v) is element for v in value):
            return tuple(value)
        expected = {str: str, str | None: str, bool: bool, int: int, int | None: int}.get(field.annotation)
        if type(value) is not expected:
            self.cursor.fail_at(token, f"`{field.name}` cannot hold this value")
        return value

    def _regions(self, op_class: type[Op], fields: dict[str, Any], depth: int, word: Token) -> None:
        for field in op_fields(op_class):
            if field.kind is FieldKind.BLOCK:
                if not self.cursor.at("{"):
                    self.cursor.fail_at(word, f"`{word.text}` needs the block `{field.name}`")
                fields[field.name] = self._block(depth + 1)
            elif field.kind is FieldKind.BLOCKS:
                found = []
                while self.cursor.at("{"):
                    found.append(self._block(depth + 1))
                fields[field.name] = tuple(found)

    def _location(self) -> Span | None:
        if not self.cursor.accept("loc", Kind.WORD):
            return None
        self.cursor.expect("(")
        span, calls = self._span(), []
        while self.cursor.accept(","):
            function = self.cursor.expect_kind(Kind.SYMBOL, "the function that was inlined").text
            site = self.cursor.expect_kind(Kind.STRING, "the site of its call").text
            calls.append(Inlined(function, site, None if self.cursor.accept("none", Kind.WORD) else self._span()))
        self.cursor.expect(")")
        return replace(span, calls=tuple(calls))

    def _span(self) -> Span:
        file = self.cursor.expect_kind(Kind.STRING, "the file's name in quotes").text
        # `2-3` is read as the numbers 2 and -3.
        numbers = []
        for separated in (True, True, False, True):
            if separated:
                self.cursor.expect(":")
            token = self.cursor.expect_kind(Kind.NUMBER, "a line or column")
            if not token.text.lstrip("-").isdecimal():
                self.cursor.fail_at(token, "a line or column is a whole number")
            numbers.append(abs(int(token.text)))
        return Span(file, *numbers)

    # ------------------------------------------------------ types and literals

    def _type(self) -> Type:
        start = self.cursor.here
        end = self._type_end()
        text = self.cursor.text[start.start:end]
        try:
            return parse_type(text, self.types)
        except (LmcError, ValueError, KeyError) as error:
            self.cursor.fail(f"`{text}` is no type: {error}", start.start, end)

    def _type_end(self) -> int:
        """Steps over one type and gives the offset behind it."""
        while True:
            token = self.cursor.take()
            if token.kind in (Kind.PUNCTUATION, Kind.VALUE, Kind.END):
                self.cursor.fail_at(token, f"expected a type, found `{token.text}`")
            if self.cursor.accept(".."):
                token = self.cursor.expect_kind(Kind.NUMBER, "the end of the range")
            end = max(token.end, self._balanced("<", ">"), self._balanced("(", ")"))
            if not self.cursor.accept("|"):
                return end

    def _balanced(self, opening: str, closing: str) -> int:
        if not self.cursor.at(opening):
            return 0
        depth = 0
        while True:
            token = self.cursor.take()
            if token.kind is Kind.END:
                self.cursor.fail_here(f"`{closing}`")
            depth += (token.kind is Kind.PUNCTUATION) * ((token.text == opening) - (token.text == closing))
            if depth == 0:
                return token.end

    def _json(self, depth: int = 0) -> Any:
        if depth > MAX_DEPTH:
            self.cursor.fail_here(f"data that nest at most {MAX_DEPTH} deep")
        if self.cursor.accept("["):
            items = []
            while not self.cursor.accept("]"):
                items.append(self._json(depth + 1))
                self._comma("]")
            return items
        if self.cursor.accept("{"):
            data = {}
            while not self.cursor.accept("}"):
                key = self.cursor.expect_kind(Kind.STRING, "a key in quotes").text
                self.cursor.expect(":")
                data[key] = self._json(depth + 1)
                self._comma("}")
            return data
        return self._scalar("JSON data")

    def _scalar(self, what: str) -> str | int | float | bool | None:
        token = self.cursor.here
        if token.kind is Kind.STRING:
            return self.cursor.take().text
        if token.kind is Kind.NUMBER:
            return self._number(self.cursor.take())
        if token.kind is Kind.WORD and token.text in _WORDS:
            return _WORDS[self.cursor.take().text]
        self.cursor.fail_here(what)

    def _number(self, token: Token) -> int | float:
        whole = token.text.lstrip("-").isdecimal()
        if whole and len(token.text) > 400:
            # Longer ones take time that grows with the square of their length.
            self.cursor.fail_at(token, "this number has too many digits")
        return int(token.text) if whole else float(token.text)

    def _comma(self, closing: str) -> None:
        if not self.cursor.accept(",") and not self.cursor.at(closing):
            self.cursor.fail_here(f"`,` or `{closing}`")
