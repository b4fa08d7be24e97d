"""What a run asked and what it was answered, as data and as a JSON file: a cassette.

    {"lmc_cassette": 1, "test": "two plus two", "program": "vote.lmp", "seed": 7, "overrides": {}, "model": {…},
     "calls":   [{"at": "0:0/1", "where": "vote.lmp:9:9", "ask": {"kind": "gen", "prompt": […], …}, "answer": {…}}],
     "externs": [{"at": "", "where": "vote.lmp:20:9", "ask": {"name": "search", "args": ["Paris"]}, "answer": {"result": "…"}}]}

An entry is found by what it asks; of several that ask the same, the one asked at the same place in the run comes first.  An answer
is what came back, an error (`{"error": …}`), or null where the run gave the question up before it was answered.
A file is refused unless every part of it is as it is written here.  This file knows no model and no program.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, field
from os.path import commonprefix
from pathlib import Path
from typing import Any

from lmc.diagnostics import Diagnostic, LmcError
from lmc.runtime.cassette_form import FORM, FormError, check_form

VERSION = 1


@dataclass(slots=True)
class Entry:
    """at: the path of calls, rounds and branches in the run; where: the place in the program; ask, answer: JSON data."""

    at: str
    where: str
    ask: dict[str, Any]
    answer: dict[str, Any] | None = None


@dataclass(slots=True)
class Cassette:
    """model: what `cassette_vocabulary.py` needs to make the same prompts; overrides: options of the command line."""

    test: str
    program: str
    seed: int
    overrides: dict[str, Any]
    model: dict[str, Any]
    calls: list[Entry] = field(default_factory=list)
    externs: list[Entry] = field(default_factory=list)


class Entries:
    """Finds entries by what they ask; each is given once, unless `again`."""

    __slots__ = ("_all", "_by_ask", "_used", "_again")

    def __init__(self, entries: list[Entry], *, again: bool):
        self._all = entries
        self._again = again
        self._used: set[int] = set()
        self._by_ask: dict[str, list[int]] = {}
        for number, entry in enumerate(entries):
            self._by_ask.setdefault(canonical(entry.ask), []).append(number)

    def take(self, at: str, ask: dict[str, Any]) -> Entry | None:
        """The entry that asks this, at the same place if there is one."""
        left = [n for n in self._by_ask.get(canonical(ask), ()) if n not in self._used]
        if not left:
            return None
        found = next((n for n in left if self._all[n].at == at), left[0])
        if not self._again:
            self._used.add(found)
        return self._all[found]

    def nearest(self, at: str, where: str, ask: dict[str, Any]) -> Entry | None:
        """What was asked instead: at this place of run and program, at this place of the program, or what begins most alike."""
        def likeness(entry: Entry) -> tuple[bool, bool, int]:
            same = entry.where == where
            return same and entry.at == at, same, len(commonprefix([canonical(entry.ask), canonical(ask)]))

        return max(self._all, key=likeness, default=None)


def canonical(data: Any) -> str:
    """JSON text by which equal data are equal."""
    return json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def write_cassette(cassette: Cassette, path: Path) -> None:
    """Write the file, whole or not at all.  Raises `LmcError` E0862 where it cannot be written."""
    data = {"lmc_cassette": VERSION, "test": cassette.test, "program": cassette.program, "seed": cassette.seed,
            "overrides": cassette.overrides, "model": cassette.model, "calls": [_entry_data(e) for e in cassette.calls],
            "externs": [_entry_data(e) for e in cassette.externs]}
    text = json.dumps(data, ensure_ascii=False, indent=1) + "\n"
    check_form(json.loads(text), FORM)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".part")
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        # Temporary files are private; a cassette goes into version control like any other file.
        os.chmod(name, 0o644)
        os.replace(name, path)
    except OSError as error:
        raise _unusable(path, f"cannot be written: {error.strerror}", "choose another folder: `--record FOLDER`") from None


def read_cassette(path: Path) -> Cassette:
    """Read the file.  Raises `LmcError` E0862 where it is not what `write_cassette` writes."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _unusable(path, f"cannot be read: {error.strerror}", _AGAIN) from None
    except (ValueError, RecursionError) as error:
        raise _unusable(path, f"is no JSON: {error}", _AGAIN) from None
    found = data.get("lmc_cassette") if isinstance(data, dict) else None
    if isinstance(found, int) and found != VERSION:
        raise _unusable(path, f"has format {found}, this version of lmc reads format {VERSION}", _AGAIN)
    try:
        check_form(data, FORM)
    except FormError as error:
        raise _unusable(path, f"is no cassette: {error}", _AGAIN) from None
    entries = ([Entry(**e) for e in data[name]] for name in ("calls", "externs"))
    return Cassette(data["test"], data["program"], data["seed"], data["overrides"], data["model"], *entries)


_AGAIN = "record the test again: `lmc test FILE --record`"


def _entry_data(entry: Entry) -> dict[str, Any]:
    return {"at": entry.at, "where": entry.where, "ask": entry.ask, "answer": entry.answer}


def _unusable(path: Path, what: str, help: str) -> LmcError:
    return LmcError(Diagnostic("E0862", f"the cassette `{path}` {what}", None, help=help))
