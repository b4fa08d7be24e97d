"""The LALR parser of `lmp.lark`, made once, on first use.

    parse_tree(masked_item, "item")     one top-level item
    parse_tree(masked_hole, "hole")     what stands in `${…}`

It reads text that `layout.py` has masked.  Making the parse table from the grammar takes 0.3 s, reading it from `lmp.tables.json`
0.01 s; the table is used only where it was made from this very grammar by this very version of Lark, and a test keeps it current.
This file does not know what the trees mean.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import lark
from lark import Lark, Token, Tree
from lark.grammar import Rule
from lark.lark import PostLex
from lark.lexer import TerminalDef


def parse_tree(masked: str, start: str) -> Tree:
    """The tree of `masked`; raises `lark.UnexpectedInput`.  Places in it count from the start of `masked`."""
    return _parser().parse(masked, start=start)


def parse_tokens(masked: str) -> list[Token]:
    """The tokens of one item that parses, with `_NL`, `_INDENT` and `_DEDENT`; a keyword has its own type where it is one."""
    return list(_parser().parse_interactive(masked, start="item").iter_parse())


def build_parser(*, strict: bool) -> Lark:
    """A parser made from the grammar.  `strict` refuses conflicts and terminals that collide; tests ask for it."""
    return Lark(_grammar(), parser="lalr", lexer="contextual", postlex=_Indents(), start=["item", "hole"], strict=strict,
                maybe_placeholders=False, propagate_positions=False)


def table_text() -> str:
    """What `lmp.tables.json` must hold for the grammar as it is now."""
    data, memo = build_parser(strict=False).memo_serialize([TerminalDef, Rule])
    data["options"] = {name: value for name, value in data["options"].items() if name not in ("postlex", "strict")}
    return json.dumps({"made_from": _made_from(), "data": data, "memo": memo}, separators=(",", ":")) + "\n"


def stored_tables() -> dict[str, Any] | None:
    """What `lmp.tables.json` holds, where it was made from this grammar by this Lark."""
    stored = files("lmc.parser").joinpath("lmp.tables.json")
    if not stored.is_file():
        return None
    tables = json.loads(stored.read_text(encoding="utf-8"))
    return tables if tables["made_from"] == _made_from() else None


@cache
def _parser() -> Lark:
    tables = stored_tables()
    return _from_tables(tables) if tables else build_parser(strict=False)


def _from_tables(tables: dict[str, Any]) -> Lark:
    """JSON has turned the integer keys into text; Lark wants them back."""
    data = tables["data"]
    table = data["parser"]["parser"]
    table["tokens"] = _integer_keys(table["tokens"])
    table["states"] = {int(state): _integer_keys(actions) for state, actions in table["states"].items()}
    return Lark._load_from_dict(data, _integer_keys(tables["memo"]), postlex=_Indents())


def _integer_keys(table: dict[str, Any]) -> dict[int, Any]:
    return {int(key): value for key, value in table.items()}


def _grammar() -> str:
    return files("lmc.parser").joinpath("lmp.lark").read_text(encoding="utf-8")


def _made_from() -> str:
    return hashlib.sha256(f"{lark.__version__}\n{_grammar()}".encode()).hexdigest()


class _Indents(PostLex):
    """Adds `_INDENT` and `_DEDENT` after line breaks.  Brackets are no concern here: the layout left no line break in them."""

    always_accept = ("_NL",)

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        levels = [0]
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
