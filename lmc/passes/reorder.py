"""On request only, since it changes prompts: lines of a turn that no round changes go before those that vary.

Before:

    func @f(%document: str, %questions: list<str>) -> list<str> {
      %answers: list<str> = lm.map(%questions)[site = "0"] {
      ^(%q: str):
        %c: context = context.new()
        %text: str = text.concat("Question: ", %q, "\\nAnswer from this: ", %document)
        %c_1: context = context.append(%c, %text)[role = user]
        %c_2: context, %a: str = lm.gen(%c_1)[role = assistant, site = "0"]
        control.yield(%a)
      }
      control.return(%answers)
    }

After:

    func @f(%document: str, %questions: list<str>) -> list<str> {
      %answers: list<str> = lm.map(%questions)[site = "0"] {
      ^(%q: str):
        %c: context = context.new()
        %text: str = text.concat("Question: ", %q, "\\nAnswer from this: ", %document)
        %text_1: str = text.concat("Answer from this: ", %document, "\\nQuestion: ", %q)
        %c_1: context = context.append(%c, %text_1)[role = user]
        %c_2: context, %a: str = lm.gen(%c_1)[role = assistant, site = "0"]
        control.yield(%a)
      }
      control.return(%answers)
    }

Near miss, which does not change: a line is never taken apart, and texts of the assistant and raw texts stay as they are.

    func @f(%document: str, %questions: list<str>) -> list<str> {
      %answers: list<str> = lm.map(%questions)[site = "0"] {
      ^(%q: str):
        %c: context = context.new()
        %text: str = text.concat("Question: ", %q, ", to be answered from this: ", %document)
        %c_1: context = context.append(%c, %text)[role = user]
        %c_2: context, %a: str = lm.gen(%c_1)[role = assistant, site = "0"]
        control.yield(%a)
      }
      control.return(%answers)
    }

With `--reorder` it runs behind `merge_text`, which puts a turn's text together, and before `hoist_prefix`, which makes use of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lmc.diagnostics import Diagnostic, Severity
from lmc.ir.builder import literal, rebuild
from lmc.ir.core import Block, Literal, Module, Op, Operand, Value, walk_ops
from lmc.ir.ops import ContextAppend, For, Fork, Map, Role, While
from lmc.passes.rewriting import Rewritten, rewrite_function, rewrite_module
from lmc.passes.text_pieces import Pieces, joined, pieces_of, worth_sharing, written

_Line = tuple[Operand, ...]


def reorder(module: Module) -> Module:
    """The module with such lines moved."""
    found = {move.append: move for move in _moves(module)}

    def rewrite(op: Op) -> Rewritten:
        if op not in found:
            return [op], {}
        text, ops = written(found[op].pieces, op.span)
        return [*ops, rebuild(op, text=text)], {}

    return rewrite_module(module, lambda function: rewrite_function(function, rewrite))


def moved_lines(module: Module) -> tuple[Diagnostic, ...]:
    """What `reorder` would move, with the places of the texts."""
    return tuple(
        Diagnostic("W183", f"moved before the lines that vary: {_quoted(line)}", move.append.span, label="in this text",
                   severity=Severity.WARNING)
        for move in _moves(module) for line in move.lines
    )


@dataclass(frozen=True, slots=True)
class _Move:
    """Of one append: its text in the new order, and the lines that have been moved."""

    append: ContextAppend
    pieces: Pieces
    lines: tuple[_Line, ...]


def _moves(module: Module) -> Iterator[_Move]:
    for function in module.functions:
        made = {r: op for op in walk_ops(function.body) for r in op.results}
        for op in walk_ops(function.body):
            if isinstance(op, (Map, Fork, For, While)):
                yield from _in_round(op.body, made)


def _in_round(body: Block, made: dict[Value, Op]) -> Iterator[_Move]:
    """Of the appends that stand in the round itself: those in an inner loop are that loop's."""
    varies = {*body.args, *(r for op in body.ops for r in op.results)}
    for op in body.ops:
        if isinstance(op, ContextAppend) and op.role in (Role.USER, Role.SYSTEM):
            move = _moved(op, pieces_of(op.text, made), varies)
            if move is not None:
                yield move


def _moved(append: ContextAppend, pieces: Pieces, varies: set[Value]) -> _Move | None:
    lines = _lines(pieces)
    kinds = [any(piece in varies for piece in line) for line in lines]
    if True not in kinds:
        return None
    late = [line for line, kind in zip(lines[kinds.index(True):], kinds[kinds.index(True):]) if not kind]
    if not any(worth_sharing(line) for line in late):
        return None
    steady = [line for line, kind in zip(lines, kinds) if not kind]
    ordered = [*steady, *(line for line, kind in zip(lines, kinds) if kind)]
    ordered = [line if i == len(ordered) - 1 else (*line, literal("\n")) for i, line in enumerate(ordered)]
    return _Move(append, joined(piece for line in ordered for piece in line), tuple(late))


def _lines(pieces: Pieces) -> list[_Line]:
    """The text line by line, without the newlines between; empty lines belong to the line before them."""
    lines: list[list[Operand]] = [[]]
    for piece in pieces:
        if not isinstance(piece, Literal):
            lines[-1].append(piece)
            continue
        first, *more = piece.value.split("\n")
        lines[-1].append(literal(first))
        lines += [[literal(text)] for text in more]
    whole: list[_Line] = []
    for line in map(joined, lines):
        if line or not whole:
            whole.append(line)
        else:
            whole[-1] = joined((*whole[-1], literal("\n")))
    return whole


def _quoted(line: _Line) -> str:
    text = "".join(piece.value if isinstance(piece, Literal) else f"${{{piece.name}}}" for piece in line).strip("\n")
    return f'"{text if len(text) <= 80 else text[:77] + "…"}"'
