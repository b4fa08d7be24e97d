"""A route for each public function of the programs that the server was given.

    POST /programs/judge/judge      {"essay": "…"}      ->  {"value": {"grade": "A", …}, "seed": 7, "usage": {…}, …}

The body is checked as the arguments of `lmc run` are.  Functions that take or return a context have no route: a context has no JSON.
What runs is in `program_run.py`, what the document says of it in `program_openapi.py`.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from lmc.backend.program import FunctionCode
from lmc.diagnostics import RunError
from lmc.runtime.arguments import WrongArguments, bind_arguments
from lmc.runtime.host_types import holds_context
from lmc.runtime.machine import Machine
from lmc.server.connection import EventStream, while_connected
from lmc.server.errors import ApiError, json_response, refused
from lmc.server.program_errors import argument_error, program_error
from lmc.server.program_openapi import EVENTS, operation
from lmc.server.program_options import AskedRun, asked_run
from lmc.server.program_run import FunctionRun, run_events, run_result
from lmc.server.state import ServedProgram, ServerState


def program_router(state: ServerState) -> APIRouter:
    """The routes.  Raises `LmcError` where the model cannot do what a program asks."""
    router = APIRouter()
    machines = _Machines(state)
    for program in state.programs.values():
        machines.of("", program)
        for code in served_functions(program):
            router.add_api_route(f"/programs/{program.name}/{code.name}", _endpoint(state, machines, program, code),
                                 methods=["POST"], response_class=Response, **operation(program.name, code, state.settings.run))
    router.add_api_route("/programs/{file}/{function}", _unknown(state), methods=["POST"], include_in_schema=False)
    return router


def served_functions(program: ServedProgram) -> Iterator[FunctionCode]:
    """The public functions whose parameters and result have a JSON form."""
    for name in program.program.entries:
        code = program.program.functions[name]
        if not any(map(holds_context, (code.result, *(p.type for p in code.params)))):
            yield code


def program_paths(state: ServerState) -> list[str]:
    """The routes of all programs."""
    return [f"/programs/{program.name}/{code.name}" for program in state.programs.values() for code in served_functions(program)]


class _Machines:
    """The programs at work: one for each client, where they share no cache."""

    __slots__ = ("_state", "_made")

    def __init__(self, state: ServerState):
        self._state = state
        self._made: dict[tuple[str, str], Machine] = {}

    def of(self, tenant: str, program: ServedProgram) -> Machine:
        key = (tenant, program.name)
        if key not in self._made:
            self._made[key] = Machine(program.program, self._state.session_of(tenant), program.externs)
        return self._made[key]


def _endpoint(state: ServerState, machines: _Machines, program: ServedProgram,
              code: FunctionCode) -> Callable[[Request], Awaitable[Response]]:
    async def answered(request: Request) -> Response:
        asked = asked_run(request.query_params.multi_items(), state.settings.run)
        args = _arguments(program, code, await request.body(), state.settings.max_prompt_bytes)
        run = FunctionRun(machines.of(request.state.tenant, program), code, args, asked)
        if wants_events(request, asked):
            return _Events(state, run)
        with state.gate.entered(1, request.state.tenant):
            return json_response(await while_connected(request.receive, state.ending, run_result(run)))

    async def call(request: Request) -> Response:
        try:
            return await answered(request)
        except RunError as error:
            raise program_error(error) from None

    return call


class _Events(EventStream):
    """A stream that counts as what is under way from its first byte to its last; where there is no room it does not begin."""

    def __init__(self, state: ServerState, run: FunctionRun):
        super().__init__(run_events(run), state.ending)
        self._gate = state.gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._gate.entered(1, scope["state"]["tenant"]):
            await super().__call__(scope, receive, send)


def wants_events(request: Request, asked: AskedRun) -> bool:
    """By the option `stream`, else by what the client accepts."""
    if asked.stream is not None:
        return asked.stream
    kinds = [kind.partition(";")[0].strip().lower() for kind in request.headers.get("accept", "").split(",")]
    return EVENTS in kinds and "application/json" not in kinds


def _arguments(program: ServedProgram, code: FunctionCode, body: bytes, most: int) -> tuple[Any, ...]:
    """The values of the parameters.  Raises `ApiError`."""
    if len(body) > most:
        raise ApiError(413, f"the arguments have {len(body):,} bytes, at most {most:,} are taken", code="E0882")
    given = read_object(body)
    try:
        return bind_arguments(code, (), given, program.externs.types)
    except WrongArguments as error:
        raise argument_error(error) from None
    except RecursionError:
        raise ApiError(422, "the arguments are nested too deeply", code="E0851") from None


def read_object(body: bytes) -> dict[str, Any]:
    """The body as JSON; no name may come twice, and there is no NaN.  Raises `ApiError`."""
    try:
        data = json.loads(body, object_pairs_hook=_once, parse_constant=_no_constant, parse_float=_number)
    except json.JSONDecodeError as error:
        raise refused(None, f"the body is no JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else "it is no UTF-8 text" \
            if isinstance(error, UnicodeDecodeError) else str(error)
        raise refused(None, f"the body is no JSON: {reason}") from None
    if not isinstance(data, dict):
        found = "null" if data is None else {list: "a list", str: "a text", bool: "true or false"}.get(type(data), "a number")
        raise ApiError(422, f"the body is {found}, expected an object with the arguments", code="E0851")
    return data


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the name {json.dumps(name)} comes twice in one object")
        found[name] = value
    return found


def _number(text: str) -> int | float:
    """JSON has one kind of numbers: `3.0` is whole, as its schemas say."""
    value = float(text)
    return int(value) if value.is_integer() and 0 < abs(value) < 2**63 else value


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


def _unknown(state: ServerState) -> Callable[[str, str], Awaitable[Response]]:
    async def unknown(file: str, function: str) -> Response:
        """For what has no route: says what has."""
        program = state.programs.get(file)
        if program is None:
            raise ApiError(404, f"there is no program `{file}`{_near(file, list(state.programs))}", code="E0852")
        names = [code.name for code in served_functions(program)]
        if function in program.program.entries:
            message = f"`{function}` of `{file}` takes or returns a context, which has no JSON"
        else:
            message = f"the program `{file}` has no public function `{function}`{_near(function, names)}"
        raise ApiError(404, message, code="E0852")

    return unknown


def _near(name: str, names: list[str]) -> str:
    close = difflib.get_close_matches(name, names, 1)
    return f"; did you mean `{close[0]}`?" if close else "; there are: " + ", ".join(f"`{n}`" for n in names) if names else ""
