"""List comprehensions -> `lm.map`, so that calls in them run side by side.

    [ask(t) for t in topics]                     lm.map(%topics) {^(%t): … yield(%answer)}
    [t for t in topics if long(t)]               a body that yields a list of one or none, and `flatten`
    [f(a, b) for a in xs for b in ys]            maps inside one another, and `flatten`
"""

from __future__ import annotations

from collections.abc import Callable

from lmc.ir.core import Operand, Value
from lmc.ir.ops import ListMake, Map, PureCall, Yield
from lmc.parser import ast
from lmc.parser.lower.control import branch
from lmc.parser.lower.frame import Frame
from lmc.parser.lower.targets import bind, element_hint
from lmc.types import ListT

Lower = Callable[..., Operand]


def comprehension(frame: Frame, expr: ast.Comprehension, lower: Lower, condition: Lower, iterable: Lower, hint: str) -> Operand:
    """`lower`, `condition` and `iterable` write expressions, as in `expressions.py`."""
    return _Comprehension(frame, expr, lower, condition, iterable).clause(0, hint)


class _Comprehension:
    __slots__ = ("frame", "expr", "lower", "condition", "iterable", "result")

    def __init__(self, frame: Frame, expr: ast.Comprehension, lower: Lower, condition: Lower, iterable: Lower):
        self.frame, self.expr, self.lower, self.condition, self.iterable = frame, expr, lower, condition, iterable
        result = frame.checked.expr_types[expr]
        assert isinstance(result, ListT), result
        self.result = result

    def clause(self, at: int, hint: str = "") -> Operand:
        """The list that the clauses from `at` on give."""
        frame, clause = self.frame, self.expr.clauses[at]
        items = self.iterable(frame, clause.iterable)
        single = at + 1 == len(self.expr.clauses) and not clause.conditions
        body_type = self.result.element if single else self.result
        element = Value(items.type.element, element_hint(clause.targets))
        site = frame.site()
        with frame.region((element,), self.expr.span) as builder, frame.branch({}):
            before = frame.names.copy()
            bind(frame, clause.targets, element)
            value = self._conditions(at, clause.conditions) if not single else self.lower(frame, self.expr.element)
            self._refuse_contexts(before)
            frame.add(Yield, self.expr.span, values=(value,))
        name = hint if single else ""
        mapped = frame.value(Map, self.expr.span, ListT(body_type), name, items=items, site=site, body=builder.block())
        return mapped if single else self._flatten(mapped, hint)

    def _conditions(self, at: int, conditions: tuple[ast.Expr, ...]) -> Operand:
        """The list that one element gives: of the clauses inside, or of one, or empty where a condition fails."""
        if not conditions and at + 1 < len(self.expr.clauses):
            return self.clause(at + 1)
        if not conditions:
            return self._list(self.lower(self.frame, self.expr.element))
        holds = self.condition(self.frame, conditions[0])

        def rest() -> Operand:
            return self._conditions(at, conditions[1:])

        value = branch(self.frame, self.expr.span, holds, rest, self._list, value=self.result)
        return value if value is not None else self._list()

    def _list(self, *elements: Operand) -> Operand:
        return self.frame.value(ListMake, self.expr.span, self.result, elements=elements)

    def _flatten(self, lists: Operand, hint: str) -> Operand:
        return self.frame.value(PureCall, self.expr.span, self.result, hint, args=(lists,), function="flatten")

    def _refuse_contexts(self, before: dict) -> None:
        changed = [k for k, v in self.frame.names.items() if k in before and before[k] is not v]
        if changed and not self.frame.closed:
            self.frame.refuse(self.expr.span, "a comprehension that goes on with the conversation", "write a `for` or a `fork`")
