"""Errors of a running program: made with a place, given one, and told where they happened.

    raise failure("E0831", "no essay given", span, kind="fail")
    error[E0831]: no essay given
      --> judge.lmp:12:5
     = note: in branch 2 of the fork at judge.lmp:20:5

This file does not know what fails.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from lmc.diagnostics import Diagnostic, Inlined, RunError, Span
from lmc.pure import PureError
from lmc.types import ERROR
from lmc.values import Record

#: `try` lets these pass: a budget and a cancel end the program, and neither a fault inside `lmc` nor what a cassette lacks must be
#: taken for the program's.
UNCATCHABLE = frozenset({"budget", "cancelled", "internal", "cassette"})
# A chain of a hundred calls is not printed whole.
_MAX_NOTES = 8


def failure(code: str, message: str, span: Span | None, *, kind: str, help: str | None = None, label: str = "",
            raw: str | None = None) -> RunError:
    """A run-time error at `span`; `kind` is one of `RunError.KINDS`."""
    return RunError(Diagnostic(code, message, span, label=label, help=help), kind=kind, raw=raw)


def pure_failure(error: PureError, span: Span | None) -> RunError:
    """The error of an operator or builtin, at the place of its call."""
    return failure("E0833", error.message, span, kind=error.kind)


def located(error: RunError, span: Span | None) -> RunError:
    """The error with a place, where it has none yet: the engine does not know programs."""
    if all(d.span is not None for d in error.diagnostics):
        return error
    placed = (d if d.span is not None else replace(d, span=span) for d in error.diagnostics)
    return RunError(placed, error.sources, kind=error.kind, raw=error.raw)


def noted(error: RunError, note: str) -> RunError:
    """The error with one more note on how the program came there, innermost first."""
    first, *rest = error.diagnostics
    if len(first.notes) > _MAX_NOTES:
        return error
    more = note if len(first.notes) < _MAX_NOTES else "… and so on"
    return RunError((replace(first, notes=(*first.notes, more)), *rest), error.sources, kind=error.kind, raw=error.raw)


def called(name: str, span: Span | None) -> str:
    """The note of a call that an error came through."""
    return f"in `{name}`, called at {span}"


def through(error: RunError, calls: Sequence[Inlined]) -> RunError:
    """The error with the notes of the calls in whose place the failing code stands, outermost first in `calls`."""
    for call in reversed(calls):
        error = noted(error, called(short_name(call.function), call.span))
    return error


@lru_cache(maxsize=4096)  # asked several times at every call of the model
def short_name(name: str) -> str:
    """The name of a function or type as its author wrote it: `lib.x.judge` -> `judge`; of a part, without what sets its variants
    apart: `lib.x.greet:user+stop.list` -> `greet`."""
    return name if name.startswith("test:") else name.partition(":")[0].partition("+")[0].rpartition(".")[2]


def error_value(error: RunError) -> Record:
    """What `except Error as e` binds."""
    first = error.diagnostics[0]
    return Record(ERROR, (error.kind, first.message, str(first.span or ""), error.raw))


def broken_run(error: Exception) -> RunError:
    """The error of a run that something wrong inside `lmc` ended."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f"raised in {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else None
    found = failure("E0843", f"{type(error).__name__}: {error}", None, kind="internal",
                    help="please report this with the program that shows it")
    return noted(found, where) if where else found
