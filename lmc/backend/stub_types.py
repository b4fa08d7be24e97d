"""How a stub spells the types of a program: what a function gives, and what it takes.

    types = StubTypes(program)
    types.result(ListT(verdict)) == "builtins.list[Verdict]"
    types.argument(ListT(verdict)) == "typing.Sequence[Verdict | _Data]"

Arguments may be plain data (`_Data`, a dict) where results are dataclasses.  Builtins are qualified, since a field may be called `list`.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterator

from lmc.backend.program import Program
from lmc.types import (
    ERROR, BoolT, ContextT, DictT, FallibleT, FloatT, IntT, ListT, LiteralT, NeverT, NoneT, OptionalT, RangeT, RecordT, StrT, TupleT,
    Type, UnionT, parts,
)

_SCALARS = {StrT: "builtins.str", IntT: "builtins.int", RangeT: "builtins.int", FloatT: "builtins.float", BoolT: "builtins.bool",
            NoneT: "None", ContextT: "Context", NeverT: "typing.Never"}
# Names that the stub itself uses.
_TAKEN = frozenset({"Module", "Context", "_Data", "Forecast", "Rendering", "Report", "builtins", "dataclasses", "types", "typing", "lmc", "list", "dict", "type"})


class StubTypes:
    """The names of a program's records and unions in its stub, and the spelling of types with them."""

    __slots__ = ("records", "unions", "_names")

    def __init__(self, program: Program):
        found = dict.fromkeys(part for t in _shown(program) for part in _with_error(t))
        self.unions = [t for t in found if isinstance(t, UnionT)]
        self.records = [t for t in found if isinstance(t, RecordT)]
        self._names: dict[str, str] = {}
        used = _TAKEN | {f"_{name}{end}" for name in (*program.entries, "aio", "types") for end in ("", "_row", "_tuple")}
        # A short name belongs to the file nearest to the root file; other files' types of that name are qualified.
        for t in sorted((*self.records, *self.unions), key=lambda t: t.name.count(".")):
            short = t.name.rpartition(".")[2]
            name = short if short not in used and not keyword.iskeyword(short) else t.name.replace(".", "_") + "_" * ("." not in t.name)
            self._names[t.name] = name
            used |= {name}

    def name(self, t: RecordT | UnionT) -> str:
        return self._names[t.name]

    def result(self, t: Type) -> str:
        """The type of values that a program gives, and of fields."""
        return self._spell(t, argument=False)

    def argument(self, t: Type) -> str:
        """The type of values that a program takes."""
        return self._spell(t, argument=True)

    def _spell(self, t: Type, *, argument: bool) -> str:
        match t:
            case RecordT():
                return self.name(t) + (" | _Data" if argument else "")
            case UnionT(members=members):
                return " | ".join(self.name(m) for m in members) + " | _Data" if argument else self.name(t)
            case LiteralT(values):
                return f"typing.Literal[{', '.join(map(repr, values))}]"
            case ListT(element):
                return f"{'typing.Sequence' if argument else 'builtins.list'}[{self._spell(element, argument=argument)}]"
            case DictT(key, value):
                return f"builtins.dict[{self.result(key)}, {self._spell(value, argument=argument)}]"
            case TupleT(items):
                inner = ", ".join(self._spell(i, argument=argument) for i in items) or "()"
                return f"builtins.{'tuple' if argument else 'list'}[{inner if argument else self._either(items)}]"
            case OptionalT(inner):
                return f"{self._spell(inner, argument=argument)} | None"
            case FallibleT(inner):
                return f"{self._spell(inner, argument=argument)} | {self.name(ERROR)}"
        return _SCALARS[t.__class__]

    def _either(self, items: tuple[Type, ...]) -> str:
        # Tuples leave the runtime as lists.
        return " | ".join(dict.fromkeys(map(self.result, items))) or "typing.Never"


def _shown(program: Program) -> Iterator[Type]:
    yield from program.types
    for name in program.entries:
        code = program.functions[name]
        yield from (p.type for p in code.params)
        yield code.result


def _with_error(t: Type) -> Iterator[Type]:
    for part in parts(t):
        if isinstance(part, FallibleT):
            yield ERROR
        yield part
