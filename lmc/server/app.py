"""The application: its layers and its routes, from outside to inside.

    count  ->  guard (host, origin, key, body)  ->  routes: OpenAI's, the programs', health and metrics

`make_app` opens nothing: the session is open before it, and is closed by whoever opened it.
"""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from lmc.diagnostics import LmcError
from lmc.server.connection import ClientGone
from lmc.server.errors import LOG, ApiError, api_error, refused
from lmc.server.guard import Guard, key_in_document
from lmc.server.metrics import GONE, Counting
from lmc.server.openai_routes import openai_router
from lmc.server.state import ServerState
from lmc.server.status_routes import status_router

#: Parts of a place in a request that say only where in HTTP it is.
_OUTER = ("body", "query", "path", "header")
#: Whatever the environment says.
_NO_TELEMETRY = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}


def make_app(state: ServerState) -> FastAPI:
    """The application over an open session."""
    # Its pages of documentation would load scripts from elsewhere, and what it measures it could be told to send elsewhere.
    app = FastAPI(title="lmc", docs_url=None, redoc_url=None, separate_input_output_schemas=False, telemetry=_NO_TELEMETRY)
    with_key = key_in_document(state.settings)
    app.include_router(openai_router(state), dependencies=with_key)
    app.include_router(status_router(state))
    if state.programs:
        from lmc.server.program_routes import program_router

        app.include_router(program_router(state), dependencies=with_key)
    app.add_exception_handler(ApiError, _api)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(LmcError, _ours)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(ClientGone, _gone)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(Exception, _broken)
    # The layer that is added last is the outermost.
    app.add_middleware(Guard, settings=state.settings)
    app.add_middleware(Counting, metrics=state.metrics)
    return app


def _api(request: Request, error: ApiError) -> Response:
    return error.response()


def _ours(request: Request, error: LmcError) -> Response:
    return api_error(error).response()


def _http(request: Request, error: HTTPException) -> Response:
    path = request.url.path
    messages = {404: f"there is no `{path}` here", 405: f"`{path}` does not know {request.method}"}
    message = messages.get(error.status_code, str(error.detail))
    return ApiError(error.status_code, message, code="E0882", headers=error.headers).response()


def _invalid(request: Request, error: RequestValidationError) -> Response:
    """All that is wrong, the first field as `param`."""
    faults = [(_place(fault["loc"]), _words(fault)) for fault in error.errors()]
    text = "\n".join(f"`{place}`: {message}" if place else message for place, message in faults)
    return refused(faults[0][0] or None, text).response()


def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=GONE)


def _broken(request: Request, error: Exception) -> Response:
    LOG.error("%s %s: %s: %s", request.method, request.url.path, type(error).__name__, error)
    return ApiError(500, "E0843: something inside `lmc` is broken; the server's log says more", code="E0843").response()


def _place(where: tuple[str | int, ...]) -> str:
    """`("body", "messages", 0, "role")` -> `messages[0].role`"""
    text = ""
    for part in where[1:] if where and where[0] in _OUTER else where:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _words(fault: dict) -> str:
    if fault["type"] == "extra_forbidden":
        return "this server does not know the field"
    if fault["type"] == "json_invalid":
        return f"the body is no JSON: {fault.get('ctx', {}).get('error', 'it cannot be read')}"
    return str(fault["msg"]).removeprefix("Value error, ")
