"""The Python types of a program, as a module stub (`.pyi`) for type checkers.

    class _judge:
        def __call__(self, essay: str, dimensions: typing.Sequence[str] = ...) -> Verdict: ...

    class Module:
        judge: _judge

Users write `cast("judge_lmp.Module", lmc.load("judge.lmp"))`.  Nothing of the stub exists while Python runs.  How the values
themselves look is said in `lmc/runtime/host_types.py`; this file spells it.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterator

from lmc.backend.program import FunctionCode, ParameterInfo, Program
from lmc.backend.stub_types import StubTypes
from lmc.types import RecordT
from lmc.values import python_name

#: What `lmc.embed.Module` has beside the functions of the program; a function of that name is hidden by it.
RESERVED = frozenset({"aio", "types", "report", "close"})


def format_stub(program: Program) -> str:
    """The text of the stub, with a last newline."""
    types = StubTypes(program)
    entries = [program.functions[e] for e in program.entries if e not in RESERVED and not keyword.iskeyword(e)]
    lines = [
        f"# Written by `lmc stubs` from {program.name!r}: write it again when the program changes.",
        "import builtins", "import dataclasses", "import types", "import typing", "",
        "import lmc", "from lmc.embed import Context, Forecast, Rendering, Report", "",
        "_Data: typing.TypeAlias = builtins.dict[builtins.str, typing.Any]",
    ]
    for record in types.records:
        lines += ["", "", *_record(record, types)]
    if types.unions:
        lines += ["", ""]
        lines += [f"{types.name(u)}: typing.TypeAlias = {' | '.join(types.name(m) for m in u.members)}" for u in types.unions]
    for code in entries:
        lines += ["", "", *_function(code, types)]
    lines += ["", "", *_module(program, entries, types)]
    return "\n".join(lines) + "\n"


def _record(record: RecordT, types: StubTypes) -> Iterator[str]:
    yield "@dataclasses.dataclass(frozen=True)"
    yield f"class {types.name(record)}:"
    if record.doc:
        yield from _doc(record.doc, "    ")
    defaulted = False
    for f in record.fields:
        named = " = dataclasses.field(kw_only=True)" if defaulted else ""
        yield f"    {python_name(f.name, record)}: {types.result(f.type)}{named if f.default is None else ' = ...'}"
        defaulted |= f.default is not None
    yield "    def asdict(self, *, tag: builtins.bool = ...) -> _Data: ..."


def _function(code: FunctionCode, types: StubTypes) -> Iterator[str]:
    parameters, result = _parameters(code, types), types.result(code.result)
    name = f"_{code.name}"
    yield f"{name}_row = typing.TypedDict({name + '_row'!r}, {{"
    for p in code.params:
        hint = types.argument(p.type)
        yield f"    {p.name!r}: {hint if p.default is None else f'typing.NotRequired[{hint}]'},"
    yield "})"
    rows = f"typing.Iterable[{name}_row | {name}_tuple]"
    yield f"{name}_tuple: typing.TypeAlias = {_positional(code, types)}"
    yield ""
    yield ""
    yield f"class {name}:"
    yield f"    def __call__(self{parameters}) -> {result}:{'' if code.doc else ' ...'}"
    if code.doc:
        yield from _doc(code.doc, "        ")
    yield f"    async def start(self{parameters}) -> {result}: ..."
    yield f"    def render(self{parameters}) -> Rendering: ..."
    yield f"    def plan(self{parameters}) -> Forecast: ..."
    yield "    @typing.overload"
    yield f"    def batch(self, rows: {rows}, *, errors: typing.Literal[\"raise\"] = ...) -> list[{result}]: ..."
    yield "    @typing.overload"
    yield (f"    def batch(self, rows: {rows}, *, errors: typing.Literal[\"return\"])"
           f" -> list[{result} | lmc.LmcError]: ...")
    yield "    @property"
    yield "    def schema(self) -> dict[str, typing.Any]: ..."


def _module(program: Program, entries: list[FunctionCode], types: StubTypes) -> Iterator[str]:
    named = [t for t in types.records if t in program.types]
    # Inside the class a record's name would mean its own attribute.
    for record in named:
        yield f"_{types.name(record)}_class: typing.TypeAlias = {types.name(record)}"
    yield from ("", "", "class _types:")
    yield from [f"    {types.name(r)}: type[_{types.name(r)}_class]" for r in named] or ["    pass"]
    yield from ("", "", "class _aio:")
    methods = [f"    async def {c.name}(self{_parameters(c, types)}) -> {types.result(c.result)}: ..." for c in entries]
    yield from methods or ["    pass"]
    yield from ("", "", "class Module:")
    for code in entries:
        yield f"    {code.name}: _{code.name}"
    yield "    aio: _aio"
    yield "    types: _types"
    yield "    @property"
    yield "    def report(self) -> Report: ..."
    yield "    def close(self) -> None: ..."
    yield "    def __enter__(self) -> typing.Self: ..."
    yield ("    def __exit__(self, kind: builtins.type[BaseException] | None, error: BaseException | None,"
           " trace: typing.Any) -> None: ...")


def _parameters(code: FunctionCode, types: StubTypes) -> str:
    if any(keyword.iskeyword(p.name) or p.name == "self" for p in code.params):
        return ", /, *args: typing.Any, **keywords: typing.Any"  # names that only `**` can give
    return "".join(f", {_parameter(p, types, late)}" for p, late in zip(code.params, _behind_default(code)))


def _parameter(p: ParameterInfo, types: StubTypes, late: bool) -> str:
    # A parameter without a default behind one with it: Python has no form for that, so the checker cannot ask for it.
    return f"{p.name}: {types.argument(p.type)}{'' if p.default is None and not late else ' = ...'}"


def _behind_default(code: FunctionCode) -> list[bool]:
    seen, late = False, []
    for p in code.params:
        late.append(seen)
        seen |= p.default is not None
    return late


def _positional(code: FunctionCode, types: StubTypes) -> str:
    hints = [types.argument(p.type) for p in code.params]
    needed = max((i + 1 for i, p in enumerate(code.params) if p.default is None), default=0)
    return " | ".join(f"builtins.tuple[{', '.join(hints[:n]) or '()'}]" for n in range(needed, len(hints) + 1))


def _doc(text: str, indent: str) -> Iterator[str]:
    safe = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if safe.endswith('"'):
        safe = safe[:-1] + '\\"'
    first, *rest = safe.splitlines() or [""]
    for number, line in enumerate([first, *rest]):
        start, end = '"""' if number == 0 else "", '"""' if number == len(rest) else ""
        yield f"{indent}{start}{line}{end}".rstrip()
