"""A Program as JSON data and back.

    {"op": "context.append", "in": {"context": {"r": 3}, "text": "Hi"}, "out": [4], "at": {"role": "user"}, …}

A register is `{"r": 3}`, a literal is itself; spans refer to a list of file names; types are their text form.  Opcodes and their
fields are those of `lmc.ir.ops`: what is not there is refused.  Whether the parts fit together is checked in `validate.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from lmc.backend.data import BadData, Fields, count, text
from lmc.backend.dfa_data import constraints_from_data, constraints_to_data
from lmc.backend.program import (
    CodeBlock, ExternInfo, FunctionCode, Input, Instruction, ParameterInfo, Program, Register,
)
from lmc.diagnostics import Inlined, Span
from lmc.ir.core import FieldKind, op_fields
from lmc.ir.ops import OPS
from lmc.type_text import TypeTextError, named_type_from_data, named_type_to_data, parse_type, type_to_data
from lmc.types import RecordT, Type, UnionT

_SCALARS = (str, int, float, bool, type(None))
#: As in `lmc.ir.reader`: everything after walks blocks recursively.
_MAX_DEPTH = 120


def program_to_data(program: Program) -> dict[str, Any]:
    return _Writer().program(program)


def program_from_data(data: Any) -> Program:
    """Raises `BadData`."""
    return _Reader().program(data)


# ---------------------------------------------------------------------- writing


class _Writer:
    __slots__ = ("files",)

    def __init__(self):
        self.files: dict[str, int] = {}

    def program(self, p: Program) -> dict[str, Any]:
        return {
            "name": p.name,
            "types": [named_type_to_data(t) for t in p.types],
            "functions": [self._function(f) for f in p.functions.values()],
            "externs": [self._extern(e) for e in p.externs.values()],
            "entries": list(p.entries),
            "constraints": constraints_to_data(p.constraints),
            "config": p.config,
            "sources": p.sources,
            # Last, because the spans above fill it.
            "files": list(self.files),
        }

    def _function(self, f: FunctionCode) -> dict[str, Any]:
        return {
            "name": f.name, "kind": f.kind, "params": _params(f.params), "result": type_to_data(f.result),
            "registers": f.registers, "host_effects": f.host_effects, "doc": f.doc, "span": self._span(f.span), "body": self._block(f.body),
            "leading": list(f.leading),
        }

    def _extern(self, e: ExternInfo) -> dict[str, Any]:
        return {
            "name": e.name, "params": _params(e.params), "result": type_to_data(e.result), "pure": e.pure, "doc": e.doc,
            "span": self._span(e.span),
        }

    def _block(self, block: CodeBlock) -> dict[str, Any]:
        return {"params": list(block.params), "code": [self._instruction(i) for i in block.instructions]}

    def _instruction(self, i: Instruction) -> dict[str, Any]:
        return {
            "op": i.opcode,
            "in": {name: list(map(_input, x)) if isinstance(x, tuple) else _input(x) for name, x in i.inputs.items()},
            "out": list(i.outputs), "types": list(map(type_to_data, i.types)), "at": i.attributes,
            "blocks": [self._block(b) for b in i.blocks], "reads": list(i.reads), "after": list(i.after),
            "span": self._span(i.span),
        }

    def _span(self, span: Span | None) -> list[Any] | None:
        if span is None:
            return None
        file = self.files.setdefault(span.file, len(self.files))
        place = [file, span.line, span.column, span.end_line, span.end_column]
        return place + [[c.function, c.site, self._span(c.span)] for c in span.calls]


def _params(params: tuple[ParameterInfo, ...]) -> list[dict[str, Any]]:
    return [{"name": p.name, "type": type_to_data(p.type), "default": p.default} for p in params]


def _input(value: Input) -> Any:
    return {"r": value.index} if isinstance(value, Register) else value


# ---------------------------------------------------------------------- reading


class _Reader:
    __slots__ = ("files", "types", "known")

    def __init__(self):
        self.files: tuple[str, ...] = ()
        self.types: dict[str, RecordT | UnionT] = {}
        # The same few types are read for every instruction.
        self.known: dict[str, Type] = {}

    def program(self, data: Any) -> Program:
        fields = Fields(data, "a program")
        self.files = fields.each("files", text)
        types = fields.each("types", self._named_type)
        program = Program(
            name=fields.take("name", str),
            types=types,
            functions=_named(fields.each("functions", self._function), "functions"),
            externs=_named(fields.each("externs", self._extern), "externs"),
            entries=fields.each("entries", text),
            constraints=constraints_from_data(fields.take("constraints", list)),
            config=fields.take("config", dict),
            sources={text(name): text(source) for name, source in fields.take("sources", dict).items()},
        )
        fields.end()
        return program

    def _named_type(self, data: Any) -> RecordT | UnionT:
        try:
            made = named_type_from_data(data, self.types)
        except TypeTextError as error:
            raise BadData(f"a type that cannot be read ({error})") from None
        self.types[made.name] = made
        return made

    def _type(self, data: Any) -> Type:
        name = text(data)
        if name not in self.known:
            try:
                self.known[name] = parse_type(name, self.types)
            except TypeTextError as error:
                raise BadData(f"a type that cannot be read ({error})") from None
        return self.known[name]

    def _function(self, data: Any) -> FunctionCode:
        fields = Fields(data, "a function")
        function = FunctionCode(
            name=fields.take("name", str),
            kind=fields.take("kind", str),
            params=fields.each("params", self._param),
            result=self._type(fields.take("result", str)),
            registers=fields.take("registers", int),
            body=self._block(fields.take("body", dict), 0),
            host_effects=fields.take("host_effects", bool),
            doc=fields.take("doc", str),
            span=self._span(fields.take("span", list, type(None))),
            leading=fields.each("leading", text),
        )
        fields.end()
        return function

    def _extern(self, data: Any) -> ExternInfo:
        fields = Fields(data, "an extern")
        extern = ExternInfo(
            name=fields.take("name", str),
            params=fields.each("params", self._param),
            result=self._type(fields.take("result", str)),
            pure=fields.take("pure", bool),
            doc=fields.take("doc", str),
            span=self._span(fields.take("span", list, type(None))),
        )
        fields.end()
        return extern

    def _param(self, data: Any) -> ParameterInfo:
        fields = Fields(data, "a parameter")
        param = ParameterInfo(
            fields.take("name", str), self._type(fields.take("type", str)), fields.take("default", str, type(None)))
        fields.end()
        return param

    def _block(self, data: Any, depth: int) -> CodeBlock:
        if depth > _MAX_DEPTH:
            raise BadData(f"more than {_MAX_DEPTH} blocks inside one another")
        fields = Fields(data, "a block")
        params, code = fields.each("params", count), []
        # A plain loop here and below: each level of nesting then takes two frames of the interpreter's stack.
        for data in fields.take("code", list):
            code.append(self._instruction(data, depth))
        fields.end()
        return CodeBlock(params, tuple(code))

    def _instruction(self, data: Any, depth: int) -> Instruction:
        fields = Fields(data, "an instruction")
        opcode = fields.take("op", str)
        if opcode not in OPS:
            raise BadData(f"the unknown instruction `{opcode}`")
        blocks = []
        for block in fields.take("blocks", list):
            blocks.append(self._block(block, depth + 1))
        instruction = Instruction(
            opcode=opcode,
            inputs=_inputs(opcode, fields.take("in", dict)),
            outputs=fields.each("out", count),
            types=fields.each("types", self._type),
            attributes=_attributes(opcode, fields.take("at", dict)),
            blocks=tuple(blocks),
            reads=fields.each("reads", count),
            after=fields.each("after", count),
            span=self._span(fields.take("span", list, type(None))),
        )
        fields.end()
        return instruction

    def _span(self, data: list[Any] | None) -> Span | None:
        if data is None:
            return None
        numbers = tuple(map(count, data[:5]))
        if len(numbers) != 5 or numbers[0] >= len(self.files):
            raise BadData("a place that is in no file")
        return Span(self.files[numbers[0]], *numbers[1:], calls=tuple(map(self._inlined, data[5:])))

    def _inlined(self, data: Any) -> Inlined:
        if not isinstance(data, list) or len(data) != 3 or not isinstance(data[2], (list, type(None))) or len(data[2] or ()) > 5:
            raise BadData("an inlined call that is none")
        return Inlined(text(data[0]), text(data[1]), self._span(data[2]))


def _named(items: tuple[Any, ...], what: str) -> dict[str, Any]:
    named = {item.name: item for item in items}
    if len(named) < len(items):
        raise BadData(f"two {what} of one name")
    return named


def _inputs(opcode: str, data: dict[str, Any]) -> dict[str, Input | tuple[Input, ...]]:
    fields = Fields(data, f"the inputs of `{opcode}`")
    read: dict[str, Input | tuple[Input, ...]] = {}
    for field in op_fields(OPS[opcode]):
        if field.kind is FieldKind.OPERANDS:
            read[field.name] = fields.each(field.name, _read_input)
        elif field.kind is FieldKind.OPERAND or field.kind is FieldKind.NAMED_OPERAND and field.name in fields.left:
            read[field.name] = _read_input(fields.take(field.name, dict, *_SCALARS))
    fields.end()
    return read


def _read_input(data: Any) -> Input:
    if isinstance(data, dict):
        fields = Fields(data, "a register")
        register = Register(count(fields.take("r", int)))
        fields.end()
        return register
    if type(data) not in _SCALARS:
        raise BadData(f"a literal that is a {type(data).__name__}")
    return data


def _attributes(opcode: str, data: dict[str, Any]) -> dict[str, Any]:
    fields = Fields(data, f"the attributes of `{opcode}`")
    read: dict[str, Any] = {}
    for field in op_fields(OPS[opcode]):
        if field.kind is FieldKind.ATTRIBUTE and field.name != "automaton":
            read[field.name] = _attribute_reader(field.annotation)(fields, field.name)
    if opcode == "lm.gen" and "constraint" in fields.left:
        read["constraint"] = fields.take("constraint", int)
    fields.end()
    return read


def _attribute_reader(annotation: Any) -> Callable[[Fields, str], Any]:
    if annotation == tuple[str, ...]:
        return lambda fields, name: list(fields.each(name, text))
    if annotation == tuple[int, ...]:
        return lambda fields, name: list(fields.each(name, count))
    if annotation in (str | None, int | None):
        return lambda fields, name: fields.take(name, *get_args(annotation))
    if annotation in (str, bool, int):
        return lambda fields, name: fields.take(name, annotation)

    def member(fields: Fields, name: str) -> str:
        value = fields.take(name, str)
        if value not in [m.value for m in annotation]:
            raise BadData(f"the unknown value `{value}` of `{name}`")
        return value

    return member
