"""Values of constant expressions: initialisers of constants, defaults of parameters and fields, `config` entries.

    LIMIT = 3 * BASE          computed with `lmc/pure`, as the machine would
    SHOTS = [ask()]           error: not known at compile time

The expression has been checked; its types, symbols and calls are in `Facts`.
"""

from __future__ import annotations

import json
from typing import Any

from lmc.parser import ast
from lmc.parser.check.facts import Facts
from lmc.parser.check.model import BuiltinCall, ConstSymbol, MethodCall, RecordCall
from lmc.parser.check.relations import type_text
from lmc.pure import PURE, PureError, call_pure
from lmc.types import RecordT, Type
from lmc.values import Record, from_data, text_of


_OPERATORS = {"+": "add", "-": "sub", "*": "mul", "/": "div", "//": "floordiv", "%": "mod", "**": "pow"}
_COMPARISONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "in": "in", "not in": "not_in",
                "is": "eq", "is not": "ne"}


class NotConstant(Exception):
    """`node` cannot be computed at compile time, because of `message`."""

    def __init__(self, node: ast.Node, message: str):
        super().__init__(message)
        self.node, self.message = node, message


class _Failed(Exception):
    """The value depends on what was already reported."""


def evaluate(facts: Facts, expr: ast.Expr, what: str) -> Any | None:
    """The value of `expr`, recorded in `facts.values`; None (and a report) where it has none.  `what` names it: "a constant"."""
    try:
        value = _Evaluator(facts).value(expr)
    except _Failed:
        return None
    except NotConstant as error:
        facts.error("E0321", f"{what} must be known at compile time; {error.message}", error.node, "",
                    "use literals, other constants, operators and built-in functions that do not ask the model")
        return None
    except PureError as error:
        facts.error("E0321", f"{what} cannot be computed: {error}", expr)
        return None
    facts.values[expr] = value
    return value


class _Evaluator:
    __slots__ = ("facts",)

    def __init__(self, facts: Facts):
        self.facts = facts

    def value(self, expr: ast.Expr) -> Any:
        value = self._value(expr)
        return float(value) if expr in self.facts.conversions and value is not None else value

    def _value(self, expr: ast.Expr) -> Any:
        match expr:
            case ast.Constant():
                return expr.value
            case ast.Text():
                return "".join(self._piece(p) for p in expr.parts)
            case ast.Name() | ast.Attribute():
                return self._name(expr)
            case ast.ListExpr():
                return tuple(self.value(e) for e in expr.elements)
            case ast.DictExpr():
                return {self.value(k): self.value(v) for k, v in zip(expr.keys, expr.values)}
            case ast.RecordExpr():
                return self._record(expr)
            case ast.Call():
                return self._call(expr)
            case ast.BrokenExpr():
                raise _Failed
        return self._operator(expr)

    def _piece(self, part: ast.TextPiece | ast.Hole) -> str:
        return part.text if isinstance(part, ast.TextPiece) else text_of(self.value(part.value))

    def _name(self, expr: ast.Name | ast.Attribute) -> Any:
        symbol = self.facts.symbols.get(expr)
        if isinstance(symbol, ConstSymbol):
            if symbol not in self.facts.constants:
                raise _Failed
            return self.facts.constants[symbol]
        if isinstance(expr, ast.Attribute) and symbol is None:
            record = self.value(expr.value)
            if isinstance(record, Record):
                return record.get(expr.name.text)
        raise _Failed

    def _record(self, expr: ast.RecordExpr) -> Any:
        type = self.facts.expr_types.get(expr)
        if not isinstance(type, RecordT):
            return {}
        given = {f.name.text: f.value for f in expr.fields}
        return self._make(type, [given.get(f.name) for f in type.fields])

    def _make(self, type: RecordT, args: list[ast.Expr | None]) -> Record:
        values = []
        for field, arg in zip(type.fields, args):
            if arg is None and field.default is None:
                raise _Failed
            values.append(self.value(arg) if arg is not None else from_data(json.loads(field.default or "null"), field.type))
        return Record(type, tuple(values))

    def _call(self, expr: ast.Call) -> Any:
        call = self.facts.calls.get(expr)
        match call:
            case RecordCall(type, args):
                return self._make(type, list(args))
            case BuiltinCall(name, args, type) if name in PURE:
                if type is not None and name != "parse_json":
                    return self._typed(name, args, type, expr)
                return call_pure(name, self._given(args), type)
            case MethodCall(name, receiver, args):
                return call_pure(name, (self.value(receiver), *self._given(args)), None)
            case None:
                raise _Failed
        shown = expr.function.text if isinstance(expr.function, ast.Name) else "this call"
        raise NotConstant(expr, f"`{shown}` runs only when the program runs")

    def _typed(self, name: str, args: tuple[ast.Expr | None, ...], type: Type, expr: ast.Call) -> Any:
        if name != "json":
            raise NotConstant(expr, f"`{name}({type_text(type)})` is written where it is used")
        return call_pure(name, self._given(args), None)

    def _given(self, args: tuple[ast.Expr | None, ...]) -> tuple[Any, ...]:
        given = list(args)
        while given and given[-1] is None:
            given.pop()
        return tuple(self.value(a) if a is not None else None for a in given)

    def _operator(self, expr: ast.Expr) -> Any:
        match expr:
            case ast.Unary(op="not"):
                return call_pure("not", (self.value(expr.operand),), None)
            case ast.Unary():
                return call_pure("neg" if expr.op == "-" else "pos", (self.value(expr.operand),), None)
            case ast.Binary(op=op) if op in _OPERATORS:
                return call_pure(_OPERATORS[op], (self.value(expr.left), self.value(expr.right)), None)
            case ast.Compare():
                return self._compare(expr)
            case ast.BoolOp():
                wanted = expr.op == "and"
                return wanted if all(self.value(o) is wanted for o in expr.operands) else not wanted
            case ast.Conditional():
                return self.value(expr.then if self.value(expr.condition) else expr.otherwise)
            case ast.Index():
                return call_pure("index", (self.value(expr.value), self.value(expr.index)), None)
            case ast.Slice():
                bounds = (self.value(b) if b is not None else None for b in (expr.start, expr.stop, expr.step))
                return call_pure("slice", (self.value(expr.value), *bounds), None)
        raise NotConstant(expr, "this is computed only when the program runs")

    def _compare(self, expr: ast.Compare) -> bool:
        left = self.value(expr.first)
        for op, right_expr in zip(expr.ops, expr.rest):
            right = self.value(right_expr)
            if not call_pure(_COMPARISONS[op], (left, right), None):
                return False
            left = right
        return True
