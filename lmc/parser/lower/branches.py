"""`fork` and `join`: each branch is a region with a context of its own; what `join` exports are the results.

    fork d in dimensions:            %thoughts: list<str> = lm.fork(%c, %dimensions) {^(%c_1: context, %d: str): …
        assistant: think = gen()         control.yield(%think)
    join think as thoughts           }

After it names and context are what they were before, and the exports are new.  With `errors="collect"` each export is a `T | Error`.
"""

from __future__ import annotations

from collections.abc import Callable

from lmc.ir.core import Block, Operand, Value
from lmc.ir.ops import Branches, Fork, Yield
from lmc.parser import ast
from lmc.parser.check.model import ExportInfo
from lmc.parser.lower.frame import HERE, Frame
from lmc.parser.lower.targets import bind, element_hint
from lmc.types import CONTEXT, ListT, Type, fallible

Body = Callable[[tuple[ast.Stmt, ...]], None]


def fork_over(frame: Frame, statement: ast.Fork, items: Operand, options: dict[str, Operand], body: Body) -> None:
    """The form over a list.  `options` are the defaults of `with`; `body` writes statements."""
    exports = frame.checked.forks[statement].exports
    context, element = Value(CONTEXT, "c"), Value(items.type.element, element_hint(statement.targets))
    site = frame.site()

    def write() -> None:
        bind(frame, statement.targets, element)
        body(statement.body)

    block = _branch(frame, statement, (context, element), exports, options, write)
    collect = frame.checked.forks[statement].collect
    results = [Value(ListT(_type(e, collect=collect)), e.target.name) for e in exports]
    frame.add(Fork, statement.span, results, context=frame.context, items=items, site=site, body=block, collect=collect)
    frame.names.update(zip((e.target for e in exports), results))


def fork_arms(frame: Frame, statement: ast.Fork, options: dict[str, Operand], body: Body) -> None:
    """The form with named arms."""
    info = frame.checked.forks[statement]
    site = frame.site()
    blocks, exports = [], []
    for i, arm in enumerate(statement.arms):
        mine = tuple(e for e in info.exports if e.arm == i)
        blocks.append(_branch(frame, statement, (Value(CONTEXT, "c"),), mine, options, lambda arm=arm: body(arm.body)))
        exports.append(mine)
    counts = tuple(map(len, exports))
    exports = [e for mine in exports for e in mine]
    results = [Value(_type(e, collect=info.collect), e.target.name) for e in exports]
    names = tuple(arm.name.text for arm in statement.arms)
    frame.add(Branches, statement.span, results, context=frame.context, site=site, names=names, counts=counts,
              arms=tuple(blocks), collect=info.collect)
    frame.names.update(zip((e.target for e in exports), results))


def _branch(frame: Frame, statement: ast.Fork, args: tuple[Value, ...], exports: tuple[ExportInfo, ...],
            options: dict[str, Operand], write: Callable[[], None]) -> Block:
    with frame.region(args, statement.span) as builder, frame.branch(options):
        frame.context = args[0]
        write()
        if not frame.closed:
            values = tuple(frame.names[HERE if e.source is None else e.source] for e in exports)
            frame.add(Yield, statement.span, values=values)
    return builder.block()


def _type(export: ExportInfo, *, collect: bool) -> Type:
    type = CONTEXT if export.source is None else export.source.type
    return fallible(type) if collect else type
