"""The built-in functions and methods: their parameters, as data.

    "round": Signature(1, ("x", "digits"))      # one argument needed, two known

What each does with types is in `builtin_calls.py` and `methods.py`; what each computes is in `lmc/pure.py`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Signature:
    """`required` of `names` must be given.  `repeats`: any number of arguments more may follow the last."""

    required: int
    names: tuple[str, ...]
    repeats: bool = False


#: Built-in functions.  `gen`, `select`, `score` and `image` have their own rules (`generation.py`).
BUILTINS: dict[str, Signature] = {
    "len": Signature(1, ("x",)),
    "range": Signature(1, ("start", "stop", "step")),
    "enumerate": Signature(1, ("xs", "start")),
    "zip": Signature(1, ("xs",), repeats=True),
    "min": Signature(1, ("x",), repeats=True),
    "max": Signature(1, ("x",), repeats=True),
    "sum": Signature(1, ("xs",)),
    "sorted": Signature(1, ("xs", "reverse")),
    "abs": Signature(1, ("x",)),
    "round": Signature(1, ("x", "digits")),
    "str": Signature(1, ("x",)),
    "int": Signature(1, ("x",)),
    "float": Signature(1, ("x",)),
    "bool": Signature(1, ("x",)),
    "print": Signature(0, ("x",), repeats=True),
    "input": Signature(0, ("prompt",)),
    "fail": Signature(1, ("message",)),
    "json": Signature(1, ("x",)),
    "parse_json": Signature(1, ("text", "type")),
    "bullets": Signature(1, ("xs",)),
    "lines": Signature(1, ("xs",)),
    "schema": Signature(1, ("type",)),
    "fields": Signature(1, ("type",)),
    "majority": Signature(1, ("xs",)),
    "argmax": Signature(1, ("xs",)),
    "top": Signature(3, ("xs", "scores", "n")),
    "findall": Signature(2, ("regex", "text")),
    "matches": Signature(2, ("regex", "text")),
    "gen": Signature(0, ("type",)),
    "select": Signature(1, ("options", "method")),
    "score": Signature(1, ("options",)),
    "image": Signature(1, ("value",)),
}

#: Methods of strings; the receiver is not listed.
STR_METHODS: dict[str, Signature] = {
    "strip": Signature(0, ("chars",)),
    "lstrip": Signature(0, ("chars",)),
    "rstrip": Signature(0, ("chars",)),
    "split": Signature(0, ("sep", "maxsplit")),
    "splitlines": Signature(0, ()),
    "lower": Signature(0, ()),
    "upper": Signature(0, ()),
    "title": Signature(0, ()),
    "startswith": Signature(1, ("prefix",)),
    "endswith": Signature(1, ("suffix",)),
    "replace": Signature(2, ("old", "new")),
    "join": Signature(1, ("parts",)),
    "find": Signature(1, ("sub",)),
    "count": Signature(1, ("sub",)),
    "removeprefix": Signature(1, ("prefix",)),
    "removesuffix": Signature(1, ("suffix",)),
}

#: Methods of dicts.
DICT_METHODS: dict[str, Signature] = {
    "keys": Signature(0, ()),
    "values": Signature(0, ()),
    "items": Signature(0, ()),
    "get": Signature(1, ("key", "default")),
}
