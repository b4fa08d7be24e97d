"""The text form of a module.

    %c2: context, %answer: str = lm.gen(%c1, max_tokens = 20)[role = assistant, site = "0"]

Values keep the hints they were made with; a hint that is taken gets a number, so that every name is unique in its function.
Optional attributes that hold their default are left out, types never are.  `reader.py` reads what this prints, and printing what
was read prints the same.  Source texts are not printed; places are, with `locations=True`.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable
from enum import Enum

from lmc.diagnostics import Span
from lmc.ir.core import (
    Block, Extern, FieldKind, Function, Literal, Module, Op, Operand, OpField, Parameter, Value, op_fields,
)
from lmc.types import BOOL, FLOAT, INT, NONE, STR, RecordT, Type, UnionT

#: A symbol's name that needs no quotes after `@`.
PLAIN_NAME = re.compile(r"[^\W\d][\w.:+]*")


def print_module(module: Module, *, locations: bool = False) -> str:
    """The whole module; ends with a newline."""
    sections = [
        [_named_type(t) for t in module.types],
        [f"config {name} = {_json(value)}" for name, value in module.config],
        [_extern(e) for e in module.externs],
        [f"automaton {a.kind} {_json(a.source)}" for a in module.automata],
        ["entries " + ", ".join(map(symbol, module.entries))] if module.entries else [],
    ]
    parts = ["\n".join(section) for section in sections if section]
    parts += [print_function(f, locations=locations).rstrip("\n") for f in module.functions]
    body = "\n\n".join(parts)
    indented = "\n".join("  " + line if line else "" for line in body.split("\n")) + "\n" if body else ""
    return f"module {_json(module.name)} {{\n{indented}}}\n"


def print_function(function: Function, *, locations: bool = False) -> str:
    """One function; ends with a newline."""
    return _FunctionPrinter(function, locations).text()


def symbol(name: str) -> str:
    """`@name`, quoted where the name is not a plain one (a test's)."""
    return "@" + (name if PLAIN_NAME.fullmatch(name) else _json(name))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def canonical_json(text: str) -> str:
    """JSON text as the printer writes it, so that equal data print equal."""
    return _json(json.loads(text))


def _named_type(t: RecordT | UnionT) -> str:
    if isinstance(t, UnionT):
        return f"type {symbol(t.name)} = " + " | ".join(symbol(m.name) for m in t.members)
    lines = [f"  {f.name}: {f.type}{_default(f.default)}" for f in t.fields]
    return "\n".join([f"type {symbol(t.name)}{_doc(t.doc)} {{", *lines, "}"])


def _default(text: str | None) -> str:
    return "" if text is None else f" = {canonical_json(text)}"


def _doc(text: str) -> str:
    return f" doc {_json(text)}" if text else ""


def _extern(extern: Extern) -> str:
    params = ", ".join(f"{p.name}: {p.type}{_default(p.default)}" for p in extern.params)
    return f"{'pure ' if extern.pure else ''}extern {symbol(extern.name)}({params}) -> {extern.result}{_doc(extern.doc)}"


class _FunctionPrinter:
    __slots__ = ("function", "locations", "names", "lines")

    def __init__(self, function: Function, locations: bool):
        self.function, self.locations = function, locations
        self.names = value_names(function)
        self.lines: list[str] = []

    def text(self) -> str:
        f = self.function
        keyword = "func" if f.kind == "def" else f.kind
        params = dict(zip(f.body.args[-len(f.params):], f.params)) if f.params else {}
        args = ", ".join(self._argument(arg, params.get(arg)) for arg in f.body.args)
        place = self._place(f)
        self.lines.append(f"{keyword} {symbol(f.name)}({args}) -> {f.result}{_doc(f.doc)}{place} {{")
        self._ops(f.body, "  ")
        return "\n".join([*self.lines, "}", ""])

    def _argument(self, arg: Value, param: Parameter | None) -> str:
        return f"%{self.names[arg]}: {arg.type}{_default(param.default) if param else ''}"

    def _place(self, node: Op | Function) -> str:
        if not self.locations or node.span is None:
            return ""
        calls = (f", {symbol(c.function)} {_json(c.site)} {_location(c.span) if c.span else 'none'}" for c in node.span.calls)
        return f" loc({_location(node.span)}{''.join(calls)})"

    def _ops(self, block: Block, indent: str) -> None:
        for op in block.ops:
            self._op(op, indent)

    def _op(self, op: Op, indent: str) -> None:
        results = ", ".join(f"%{self.names[r]}: {r.type}" for r in op.results)
        head = f"{results} = " if results else ""
        attributes = ", ".join(self._attributes(op))
        line = f"{indent}{head}{op.mnemonic}({', '.join(self._operands(op))})"
        line += (f"[{attributes}]" if attributes else "") + self._place(op)
        regions = [b for f in op_fields(type(op)) for b in _blocks(op, f)]
        self.lines.append(line + (" {" if regions else ""))
        for i, block in enumerate(regions):
            if block.args:
                self.lines.append(f"{indent}^({', '.join(self._argument(a, None) for a in block.args)}):")
            self._ops(block, indent + "  ")
            self.lines.append(indent + ("} {" if i + 1 < len(regions) else "}"))

    def _operands(self, op: Op) -> Iterable[str]:
        for field in op_fields(type(op)):
            value = getattr(op, field.name)
            if field.kind is FieldKind.OPERAND:
                yield self._operand(value)
            elif field.kind is FieldKind.OPERANDS:
                yield from map(self._operand, value)
        for field in op_fields(type(op)):
            value = getattr(op, field.name)
            if field.kind is FieldKind.NAMED_OPERAND and value is not None:
                yield f"{field.name} = {self._operand(value)}"

    def _operand(self, operand: Operand) -> str:
        if isinstance(operand, Value):
            return f"%{self.names[operand]}"
        plain = _json(operand.value)
        return plain if operand.type == literal_type(operand) else f"{plain}: {operand.type}"

    def _attributes(self, op: Op) -> Iterable[str]:
        defaults = {f.name: f.default for f in dataclasses.fields(op)}
        for field in op_fields(type(op)):
            value = getattr(op, field.name)
            if field.kind is FieldKind.ATTRIBUTE and (field.required or value != defaults[field.name]):
                yield f"{field.name} = {value.value if isinstance(value, Enum) else _json(value)}"


def _location(s: Span) -> str:
    return f"{_json(s.file)}:{s.line}:{s.column}-{s.end_line}:{s.end_column}"


def literal_type(literal: Literal) -> Type:
    """The type that a literal has unless another is written."""
    return {str: STR, bool: BOOL, int: INT, float: FLOAT, type(None): NONE}[type(literal.value)]


def _blocks(op: Op, field: OpField) -> tuple[Block, ...]:
    if field.kind is FieldKind.BLOCK:
        return (getattr(op, field.name),)
    return getattr(op, field.name) if field.kind is FieldKind.BLOCKS else ()


def value_names(function: Function) -> dict[Value, str]:
    """A unique name for each value.  Parameters are named first and keep their names."""
    namer = _Namer()
    context = len(function.body.args) - len(function.params)
    for value, param in zip(function.body.args[context:], function.params):
        namer.name(value, param.name)
    for value in function.body.args[:context]:
        namer.name(value, value.name)
    namer.block(function.body)
    return namer.names


class _Namer:
    __slots__ = ("names", "taken", "next")

    def __init__(self):
        self.names: dict[Value, str] = {}
        self.taken: set[str] = set()
        self.next: dict[str, int] = {}

    def block(self, block: Block) -> None:
        for op in block.ops:
            for value in op.results:
                self.name(value, value.name)
            for field in op_fields(type(op)):
                for inner in _blocks(op, field):
                    for value in inner.args:
                        self.name(value, value.name)
                    self.block(inner)

    def name(self, value: Value, hint: str) -> None:
        name = hint or self._numbered("")
        if name in self.taken:
            name = self._numbered(hint + "_")
        self.taken.add(name)
        self.names[value] = name

    def _numbered(self, stem: str) -> str:
        number = self.next.get(stem, 0 if not stem else 1)
        while f"{stem}{number}" in self.taken:
            number += 1
        self.next[stem] = number + 1
        return f"{stem}{number}"
