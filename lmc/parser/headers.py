"""What the first line of an item that cannot be read still declares, so that uses of it are no mistakes of their own.

    def late(n: int) -> int            def, late
    class Note:                        class, Note
    from "x.lmp" import A, b as c d    import, A c d

It reads masked text: strings are one filler each, and a line ends where the logical line ends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lmc.parser import words


@dataclass(frozen=True, slots=True)
class Header:
    """kind: the word that says what the item is, `constant` for `NAME = …`; names: what it declares, each with its offset."""

    kind: str
    names: tuple[tuple[str, int], ...]


_NAME = r"[^\W\d]\w*"
#: `def f`, `pure extern def f`, `async def f`, `type T`.
_KEYWORD = re.compile(rf"(?:{_NAME} +)*?(?P<kind>extern|def|part|type) +(?:def +)?(?P<name>{_NAME})")
#: What other languages write in their place, or a slip of the pen: `class T:`, `fn f(`, `let x =`, `dfe f(`.
_FOREIGN = re.compile(rf"(?P<kind>{_NAME}) +(?P<name>{_NAME}) *(?:[(:=]|$)")
_CONSTANT = re.compile(rf"{_NAME}(?: *, *{_NAME})* *(?=[:=])")
_IMPORT = re.compile(r"(?:import|from)\b")
#: These begin a statement and declare nothing at the top level.
_STATEMENTS = (words.KEYWORDS | words.ROLES | words.PYTHON_KEYWORDS) - {"def", "class"}


def read_header(masked: str) -> Header:
    """What `masked`, an item, says of itself in its first line."""
    line = masked.partition("\n")[0]
    if _IMPORT.match(line):
        return Header("import", _kept(_imported(line)))
    found = _KEYWORD.match(line) or _FOREIGN.match(line)
    if found and found["kind"] not in _STATEMENTS:
        return Header(found["kind"], _kept([(found["name"], found.start("name"))]))
    found = _CONSTANT.match(line)
    if found:
        return Header("constant", _kept([(m[0], m.start()) for m in re.finditer(_NAME, found[0])]))
    word = re.match(r"\w*", line)
    return Header(word[0] if word else "", ())


def _imported(line: str) -> list[tuple[str, int]]:
    """`import "x" as y` gives y, `from "x" import A, b as c` gives A and c; where words are too many, all of them."""
    start = line.find(" import ") + len(" import ") if line.startswith("from") else len("import")
    names = []
    for piece in re.finditer(r"[^,]+", line[start:]):
        said = [(m[0], start + piece.start() + m.start()) for m in re.finditer(_NAME, re.sub(r'"[^"]*"', _blank, piece[0]))]
        at = next((i for i, (word, _) in enumerate(said) if word == "as"), -1)
        names += said[at + 1 :]
    return names


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])


def _kept(names: list[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    return tuple((name, at) for name, at in names if words.reserved(name) is None and name not in ("at", "of"))
