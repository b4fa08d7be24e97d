"""Checks that a module keeps the promises of the IR; runs after lowering and after every pass.

Here is the structure: each value is defined once, above its uses and visible there; blocks end with a terminator that fits the
place; sites are unique; functions, types and entries exist.  The types of each op's operands, results and regions are in
`rules.py`. A broken module is a mistake of a pass (or of who wrote the text form), so that messages name function and op, not
source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lmc.diagnostics import Diagnostic, LmcError
from lmc.ir.core import Block, Function, Module, Op, Value, blocks, op_fields, operands
from lmc.ir.fits import fits
from lmc.ir.ops import ROUNDS, Branches, Break, Continue, Fail, For, Fork, Map, Return, While, Yield
from lmc.ir.rules import Tables, problems_of, yields_of
from lmc.types import CONTEXT, NeverT, Type

#: More than these are the same mistake again.
_MAX_PROBLEMS = 20


def verify(module: Module) -> None:
    """Raises `LmcError` (E0903) with what is wrong, if anything is."""
    found: list[Diagnostic] = list(_module_problems(module))
    tables = Tables.of(module)
    for function in module.functions:
        found += _FunctionVerifier(function, tables).problems()
        if len(found) >= _MAX_PROBLEMS:
            break
    if found:
        raise LmcError(found[:_MAX_PROBLEMS], dict(module.sources))


def _module_problems(module: Module) -> Iterator[Diagnostic]:
    for what, names in (
        ("functions", [f.name for f in module.functions]),
        ("externs", [e.name for e in module.externs]),
        ("types", [t.name for t in module.types]),
        ("entries", list(module.entries)),
    ):
        for name in sorted({n for n in names if names.count(n) > 1}) if len(set(names)) < len(names) else ():
            yield _problem(f"two {what} are named `{name}`", None)
    kinds = {f.name: f.kind for f in module.functions}
    for name in module.entries:
        if kinds.get(name) != "def":
            yield _problem(f"the entry `{name}` is not a `def` of this module", None)


def _problem(message: str, span) -> Diagnostic:
    return Diagnostic("E0903", f"the IR is broken: {message}", span)


class _FunctionVerifier:
    __slots__ = ("function", "tables", "found", "visible", "defined", "sites")

    def __init__(self, function: Function, tables: Tables):
        self.function, self.tables = function, tables
        self.found: list[Diagnostic] = []
        self.visible: set[Value] = set()
        self.defined: set[Value] = set()
        self.sites: dict[Op | None, set[str]] = {}

    def problems(self) -> list[Diagnostic]:
        self._signature()
        self._block(self.function.body, None, ())
        return self.found

    def _signature(self) -> None:
        f = self.function
        wanted = [CONTEXT] * (f.kind == "part") + [p.type for p in f.params]
        if [a.type for a in f.body.args] != wanted:
            self._say(None, "the block's arguments are not the parameters")
        if f.kind not in ("def", "part", "test"):
            self._say(None, f"`{f.kind}` is no kind of function")

    # ---------------------------------------------------------------- structure

    def _block(self, block: Block, parent: Op | None, around: tuple[Op, ...]) -> None:
        """`around` are the ops whose regions the block stands in, outermost first; `parent` the last of them."""
        mine = [*block.args]
        self._define(parent, block.args)
        if not block.ops or not block.ops[-1].terminator:
            self._say(parent, "a block does not end with a terminator")
        for op in block.ops:
            if op.terminator and op is not block.ops[-1]:
                self._say(op, "a terminator stands before the end of its block")
            self._op(op, block, around)
            self._define(op, op.results)
            mine += op.results
        self.visible.difference_update(mine)

    def _define(self, op: Op | None, values: Iterable[Value]) -> None:
        for value in values:
            if value in self.defined:
                self._say(op, f"`%{value.name}` is defined twice")
            self.defined.add(value)
            self.visible.add(value)

    def _op(self, op: Op, block: Block, around: tuple[Op, ...]) -> None:
        for operand in operands(op):
            if isinstance(operand, Value) and operand not in self.visible:
                where = "outside its block" if operand in self.defined else "before it is defined"
                self._say(op, f"`%{operand.name}` is used {where}")
        self._site(op, around)
        for message in problems_of(op, self.tables):
            self._say(op, message)
        if op.terminator:
            self._terminator(op, block, around)
        for inner in blocks(op):
            self._block(inner, op, (*around, op))

    def _site(self, op: Op, around: tuple[Op, ...]) -> None:
        if not any(f.name == "site" for f in op_fields(type(op))):
            return
        # Rounds and branches have paths of their own, so that inlined code keeps its sites in them.
        region = next((o for o in reversed(around) if isinstance(o, ROUNDS)), None)
        sites = self.sites.setdefault(region, set())
        if op.site in sites or not op.site:
            self._say(op, f"the site {op.site!r} is not unique in its function or round")
        sites.add(op.site)

    # -------------------------------------------------------------- terminators

    def _terminator(self, op: Op, block: Block, around: tuple[Op, ...]) -> None:
        parent = around[-1] if around else None
        match op:
            case Yield():
                if parent is None:
                    self._say(op, "the body of a function does not end with `control.return`")
                else:
                    self._fit(op, yields_of(parent, block), "yields")
            case Break() | Continue():
                self._loop_exit(op, around)
            case Return():
                self._return(op, around)
            case Fail():
                pass

    def _loop_exit(self, op: Break | Continue, around: tuple[Op, ...]) -> None:
        loop = next((o for o in reversed(around) if isinstance(o, (For, While, Fork, Branches, Map))), None)
        if not isinstance(loop, (For, While)):
            self._say(op, "is not inside a loop")
        elif isinstance(op, Break):
            self._fit(op, [r.type for r in loop.results], "gives")
        else:
            carried = loop.body.args[1:] if isinstance(loop, For) else loop.body.args
            self._fit(op, [a.type for a in carried], "gives")

    def _return(self, op: Return, around: tuple[Op, ...]) -> None:
        if any(isinstance(o, (Fork, Branches, Map)) for o in around):
            self._say(op, "leaves a function from inside a branch")
        self._fit(op, [CONTEXT] * (self.function.kind == "part") + [self.function.result], "returns")

    def _fit(self, op: Op, wanted: list[Type] | None, verb: str) -> None:
        found = [o.type for o in op.values]
        if wanted is None:
            return
        if len(found) != len(wanted):
            self._say(op, f"{verb} {len(found)} values where {len(wanted)} are wanted")
        for i, (a, b) in enumerate(zip(found, wanted)):
            if not fits(a, b) and not isinstance(b, NeverT):
                self._say(op, f"{verb} a {a} as value {i} where a {b} is wanted")

    def _say(self, op: Op | None, message: str) -> None:
        what = f"`{op.mnemonic}`" if op else "the function"
        if op and op.results:
            what += f" (%{op.results[0].name})"
        self.found.append(_problem(f"in `{self.function.name}`, {what}: {message}", op.span if op else self.function.span))
