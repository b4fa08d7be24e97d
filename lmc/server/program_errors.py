"""Errors of programs as clients get them: OpenAI's form, and beside it what a program's error has.

    HTTP/1.1 422
    {"error": {"message": "no essay given", "type": "run_error", "param": null, "code": "E0831", "kind": "fail",
               "location": {"file": "judge.lmp", "line": 12, "column": 5}, "notes": [], "help": null, "raw": null}}

Nothing in them tells of the server's folders or of what its own functions raised: that goes to the log.
"""

from __future__ import annotations

import re
from typing import Any

from lmc.codes import CODES
from lmc.diagnostics import Diagnostic, RunError
from lmc.runtime.arguments import WrongArguments
from lmc.server.errors import LOG, ApiError

#: Statuses by the kind of an error; all others are about the arguments, so that the same request fails again.
_STATUS = {"model": 500, "internal": 500, "cassette": 500, "extern": 502, "cancelled": 503}
_FAILED = 422

_TEXT: dict[str, Any] = {"type": "string"}
_TEXT_OR_NULL: dict[str, Any] = {"type": ["string", "null"]}
_PLACE: dict[str, Any] = {
    "type": ["object", "null"], "required": ["file", "line", "column"],
    "properties": {"file": _TEXT, "line": {"type": "integer"}, "column": {"type": "integer"}},
}
#: What every error body fulfils; `kind` and what follows are there where a program was run.
ERROR_SCHEMA: dict[str, Any] = {
    "type": "object", "required": ["error"], "properties": {"error": {
        "type": "object", "required": ["message", "type", "param", "code"], "properties": {
            "message": _TEXT, "type": _TEXT, "param": _TEXT_OR_NULL, "code": _TEXT_OR_NULL, "kind": _TEXT, "location": _PLACE,
            "notes": {"type": "array", "items": _TEXT}, "help": _TEXT_OR_NULL, "raw": _TEXT_OR_NULL,
        },
    }},
}


class ProgramError(ApiError):
    """A run that failed.  `more`: what the body has beside OpenAI's fields."""

    def __init__(self, status: int, message: str, code: str, more: dict[str, Any]):
        super().__init__(status, message, code=code, headers={"retry-after": "5"} if status == 503 else None)
        self.more = more

    @property
    def data(self) -> dict[str, Any]:
        return {"error": {**super().data["error"], "type": "run_error", **self.more}}


def program_error(error: RunError) -> ProgramError:
    """What the client is told of a run that failed."""
    first, status = error.diagnostics[0], _STATUS.get(error.kind, _FAILED)
    if status in (500, 502):
        LOG.error("%s", error)
    span = first.span
    more = {
        "kind": error.kind,
        "location": None if span is None else {"file": span.file, "line": span.line, "column": span.column},
        "notes": [] if status == 500 else list(first.notes),
        "help": _help(error),
        "raw": error.raw,
    }
    return ProgramError(status, _message(error, first), first.code, more)


def argument_error(error: WrongArguments) -> ApiError:
    """What the client is told of arguments that do not fit: all that is wrong, the first one's place as `param`."""
    text = "\n".join(dict.fromkeys(d.message for d in error.diagnostics))
    help = error.diagnostics[0].help
    return ApiError(422, f"{text}\n{help}" if help else text, param=error.places[0] or None, code=error.diagnostics[0].code)


def _message(error: RunError, first: Diagnostic) -> str:
    match error.kind:
        case "model" | "internal" | "cassette":
            return f"{CODES[first.code]}; the server's log says more"
        case "extern":
            # What a function of the host raised may hold anything of the host's.
            name = re.match(r"the extern `[^`]*`", first.message)
            return f"{name[0] if name else 'an extern'} failed; the server's log says more"
    return first.message


def _help(error: RunError) -> str | None:
    match error.kind:
        case "model" | "internal" | "cassette" | "extern":
            return None
        case "budget":
            return "a run may use what the server allows, or what `max_calls`, `max_tokens` and `deadline` say of it"
        case "input":
            return "a function that asks with `input` runs in a terminal: `lmc run`"
    return error.diagnostics[0].help
