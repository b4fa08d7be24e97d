"""Contexts: what a conversation has become so far, as an immutable value, and the prompts that are made from it.

    ids      <|im_start|> "user" "\\n" "Name" " one" "." <|im_end|> "\\n" <|im_start|>     final: no later text changes them
    text     "assistant\\n" "Sure: it is "                             the open segment, tokenised as a whole
              \\ template /   \\- author --/                             of it only the author's part may be reopened

All ordinary text between two control tokens or generated pieces is one segment; control tokens come from the chat template alone.
Forks share a context by holding it.  This file knows no requests, no engine and no sampling.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lmc.runtime.template import ChatTemplate, Marker
from lmc.runtime.vocabulary import TextError

if TYPE_CHECKING:
    from lmc.runtime.tokenizer import Tokenizer

RAW = "raw"
#: Where a word ends and another one follows behind a single space: pre-tokenisers cut there.
_WORD_ENDS = re.compile(r"\S(?= \S)")


class ContextError(Exception):
    """The text or turn cannot be put here; the message says why.  Whoever knows the place in the program adds it."""


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Context:
    """ids: final tokens; text: the open segment, not tokenised yet; author: how many characters at the end of `text` the author
    wrote (before them stand the template's text and the carry of a cut token); role: whose turn is open, None at the
    beginning; written: where in `ids` generations stand, as (start, end), ascending; fault: why there is no such context, raised by
    all that goes on from it."""

    ids: tuple[int, ...] = ()
    text: str = ""
    author: int = 0
    role: str | None = None
    written: tuple[tuple[int, int], ...] = ()
    fault: Exception | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    """ids: what the model reads; heal: bytes of the author's last tokens, taken off the end, which the first tokens must spell
    again."""

    ids: tuple[int, ...]
    heal: bytes


@dataclass(frozen=True, slots=True)
class OptionPrompts:
    """prefix: ids that all options share; options: each option's ids, the prefix included; start: where what is scored begins.

    `start` is 0 where nothing at all stands before the options.
    """

    prefix: tuple[int, ...]
    options: tuple[tuple[int, ...], ...]
    start: int


class Prompter:
    """The operations on contexts of one model.  It has no state: all of them are in the contexts."""

    __slots__ = ("_tokenizer", "_template")

    def __init__(self, tokenizer: Tokenizer, template: ChatTemplate | None):
        self._tokenizer = tokenizer
        self._template = template

    def new(self) -> Context:
        """The empty context."""
        return Context()

    def open(self, context: Context, role: str) -> Context:
        """The context with a turn of `role` open, which may stay without text.  Raises ContextError where it cannot stand."""
        return self._open(context, role)

    def append(self, context: Context, role: str, text: str) -> Context:
        """The context with the author's text in a turn of `role` ("system", "user", "assistant" or "raw").

        Raises ContextError where such a turn cannot stand.
        """
        if not text:
            return context
        opened = self._open(context, role)
        return Context(opened.ids, opened.text + text, opened.author + len(text), opened.role, opened.written)

    def prompt(self, context: Context, role: str, *, heal: bool) -> Prompt:
        """What a generation in a turn of `role` reads.  Raises ContextError if there is nothing to read."""
        opened = self._open(context, role)
        ids = self._segment(opened.role, opened.ids, opened.text)
        kept = len(ids) - (self._reopened(opened, ids) if heal and not self._tokenizer.lossy else 0)
        if not opened.ids and not ids:
            raise ContextError("nothing stands before the generation, and this model has no begin token; write some text first")
        return Prompt(opened.ids + tuple(ids[:kept]), self._tokenizer.decode_bytes(ids[kept:]))

    def extend(self, context: Context, role: str, prompt: Prompt, generated_ids: Sequence[int], carry: str) -> Context:
        """The context after a generation: its tokens stay as they are, and `carry` opens the next segment."""
        ids = prompt.ids + tuple(generated_ids)
        return Context(ids, carry, 0, role, (*context.written, (len(prompt.ids), len(ids))))

    def certain(self, context: Context) -> tuple[int, ...]:
        """The tokens that every continuation of the context begins with, as far as that is easily known: the final ones, and those of
        the open segment before its last word, which more text may change."""
        cut = max((found.end() for found in _WORD_ENDS.finditer(context.text)), default=0)
        if not cut or self._tokenizer.lossy or context.fault is not None:
            return context.ids
        try:
            head, whole = self._segment(context.role, context.ids, context.text[:cut]), self._segment(context.role, context.ids, context.text)
        except ContextError:
            return context.ids
        return context.ids + tuple(head[: _common_prefix([head, whole])])

    def option_prompts(self, context: Context, role: str, options: Sequence[str], *, heal: bool) -> OptionPrompts:
        """What `select` and `score` compare.  Each option is tokenised together with the open segment, and what is scored begins
        where the segment alone and all options part; without `heal` the segment's own tokens stay as they are.

        Raises ContextError where such a turn cannot stand, or the tokenizer changes text.
        """
        if self._tokenizer.lossy:
            raise ContextError("this model's tokenizer changes text, so the probability of an option is not defined")
        opened = self._open(context, role)
        alone = self._segment(opened.role, opened.ids, opened.text)
        if heal:
            tails = [self._segment(opened.role, opened.ids, opened.text + option) for option in options]
            start = _common_prefix([alone, *tails])
        else:
            tails = [alone + self._encode(option) for option in options]
            start = len(alone)
        prefix = opened.ids + tuple(alone[:start])
        return OptionPrompts(prefix, tuple(prefix + tuple(tail[start:]) for tail in tails), len(prefix))

    def render(self, context: Context) -> str:
        """The whole text as the model reads it, for people; control tokens are spelled out."""
        control, data = self._tokenizer.control_ids, self._tokenizer.token_bytes
        pieces = [self._tokenizer.control_text(i).encode() if i in control else data[i] for i in context.ids]
        return b"".join(pieces).decode("utf-8", "replace") + context.text

    def marker(self, before: str | None, role: str) -> Marker:
        """What stands between a turn of `before` (None: the beginning) and one of `role`.

        Raises ContextError where such a turn cannot stand.
        """
        if role == before:
            return ()
        if RAW in (role, before):
            return self._raw_marker(before)
        if self._template is None:
            raise ContextError(f"`{role}:` needs a chat template, and this model has none")
        if before is None:
            marker = self._template.start.get(role)
        elif role == "system":
            raise ContextError(f"`system:` must come first, but a turn of the {before} stands before it")
        else:
            marker = self._template.between.get((before, role))
        if marker is None:
            place = f"after a turn of the {before}" if before else "at the beginning of a conversation"
            raise ContextError(f"this model's chat template has no `{role}:` turn {place}")
        return marker

    def _raw_marker(self, before: str | None) -> Marker:
        if before is not None:
            raise ContextError("`raw:` text and chat turns cannot stand in one conversation")
        bos = self._tokenizer.bos_id
        return () if bos is None else (bos,)

    def _open(self, context: Context, role: str) -> Context:
        if context.fault is not None:
            raise context.fault
        if role == context.role:
            return context
        ids, text, author = self._marked(context, self.marker(context.role, role))
        return Context(ids, text, author, role, context.written)

    def _marked(self, context: Context, marker: Marker) -> tuple[tuple[int, ...], str, int]:
        """`ids`, `text` and `author` behind a marker."""
        # The template's ordinary text belongs to the segment that it touches; a control token closes the segment.
        ids, text, author = context.ids, context.text, context.author
        for piece in marker:
            if isinstance(piece, str):
                text, author = text + piece, 0
            else:
                ids, text, author = ids + tuple(self._segment(context.role, ids, text)) + (piece,), "", 0
        return ids, text, author

    def _segment(self, role: str | None, ids: tuple[int, ...], text: str) -> list[int]:
        """The tokens of a segment in a turn of `role`, behind `ids`."""
        # Only a raw text's first segment stands where SentencePiece models expect a space before it.
        begun = () if self._tokenizer.bos_id is None else (self._tokenizer.bos_id,)
        return self._encode(text, at_start=role == RAW and ids == begun)

    def _encode(self, text: str, *, at_start: bool = False) -> list[int]:
        try:
            return self._tokenizer.encode(text, at_start=at_start)
        except TextError as error:
            raise ContextError(f"the text cannot be given to this model: {error}") from error

    def _reopened(self, context: Context, ids: list[int]) -> int:
        """How many tokens at the end of the segment are reopened: the longest run of whole tokens of the author's text whose
        bytes begin a longer token of the vocabulary.  At least one token of the prompt stays, and no character is taken apart:
        where a generation is cut, the rest of its bytes must be text."""
        author = len(context.text[len(context.text) - context.author :].encode())
        data, found = b"", 0
        for count in range(1, len(ids) + bool(context.ids)):
            data = self._tokenizer.token_bytes[ids[-count]] + data
            if len(data) > author or len(data) >= self._tokenizer.longest_token:
                break
            if data[0] & 0xC0 != 0x80 and self._tokenizer.begins_longer_token(data):
                found = count
        return found


def _common_prefix(rows: list[list[int]]) -> int:
    # Only the first and the last in order need to be compared: what they share, all between them share.
    low, high = min(rows), max(rows)
    return next((i for i, (a, b) in enumerate(zip(low, high)) if a != b), min(len(low), len(high)))
