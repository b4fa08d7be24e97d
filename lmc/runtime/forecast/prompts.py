"""Prompts before a run: the tokens that are certain, and what stands between them.

    parts   [<|im_start|>] [user \\n Rate : ␣ …] Written(≤ 80) [. \\n]        closed: no later text changes them
    open    "assistant\\n" template | "Sure: " author                        the open segment, as pieces of text

It follows `context.py` step by step, on the same template and tokenizer.  A segment all of whose text is known has exactly the
tokens that it will have in the run.  One with an unknown value in it has not: its known pieces are tokenised alone, and their
tokens count as about right.  What a generation writes is a `Written`; an unknown value in text is its `Unknown`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lmc.diagnostics import Span
from lmc.runtime.context import RAW, Context, ContextError, Prompter
from lmc.runtime.forecast.values import Piece, Unknown
from lmc.runtime.vocabulary import TextError
from lmc.types import STR


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """The tokens of one generation or choice; `most` is None where nothing bounds them."""

    fewest: int
    most: int | None
    span: Span | None


#: A token id, or a value or generation that stands for any number of them.
Unit = int | Unknown | Written


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """A closed stretch of text, or control tokens.  varying: how many of its tokens may differ from run to run or branch to branch;
    exact: whether its tokens are those of the run."""

    units: tuple[Unit, ...]
    pieces: tuple[Piece, ...]
    varying: int
    exact: bool

    @property
    def tokens(self) -> int:
        return sum(isinstance(unit, int) for unit in self.units)


Part = Segment | Written


@dataclass(frozen=True, slots=True, eq=False)
class Foreseen:
    """A context.  template: how many of the open pieces are not the author's; role: whose turn is open; sure: whether `role` is."""

    parts: tuple[Part, ...] = ()
    open: tuple[Piece, ...] = ()
    template: int = 0
    role: str | None = None
    sure: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class ForeseenPrompt:
    """What a call reads.  options: of a choice, the tokens that each option adds; None where they are not known."""

    parts: tuple[Part, ...]
    options: tuple[int, ...] | None = ()

    @property
    def units(self) -> tuple[Unit, ...]:
        return tuple(unit for part in self.parts for unit in (part.units if isinstance(part, Segment) else (part,)))


class Foreseer:
    """The operations of `Prompter` on contexts that are not all known."""

    def __init__(self, tokenizer: Any, template: Any):
        self._tokenizer = tokenizer
        self._prompter = Prompter(tokenizer, template)
        self.has_template = template is not None
        # Branches and rounds say the same thing again and again.
        self._encoded: dict[tuple[str, bool], tuple[int, ...]] = {}

    def append(self, context: Foreseen, role: str, pieces: tuple[Piece, ...]) -> Foreseen:
        """The context with text in a turn of `role`.  Raises ContextError where such a turn cannot stand."""
        if not pieces:
            return context
        opened = self._opened(context, role)
        return replace(opened, open=(*opened.open, *pieces))

    def prompt(self, context: Foreseen, role: str, *, heal: bool) -> ForeseenPrompt:
        """What a generation in a turn of `role` reads.  Raises ContextError as `Prompter.prompt`."""
        opened = self._opened(context, role)
        if not all(piece.text is not None for piece in opened.open):
            return ForeseenPrompt(self._closed(opened))
        start, text, author = self._known_end(opened)
        ids = self._prompter.prompt(Context(start, text, author, role), role, heal=heal).ids[len(start):]
        return ForeseenPrompt(self._with(opened, ids))

    def option_prompt(self, context: Foreseen, role: str, options: Sequence[str] | None) -> ForeseenPrompt:
        """What a choice reads: the tokens that all options share.  Raises ContextError as `Prompter.option_prompts`."""
        opened = self._opened(context, role)
        if options is None or not all(piece.text is not None for piece in opened.open):
            sizes = tuple(len(self._encode(option, False)) for option in options) if options is not None else None
            return ForeseenPrompt(self._closed(opened), sizes)
        start, text, author = self._known_end(opened)
        found = self._prompter.option_prompts(Context(start, text, author, role), role, options, heal=True)
        return ForeseenPrompt(self._with(opened, found.prefix[len(start):]), tuple(len(ids) - found.start for ids in found.options))

    def extend(self, role: str, prompt: ForeseenPrompt, written: Written, *, cut: bool) -> Foreseen:
        """The context after a call.  cut: whether a stop string may cut a token, whose rest opens the next segment."""
        rest = Unknown(STR, written.span)
        carry = (Piece(None, True, written.span, "what a cut token leaves", rest),) if cut else ()
        return Foreseen((*prompt.parts, written), carry, len(carry), role)

    def either(self, first: Foreseen, second: Foreseen) -> Foreseen:
        """A context that is one of two: what both begin with, and then nothing certain."""
        if first is second:
            return first
        parts: list[Part] = []
        for one, other in zip(first.parts, second.parts):
            shared = _either_part(one, other)
            if shared is None:
                break
            parts.append(shared)
        whole = len(parts) == len(first.parts) == len(second.parts)
        open = _common(first.open, second.open) if whole else ()
        same = whole and len(open) == len(first.open) == len(second.open)
        gap = () if same else (_gap("one of several texts"),)
        return Foreseen(tuple(parts), (*open, *gap), min(first.template, len(open)), first.role,
                        first.sure and second.sure and first.role == second.role)

    def after_unknown(self, before: Foreseen | None) -> Foreseen:
        """A context that goes on from `before` in a way that is not known."""
        context = before or Foreseen()
        return replace(context, open=(*context.open, _gap("what is not gone through")), sure=False)

    def _opened(self, context: Foreseen, role: str) -> Foreseen:
        if not context.sure:
            # Whether a marker stands here, and which, only the run knows.
            open = (*context.open, _gap("what stands between two turns"))
            return replace(context, open=open, template=len(open), role=role, sure=True)
        marker = self._prompter.marker(context.role, role)
        parts, open = context.parts, context.open
        for piece in marker:
            if isinstance(piece, str):
                open = (*open, Piece(piece, False, None))
            else:
                parts = (*self._closed(replace(context, parts=parts, open=open)), Segment((piece,), (), 0, exact=True))
                open = ()
        template = len(open) if marker else context.template
        return Foreseen(parts, open, template, role)

    def _closed(self, context: Foreseen) -> tuple[Part, ...]:
        """The parts with the open segment behind them."""
        if not context.open:
            return context.parts
        if all(piece.text is not None for piece in context.open):
            return self._with(context, self._encode("".join(p.text or "" for p in context.open), self._at_start(context)))
        units: list[Unit] = []
        varying, run = 0, ""
        for piece in (*context.open, None):
            if piece is not None and piece.text is not None:
                run += piece.text
                continue
            units += self._encode(run, False) if run else ()
            run = ""
            if piece is not None and piece.unknown is not None:
                units.append(piece.unknown)
        share = sum(len(p.text or "") for p in context.open if p.varying) / max(1, sum(len(p.text or "") for p in context.open))
        varying = round(share * sum(isinstance(unit, int) for unit in units))
        return (*context.parts, Segment(tuple(units), context.open, varying, exact=False))

    def _with(self, context: Foreseen, ids: Sequence[int]) -> tuple[Part, ...]:
        """The parts, and these tokens of the open segment, all of whose text is known."""
        if not ids:
            return context.parts
        varying = self._varying(context.open, ids)
        return (*context.parts, Segment(tuple(ids), context.open, varying, exact=True))

    def _varying(self, pieces: Sequence[Piece], ids: Sequence[int]) -> int:
        """How many of the tokens have a byte of a piece that varies."""
        if not any(piece.varying for piece in pieces):
            return 0
        marks = b"".join((b"1" if p.varying else b"0") * len((p.text or "").encode()) for p in pieces)
        place, count = 0, 0
        for id in ids:
            end = place + len(self._tokenizer.token_bytes[id])
            count += b"1" in marks[place:end]
            place = end
        return count

    def _known_end(self, opened: Foreseen) -> tuple[tuple[int, ...], str, int]:
        """What `Context` needs for the open segment alone: ids that stand for all before it, its text, the author's characters."""
        text = "".join(piece.text or "" for piece in opened.open)
        author = sum(len(piece.text or "") for piece in opened.open[opened.template:])
        begun = () if self._tokenizer.bos_id is None else (self._tokenizer.bos_id,)
        if not opened.parts or self._at_start(opened):
            return begun if opened.parts else (), text, author
        # Any two tokens: that something stands before the segment is all that matters.
        return (0, 0), text, author

    def _at_start(self, context: Foreseen) -> bool:
        """Whether the open segment is the first of a raw text, where some tokenizers expect a space."""
        if context.role != RAW:
            return False
        begun = () if self._tokenizer.bos_id is None else (self._tokenizer.bos_id,)
        return ForeseenPrompt(context.parts).units == begun

    def _encode(self, text: str, at_start: bool) -> tuple[int, ...]:
        key = (text, at_start)
        if key not in self._encoded:
            try:
                self._encoded[key] = tuple(self._tokenizer.encode(text, at_start=at_start))
            except TextError as error:
                raise ContextError(f"the text cannot be given to this model: {error}") from error
        return self._encoded[key]


def _gap(source: str) -> Piece:
    """Text, and maybe turns and generations, of which nothing is known."""
    return Piece(None, True, None, source, Unknown(STR, None))


def _either_part(one: Part, other: Part) -> Part | None:
    """What both parts are, if they are the same or two generations of the same place in a conversation."""
    if one is other:
        return one
    if isinstance(one, Written) and isinstance(other, Written):
        most = None if one.most is None or other.most is None else max(one.most, other.most)
        return Written(min(one.fewest, other.fewest), most, one.span)
    if isinstance(one, Segment) and isinstance(other, Segment) and one.exact == other.exact:
        if one.exact:
            return one if one.units == other.units else None
        pieces = _common(one.pieces, other.pieces)
        if len(pieces) == len(one.pieces) == len(other.pieces):
            unknown = iter(piece.unknown for piece in pieces if piece.unknown is not None)
            units = tuple(unit if isinstance(unit, int) else next(unknown) for unit in one.units)
            return replace(one, units=units, pieces=pieces)
    return None


def _common(first: tuple[Piece, ...], second: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """The pieces that both begin with; two unknown ones are a third."""
    found: list[Piece] = []
    for a, b in zip(first, second):
        if a.same(b):
            found.append(a)
        elif a.unknown is not None and b.unknown is not None:
            found.append(replace(a, unknown=Unknown(a.unknown.type, a.span)))
        else:
            break
    return tuple(found)
