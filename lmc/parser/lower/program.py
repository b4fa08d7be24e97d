"""A checked program -> one IR module: types, externs, every `def`, the parts as they are called, the tests.

Functions come in the order written, imported files first.  A part is lowered once for each way in which it is called
(`Variant`), so that its text goes to the caller's role and its generations take the caller's `fork … with` options.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from lmc.diagnostics import CompileError, Diagnostic
from lmc.ir.core import Extern, Function, Module, Parameter, Value
from lmc.ir.ops import ContextNew
from lmc.parser import ast
from lmc.parser.check import model
from lmc.parser.lower.frame import Frame, Variant
from lmc.parser.lower.statements import lower_body
from lmc.types import BUILTIN_RECORDS, CONTEXT, NONE, RecordT, UnionT, named_types
from lmc.values import to_json


def lower(checked: model.Checked) -> Module:
    """The module of a program without errors.

    Raises `CompileError` (E0015) for blocks that are nested too deeply, one for each function.
    """
    assert not checked.errors, checked.errors[0]
    return _Lowering(checked).module()


class _Lowering:
    __slots__ = ("checked", "wanted", "refused")

    def __init__(self, checked: model.Checked):
        self.checked = checked
        self.wanted: dict[Variant, None] = {}
        self.refused: list[Diagnostic] = []

    def module(self) -> Module:
        checked = self.checked
        functions = [f for f in self._functions() if f is not None]
        if self.refused:
            raise CompileError(self.refused, checked.sources)
        return Module(
            name=os.path.basename(checked.root.path),
            types=_types(checked),
            externs=tuple(self._extern(e) for file in checked.files for e in file.externs),
            functions=tuple(functions),
            entries=tuple(f.qualified for f in checked.root.functions if f.part is None and not f.name.startswith("_")),
            config=tuple(checked.config.items()),
            sources=tuple(checked.sources.items()),
        )

    def _functions(self) -> Iterator[Function | None]:
        for file in self.checked.files:
            for symbol in file.functions:
                if symbol.part is None:
                    yield self._guarded(lambda: self._def(symbol))
        tests = [self._guarded(lambda: self._test(test)) for test in self.checked.root.tests]
        lowered: set[Variant] = set()
        while pending := [v for v in self.wanted if v not in lowered]:
            for variant in pending:
                lowered.add(variant)
                yield self._guarded(lambda: self._part(variant))
        yield from tests

    def _guarded(self, write) -> Function | None:
        """What is refused is kept, so that all is reported at once."""
        try:
            return write()
        except CompileError as error:
            self.refused += error.diagnostics
            return None

    # -------------------------------------------------------------- functions

    def _def(self, symbol: model.FunctionSymbol) -> Function:
        frame = Frame(self.checked, self.wanted, "def", symbol.result)
        args = self._bind_params(frame, symbol)
        frame.builder.args = args
        if symbol.uses_context:
            frame.context = frame.value(ContextNew, symbol.definition.span, CONTEXT, "c")
        return self._finish(frame, symbol, symbol.qualified, self._params(symbol.params))

    def _part(self, variant: Variant) -> Function:
        symbol = variant.part
        frame = Frame(self.checked, self.wanted, "part", symbol.result)
        frame.context = Value(CONTEXT, "c")
        args = self._bind_params(frame, symbol)
        options = {name: Value(type, f"with.{name}") for name, type in variant.options}
        frame.builder.args = (frame.context, *args, *options.values())
        frame.role, frame.options = variant.role, dict(options)
        params = self._params(symbol.params) + tuple(Parameter(v.name, v.type) for v in options.values())
        return self._finish(frame, symbol, variant.name, params)

    def _bind_params(self, frame: Frame, symbol: model.FunctionSymbol) -> tuple[Value, ...]:
        args = tuple(Value(p.type, p.name) for p in symbol.params)
        for param, arg in zip(symbol.definition.params, args):
            frame.names[self.checked.symbols[param.name]] = arg
        return args

    def _finish(self, frame: Frame, symbol: model.FunctionSymbol, name: str, params: tuple[Parameter, ...]) -> Function:
        definition = symbol.definition
        lower_body(frame, definition.body, definition)
        return Function(name, frame.kind, params, symbol.result, frame.builder.block(), _doc(definition.doc), definition.span)

    def _test(self, test: ast.TestDef) -> Function:
        frame = Frame(self.checked, self.wanted, "test", NONE)
        if self._uses_context(test):
            frame.context = frame.value(ContextNew, test.span, CONTEXT, "c")
        lower_body(frame, test.body, test)
        return Function(f"test:{test.name.plain}", "test", (), NONE, frame.builder.block(), "", test.span)

    def _uses_context(self, test: ast.TestDef) -> bool:
        nodes = [n for s in test.body for n in ast.walk(s)]
        calls = [self.checked.calls.get(n) for n in nodes if isinstance(n, ast.Call)]
        return any(isinstance(n, (ast.RoleBlock, ast.Here, ast.Resume, ast.Fork)) for n in nodes) or any(
            isinstance(c, model.FunctionCall) and c.target.part is not None for c in calls
        )

    # ----------------------------------------------------------- declarations

    def _params(self, params: tuple[model.ParamInfo, ...]) -> tuple[Parameter, ...]:
        values = self.checked.values
        return tuple(
            Parameter(p.name, p.type, None if p.default is None else to_json(values[p.default], p.type)) for p in params
        )

    def _extern(self, symbol: model.ExternSymbol) -> Extern:
        params, definition = self._params(symbol.params), symbol.definition
        return Extern(symbol.qualified, params, symbol.result, symbol.pure, _doc(definition.doc), definition.span)


def _doc(doc: ast.Text | None) -> str:
    return doc.plain or "" if doc is not None else ""


def _types(checked: model.Checked) -> tuple[RecordT | UnionT, ...]:
    """The named types, each after those that it needs."""
    builtin = {t.name for t in BUILTIN_RECORDS}
    found = {t.name: t for file in checked.files for named in file.types for t in named_types(named)}
    return tuple(t for name, t in found.items() if name not in builtin)
