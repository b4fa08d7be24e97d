"""The programs that a server offers: compiled, bound to the host's functions, and called by the names of their files.

    load_programs([Path("judge.lmp")], {"search": search})      -> {"judge": ServedProgram("judge", …)}      /programs/judge/…

What does not compile is told before the server starts, all files together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from lmc.backend.program import Program
from lmc.backend.rename_files import public_names, rename_files
from lmc.diagnostics import CompileError, Diagnostic, LmcError, UsageError
from lmc.embed import load_program
from lmc.levels import DEFAULT_LEVEL
from lmc.runtime.host import bind_externs
from lmc.server.state import ServedProgram

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def load_programs(paths: Iterable[Path], functions: Mapping[str, Callable[..., Any]], *, level: int = DEFAULT_LEVEL,
                  roots: Iterable[Path] = ()) -> dict[str, ServedProgram]:
    """The programs by name.  functions: what is bound to the externs of all of them.

    Raises `CompileError` with the diagnostics of all files, `UsageError` where two files have one name or an extern has no function.
    """
    paths, folders = list(paths), list(roots)
    _check_names(paths)
    programs: dict[str, Program] = {}
    faults: list[Diagnostic] = []
    sources: dict[str, str] = {}
    for path in paths:
        try:
            programs[path.stem] = load_program(path, level=level, roots=folders)
        except CompileError as error:
            faults += error.diagnostics
            sources |= error.sources
    if faults:
        raise CompileError(faults, sources)
    served = {}
    for name, program in programs.items():
        externs = bind_externs(program, functions)
        files = {*program.sources, *(d.span.file for d in program.functions.values() if d.span is not None)}
        served[name] = ServedProgram(name, _renamed(program, files), externs)
    return served


def _renamed(program: Program, files: Iterable[str]) -> Program:
    try:
        return rename_files(program, public_names(sorted(files), program.name))
    except KeyError as error:
        raise LmcError(Diagnostic("E0904", f"`{program.name}` has places in a file that it does not hold: {error}", None)) from None


def _check_names(paths: Iterable[Path]) -> None:
    seen: dict[str, Path] = {}
    for path in paths:
        name = path.stem
        if not _NAME.fullmatch(name):
            message = f"`{path.name}` cannot be part of an address: its name has other characters than letters, digits, `_`, `-` and `.`"
            raise UsageError(Diagnostic("E0853", message, None, help="rename the file"))
        if name in seen:
            message = f"`{seen[name]}` and `{path}` would have the same address, `/programs/{name}`"
            raise UsageError(Diagnostic("E0853", message, None, help="rename one of them, or serve them apart"))
        seen[name] = path
