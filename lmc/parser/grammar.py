"""The LALR parser made from `lmp.lark`, built once, on first use.

    parse_tree(masked_item, "item")     one top-level item
    parse_tree(masked_hole, "hole")     what stands in `${…}`

It reads text that `layout.py` has masked.  This file does not know what the trees mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from lark import Lark, Token, Tree
from lark.lark import PostLex


def parse_tree(masked: str, start: str) -> Tree:
    """The tree of `masked`; raises `lark.UnexpectedInput`.  Places in it count from the start of `masked`."""
    return _parser().parse(masked, start=start)


def build_parser(*, strict: bool) -> Lark:
    """A fresh parser.  `strict` refuses a grammar with conflicts and terminals that collide; tests ask for it."""
    text = files("lmc.parser").joinpath("lmp.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", lexer="contextual", postlex=_Indents(), start=["item", "hole"], strict=strict,
                maybe_placeholders=False, propagate_positions=False)


@cache
def _parser() -> Lark:
    return build_parser(strict=False)


class _Indents(PostLex):
    """Adds `_INDENT` and `_DEDENT` after line breaks.  Brackets are no concern here: the layout left no line break in them."""

    always_accept = ("_NL",)

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        levels = [0]
        token = None
        for token in stream:
            yield token
            if token.type != "_NL":
                continue
            width = len(token) - 1 - token.rfind("\n")
            if width > levels[-1]:
                levels.append(width)
                yield Token.new_borrow_pos("_INDENT", "", token)
            while width < levels[-1]:
                levels.pop()
                yield Token.new_borrow_pos("_DEDENT", "", token)
        for _ in levels[1:]:
            yield Token.new_borrow_pos("_DEDENT", "", token)
