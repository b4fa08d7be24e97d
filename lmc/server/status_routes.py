"""Whether the server lives, and its numbers.

    GET /health      200, or 503 with what is wrong; needs no key
    GET /metrics     for Prometheus
"""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.responses import Response

from lmc.server.errors import ErrorBody, json_response
from lmc.server.guard import LIVENESS, key_in_document
from lmc.server.metrics import CONTENT_TYPE
from lmc.server.state import ServerState


class Health(BaseModel):
    """status: `ok`, or in words what is wrong"""

    status: str


def status_router(state: ServerState) -> APIRouter:
    router = APIRouter(tags=["status"])

    @router.get(LIVENESS, responses={200: {"model": Health}, 503: {"model": Health}}, response_class=Response)
    async def health() -> Response:
        """Whether requests can be answered."""
        wrong = fault_of(state)
        return json_response({"status": wrong or "ok"}, 503 if wrong else 200)

    @router.get("/metrics", responses={200: {"content": {CONTENT_TYPE: {"schema": {"type": "string"}}}}, 401: {"model": ErrorBody}},
                response_class=Response, dependencies=key_in_document(state.settings))
    async def metrics() -> Response:
        """The server's numbers, in the text form that Prometheus reads."""
        return Response(state.metrics.text(), media_type=CONTENT_TYPE)

    return router


def fault_of(state: ServerState) -> str | None:
    """Why requests cannot be answered, None where they can."""
    if state.ending.is_set():
        return "the server ends"
    if state.session.ended:
        return "the engine has ended"
    took = state.session.pulse.running_for()
    if took > state.settings.stuck_seconds:
        return f"a step of the engine has taken {took:.0f} s so far"
    return None
