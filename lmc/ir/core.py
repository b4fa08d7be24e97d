"""What the IR is made of: values, ops, blocks, functions, modules.

The IR is SSA with structured regions.  Everything is immutable; ops and values compare by identity.  The conversation is a value:
an op that extends it takes a context and gives a new one, so that two readers of one context are a fork and independence is the
absence of a def-use path.

An op is a class with annotated fields (see `ops.py`); what each field is follows from its annotation:

| annotation | in the text form |
| --- | --- |
| `Operand` | positional operand: `%x` or a literal |
| `tuple[Operand, ...]` | the remaining positional operands (last, once) |
| `Operand \\| None` | named operand: `temperature = %t` |
| `Block` | `{…}` region |
| `tuple[Block, ...]` | several regions |
| anything else | attribute in `[…]` |

Printer, reader, verifier and rewriting all use `op_fields`; no op has code of its own.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, Flag, auto
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from lmc.diagnostics import Span
from lmc.types import RecordT, Type, UnionT

if TYPE_CHECKING:
    from lmc.regex.dfa import ByteDfa
    from lmc.regex.grammar import Grammar


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A result of an op or an argument of a block.  `name` is a hint for printing, not an identity."""

    type: Type
    name: str = ""


@dataclass(frozen=True, slots=True)
class Literal:
    """A scalar written in place of an operand."""

    value: str | int | float | bool | None
    type: Type


Operand = Value | Literal


class Effect(Flag):
    """What an op does beside giving its results.

    `MODEL`: generates or scores; never merged, repeated or dropped while its context or value is used.
    `HOST`: an extern, `print` or `input`; keeps program order.
    `FAIL`: may stop the program with an error, a budget that is used up included; the first in program order is the one reported.
    `EXIT`: may leave the enclosing block (return, break, continue); what follows waits for it.
    """

    PURE = 0
    MODEL = auto()
    HOST = auto()
    FAIL = auto()
    EXIT = auto()


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """Base of all ops.  `results` come first so that every op is built as `SomeOp(results, span, …)`."""

    results: tuple[Value, ...]
    span: Span | None

    mnemonic: ClassVar[str] = ""
    effect: ClassVar[Effect] = Effect.PURE
    terminator: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """A sequence of ops with arguments; the last op is a terminator."""

    args: tuple[Value, ...]
    ops: tuple[Op, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """`default` is JSON text, or None where the argument is required."""

    name: str
    type: Type
    default: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A `def`, a `part` (first block argument and first result: the caller's context) or a test.

    The block's arguments are the parameters, in order.  `kind` is `def`, `part` or `test`.
    """

    name: str
    kind: str
    params: tuple[Parameter, ...]
    result: Type
    body: Block
    doc: str = ""
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Extern:
    """A function of the host, declared."""

    name: str
    params: tuple[Parameter, ...]
    result: Type
    pure: bool
    doc: str = ""
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Automaton:
    """What generations must match: `kind` (`type`, `regex`, `schema`, `grammar`) and `source` say it, `built` is made of it."""

    kind: str
    source: str
    built: ByteDfa | Grammar


@dataclass(frozen=True, slots=True, eq=False)
class Module:
    """A whole program: all files it imports, linked.  `entries` are the public functions of the root file, in order.

    `config` holds the defaults of the `config:` block, as JSON values; `sources` the text of each file, for diagnostics; `automata`
    are those that generations name by their number.
    """

    name: str
    types: tuple[RecordT | UnionT, ...]
    externs: tuple[Extern, ...]
    functions: tuple[Function, ...]
    entries: tuple[str, ...]
    config: tuple[tuple[str, object], ...] = ()
    sources: tuple[tuple[str, str], ...] = ()
    automata: tuple[Automaton, ...] = ()

    def function(self, name: str) -> Function:
        return next(f for f in self.functions if f.name == name)


class FieldKind(Enum):
    OPERAND = auto()
    OPERANDS = auto()
    NAMED_OPERAND = auto()
    BLOCK = auto()
    BLOCKS = auto()
    ATTRIBUTE = auto()


@dataclass(frozen=True, slots=True)
class OpField:
    name: str
    kind: FieldKind
    annotation: object
    required: bool


@cache
def op_fields(op_class: type[Op]) -> tuple[OpField, ...]:
    """The fields of an op class after `results` and `span`, in order."""
    hints = typing.get_type_hints(op_class)
    own = [f for f in dataclasses.fields(op_class) if f.name not in ("results", "span")]
    return tuple(
        OpField(f.name, _kind(hints[f.name]), hints[f.name], f.default is dataclasses.MISSING) for f in own
    )


def _kind(annotation: object) -> FieldKind:
    kinds = {
        Operand: FieldKind.OPERAND,
        tuple[Operand, ...]: FieldKind.OPERANDS,
        Operand | None: FieldKind.NAMED_OPERAND,
        Block: FieldKind.BLOCK,
        tuple[Block, ...]: FieldKind.BLOCKS,
    }
    return kinds.get(annotation, FieldKind.ATTRIBUTE)


def operands(op: Op) -> Iterator[Operand]:
    """The op's own operands, in order; not those of ops inside its regions."""
    for field in op_fields(type(op)):
        value = getattr(op, field.name)
        if field.kind in (FieldKind.OPERAND, FieldKind.NAMED_OPERAND) and value is not None:
            yield value
        elif field.kind is FieldKind.OPERANDS:
            yield from value


def blocks(op: Op) -> Iterator[Block]:
    """The op's regions, in order."""
    for field in op_fields(type(op)):
        value = getattr(op, field.name)
        if field.kind is FieldKind.BLOCK:
            yield value
        elif field.kind is FieldKind.BLOCKS:
            yield from value


def walk_ops(block: Block) -> Iterator[Op]:
    """All ops of the block and of the regions inside it, in program order, parents first."""
    for op in block.ops:
        yield op
        for inner in blocks(op):
            yield from walk_ops(inner)


def free_values(op: Op) -> dict[Value, None]:
    """Values that the op reads and that are not made inside it, in order of first use: operands and what its regions capture."""
    used: dict[Value, None] = {}
    made: set[Value] = set()

    def visit(o: Op) -> None:
        for operand in operands(o):
            if isinstance(operand, Value) and operand not in made:
                used.setdefault(operand)
        for block in blocks(o):
            made.update(block.args)
            for inner in block.ops:
                visit(inner)
                made.update(inner.results)

    visit(op)
    return used
