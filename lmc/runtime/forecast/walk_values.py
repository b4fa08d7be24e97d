"""Instructions of a walk that compute values, build contexts and end blocks.

    pure.call len(("a", Unknown))                        2: only the length is asked
    pure.call majority(("a", Unknown))                   unknown
    pure.call bullets(("a", Unknown))                    the text "- a\\n- ", and then what is not known

What fails in every run fails here, with the error that the run would give.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from lmc.backend.program import Instruction, Register
from lmc.pure import PureError, call_pure
from lmc.runtime.context import ContextError
from lmc.runtime.failures import failure, pure_failure
from lmc.runtime.forecast.either import either_value
from lmc.runtime.forecast.prompts import Foreseen
from lmc.runtime.forecast.values import Cell, Piece, Text, Unknown, known, pieces_of, plain
from lmc.runtime.forecast.walk import Done, Frame, Walk
from lmc.runtime.frames import Exit
from lmc.types import STR, ContextT, ListT
from lmc.values import Record, from_data, text_of

# Functions that only move elements, or count them: they do not look into what they move.
_MOVE = {"len", "enumerate", "zip", "flatten", "index", "slice", "add", "keys", "values", "items"}


def context_new(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    return _give(frame, instruction, begin, Foreseen())


def context_append(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    context = frame.operand(instruction, "context").value
    pieces = pieces_of(frame.operand(instruction, "text"), instruction.span)
    try:
        after = walk.foreseer.append(context, instruction.attributes["role"], pieces)
    except ContextError as error:
        raise failure("E0840", str(error), instruction.span, kind="value") from None
    return _give(frame, instruction, begin, after)


def const(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    return _give(frame, instruction, begin, from_data(json.loads(instruction.attributes["value"]), instruction.types[0]))


def text_concat(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    pieces = tuple(_joined(_pieces(walk, frame, instruction)))
    frame.write(instruction, (Cell(Text(pieces), any(p.varying for p in pieces), begin),))
    return Done(begin)


def record_make(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    cells = frame.operands(instruction, "values")
    return _give(frame, instruction, begin, Record(instruction.types[0], _plain(cells)), _vary(cells))


def record_get(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    cell = frame.operand(instruction, "record")
    value = cell.value
    found = value.get(instruction.attributes["field"]) if isinstance(value, Record) else _unknown(instruction, value)
    return _give(frame, instruction, begin, found, cell.varying)


def union_is(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    cell = frame.operand(instruction, "value")
    if isinstance(cell.value, Unknown):
        return _give(frame, instruction, begin, _unknown(instruction, cell.value), varying=True)
    found = isinstance(cell.value, Record) and cell.value.type.name == instruction.attributes["member"]
    return _give(frame, instruction, begin, found, cell.varying)


def list_make(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    cells = frame.operands(instruction, "elements")
    return _give(frame, instruction, begin, _plain(cells), _vary(cells))


def tuple_get(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    cell = frame.operand(instruction, "value")
    known_tuple = isinstance(cell.value, tuple)
    value = cell.value[instruction.attributes["index"]] if known_tuple else _unknown(instruction, cell.value)
    return _give(frame, instruction, begin, value, cell.varying)


def dict_make(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    cells = frame.operands(instruction, "entries")
    keys, values = _plain(cells[::2]), _plain(cells[1::2])
    found = dict(zip(keys, values)) if known(keys) else _unknown(instruction, None)
    return _give(frame, instruction, begin, found, _vary(cells))


def pure_call(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    name, cells = instruction.attributes["function"], frame.operands(instruction, "args")
    args = _plain(cells)
    result = instruction.types[0] if instruction.types else None
    if known(args) or _only_moves(name, args):
        try:
            value = call_pure(name, args, result, walk.named)
        except PureError as error:
            raise pure_failure(error, instruction.span) from None
        return _give(frame, instruction, begin, value, _vary(cells))
    walk.doubts += 1
    return _give(frame, instruction, begin, _partly_known(walk, name, args, instruction), varying=True)


def _only_moves(name: str, args: tuple[Any, ...]) -> bool:
    """Whether the result is known as far as the arguments are."""
    inside = args[0] if name == "flatten" and isinstance(args[0], tuple) else ()
    return name in _MOVE and not any(isinstance(arg, Unknown) for arg in (*args, *inside))


def _partly_known(walk: Walk, name: str, args: tuple[Any, ...], instruction: Instruction) -> Any:
    """What is known of a function's result where its arguments are not all known."""
    first = args[0] if args else None
    if name == "top" and isinstance(first, tuple) and known(args[2]) and first:
        # Each is one of the candidates, and each another one.
        return tuple(_one_of(walk, first) for _ in range(min(max(args[2], 0), len(first))))
    if name in ("bullets", "lines") and isinstance(first, tuple):
        mark = "- " if name == "bullets" else ""
        gaps = ((Piece(mark, True, None),) * bool(mark) + pieces_of(Cell(item, True), instruction.span) for item in first)
        return Text(tuple(_joined(_between(gaps, "\n"))))
    if name == "flatten" and isinstance(first, tuple):
        bounds = [inner.lengths if isinstance(inner, Unknown) else (len(inner), len(inner)) for inner in first]
        most = None if any(b is None for _, b in bounds) else sum(b or 0 for _, b in bounds)
        return Unknown(ListT(instruction.types[0].element, sum(a for a, _ in bounds), most), instruction.span)
    if name == "add" and len(args) == 2 and instruction.types and instruction.types[0] == STR:
        return Text(tuple(_joined(piece for arg in args for piece in pieces_of(Cell(arg, True), instruction.span))))
    return _unknown(instruction, first)


def extern_call(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    """An extern is never called before a run, whatever is bound to it."""
    walk.doubts += 1
    return _give(frame, instruction, begin, _unknown(instruction, None), varying=True)


read_input = extern_call


def assertion(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    condition = frame.operand(instruction, "condition").value
    if condition is False:
        raise failure("E0832", "assertion failed", instruction.span, kind="assert")
    walk.doubts += condition is not True
    return Done(begin)


def fail(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    message = plain(frame.operand(instruction, "message").value, STR)
    text = text_of(message) if known(message) else "a message that the run gives"
    raise failure("E0831", text, instruction.span, kind="fail")


def nothing(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    """What changes neither calls nor prompts: `print`, and hints, which say only when work is done."""
    frame.write(instruction, tuple(Cell(_unknown(instruction, None), True, begin) for _ in instruction.outputs))
    return Done(begin)


def leave(how: Exit) -> Any:
    """The handler of a terminator."""

    def run(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
        return Done(begin, {how: frame.operands(instruction, "values")})

    return run


def _one_of(walk: Walk, values: tuple[Any, ...]) -> Any:
    found = values[0]
    for other in values[1:]:
        found = either_value(walk.foreseer, found, other)
    return found


def _pieces(walk: Walk, frame: Frame, instruction: Instruction) -> Iterator[Piece]:
    """The pieces of a string, each with the place of its hole."""
    sources = instruction.inputs["pieces"]
    made = walk.made_in(frame.code)
    inside = [isinstance(s, Register) and _within(made.get(s.index), instruction) for s in sources]
    bare = sum(isinstance(s, Register) and not inner for s, inner in zip(sources, inside))
    names = iter(walk.places.names(instruction.span, bare) or ())
    for source, inner in zip(sources, inside):
        if not isinstance(source, Register):
            yield from pieces_of(Cell(source), instruction.span)
            continue
        span, text = (made[source.index], walk.places.line(made[source.index])) if inner else next(names, (instruction.span, ""))
        yield from pieces_of(frame.read(source), span, f"${{{text}}}" if inner else text)


def _within(span: Any, instruction: Instruction) -> bool:
    """Whether a value is made inside the string, in the hole itself."""
    outer = instruction.span
    if span is None or outer is None or span.file != outer.file or span == outer:
        return False
    start, end = (outer.line, outer.column), (outer.end_line, outer.end_column)
    return start <= (span.line, span.column) and (span.end_line, span.end_column) <= end


def _joined(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Pieces of plain text that stand side by side as one."""
    before: Piece | None = None
    for piece in pieces:
        if before is not None and before.text is not None and piece.text is not None and not before.source and not piece.source \
                and before.varying == piece.varying:
            before = Piece(before.text + piece.text, before.varying, before.span)
            continue
        if before is not None:
            yield before
        before = piece
    if before is not None:
        yield before


def _between(groups: Iterable[tuple[Piece, ...]], text: str) -> Iterator[Piece]:
    for index, group in enumerate(groups):
        if index:
            yield Piece(text, True, None)
        yield from group


def _plain(cells: Iterable[Cell]) -> tuple[Any, ...]:
    return tuple(plain(cell.value, STR) for cell in cells)


def _vary(cells: Iterable[Cell]) -> bool:
    return any(cell.varying for cell in cells)


def _unknown(instruction: Instruction, of: Any) -> Unknown:
    """An unknown result.  What is taken from an unknown value is told by where that one comes from."""
    span = of.span if isinstance(of, Unknown) and of.span is not None else instruction.span
    return Unknown(instruction.types[0] if instruction.types else STR, span)


def _give(frame: Frame, instruction: Instruction, begin: int, value: Any, varying: bool = False) -> Done:
    if instruction.types and isinstance(instruction.types[0], ContextT):
        varying = False
    frame.write(instruction, (Cell(value, varying, begin),))
    return Done(begin)
