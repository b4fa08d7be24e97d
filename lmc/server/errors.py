"""Errors as clients get them: OpenAI's JSON, whatever went wrong.

    HTTP/1.1 400
    {"error": {"message": "`temperature` is -1.0, expected …", "type": "invalid_request_error", "param": "temperature", "code": "E0841"}}

A fault of the server's own is told by its title alone: what it says of files and code goes to the log.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response

from lmc.codes import CODES
from lmc.diagnostics import LmcError, RunError

LOG = logging.getLogger("lmc.server")

#: Kinds of `RunError` that are the server's and not the request's.
_OWN_FAULTS = frozenset({"model", "internal", "cassette"})
_TYPES = {401: "authentication_error", 403: "permission_error", 413: "request_too_large",
          429: "rate_limit_error"}


class ErrorDetail(BaseModel):
    """param: the field at fault; code: OpenAI's word where it has one, else the diagnostic's, which `lmc explain` knows"""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(BaseModel):
    error: ErrorDetail


class ApiError(HTTPException):
    """An answer that is no success.  `param`: the field at fault; `code`: for programs to look at."""

    def __init__(self, status: int, message: str, *, param: str | None = None, code: str | None = None,
                 headers: Mapping[str, str] | None = None):
        super().__init__(status, message, dict(headers or {}))
        self.message, self.param, self.code = message, param, code

    @property
    def data(self) -> dict[str, Any]:
        """The body."""
        kind = _TYPES.get(self.status_code, "server_error" if self.status_code >= 500 else "invalid_request_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}

    def response(self) -> Response:
        return json_response(self.data, self.status_code, self.headers)


def refused(param: str | None, message: str, *, code: str = "E0882") -> ApiError:
    """A request that is wrong; `param` is the field at fault."""
    return ApiError(400, message, param=param, code=code)


def api_error(error: LmcError, *, param: str | None = None) -> ApiError:
    """What the client is told of an error of ours."""
    first = error.diagnostics[0]
    kind = error.kind if isinstance(error, RunError) else "value"
    if kind in _OWN_FAULTS:
        LOG.error("%s", error)
        return ApiError(500, f"{first.code}: {CODES[first.code]}; the server's log says more", code=first.code)
    if kind == "cancelled":
        return ApiError(503, "the request was cancelled, because the server ends", code=first.code, headers={"retry-after": "5"})
    code = "context_length_exceeded" if kind == "context_length" else first.code
    text = "\n".join(d.message if d.help is None else f"{d.message}; {d.help}" for d in error.diagnostics)
    return ApiError(400, text, param=param, code=code)


def json_response(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """JSON in ASCII: what a request brought may hold half a character, and is still shown."""
    return Response(json_text(data), status, dict(headers or {}), "application/json")


def json_text(data: Any) -> str:
    return json.dumps(data, allow_nan=False, separators=(",", ":"))
