"""What every request passes before any route sees it.

    Host       a name that is the server's own: a page cannot reach a local server by a name that it points there
    Origin     none, the server's own, or one that was allowed: no other page may ask, in whatever form
    key        on every route but `/health`, where keys are set
    body       JSON, no longer than is allowed, whether its length is told or not, and there in time

A plain ASGI layer, so that streams and disconnects go through it as they are.
"""

from __future__ import annotations

import asyncio
import ipaddress
from typing import Any
from urllib.parse import urlsplit

from fastapi import Security
from fastapi.security import HTTPBearer
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lmc.server.errors import ApiError
from lmc.server.keys import owner_of
from lmc.server.settings import ANYBODY, ServerSettings

#: The one route that needs no key: it tells only whether the server lives.
LIVENESS = "/health"
_METHODS = "GET, POST"


class Guard:
    """Passes on what may come in, with `scope["state"]["tenant"]`: whose request it is."""

    def __init__(self, app: ASGIApp, settings: ServerSettings):
        self.app, self.settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        try:
            check_host(headers, self.settings)
            check_origin(headers, scope["scheme"], self.settings)
            if scope["method"] == "OPTIONS" and origin is not None and "access-control-request-method" in headers:
                await with_origin(_preflight(headers), scope, receive, send, origin, self.settings)
                return
            tenant = ANYBODY if scope["path"] == LIVENESS else check_key(headers, self.settings)
            check_body(scope["method"], headers, self.settings)
        except ApiError as error:
            await with_origin(error.response(), scope, receive, send, origin, self.settings)
            return
        scope.setdefault("state", {})["tenant"] = tenant
        limited = _limited(receive, self.settings)
        await with_origin(self.app, scope, limited, send, origin, self.settings)


def check_host(headers: Headers, settings: ServerSettings) -> None:
    """A page that lets its own name point at this machine sends that name.  Raises `ApiError`."""
    if settings.keys and not settings.is_local and not settings.hosts:
        return  # reachable by any name, and whoever asks needs a key
    name = _host_name(headers.get("host", ""))
    known = {"localhost", settings.host.lower(), *(host.lower() for host in settings.hosts)}
    if name not in known and not _is_address(name):
        message = f"this server is not called `{name}`; who runs it can say so: `--allow-host {name}`"
        raise ApiError(421, message, code="E0882")


def check_origin(headers: Headers, scheme: str, settings: ServerSettings) -> None:
    """Raises `ApiError` where a page of another origin asks."""
    origin = headers.get("origin")
    if origin is not None:
        own = f"{scheme}://{headers.get('host', '')}"
        if origin != own and origin not in settings.origins:
            raise ApiError(403, f"pages of `{origin}` may not ask this server; who runs it can allow it: `--allow-origin`", code="E0882")
    elif headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        # A browser that sends no origin: an image, a link, a form of old.
        raise ApiError(403, "a page of another origin may not ask this server", code="E0882")


def check_key(headers: Headers, settings: ServerSettings) -> str:
    """Whose request it is.  Raises `ApiError`; the key that was given is in no message."""
    if not settings.keys:
        return ANYBODY
    kind, _, given = headers.get("authorization", "").partition(" ")
    owner = owner_of(settings.keys, given.strip() if kind.lower() == "bearer" else "")
    if owner is None:
        message = "the API key is wrong" if given else "an API key is needed: `Authorization: Bearer KEY`"
        raise ApiError(401, message, code="invalid_api_key", headers={"www-authenticate": "Bearer"})
    return owner


def key_in_document(settings: ServerSettings) -> list[Any]:
    """What FastAPI is told of routes that need a key, for the OpenAPI document; `Guard` is who asks for it."""
    return [Security(HTTPBearer(auto_error=False, description="An API key of this server."))] if settings.keys else []


def check_body(method: str, headers: Headers, settings: ServerSettings) -> None:
    """Raises `ApiError` for what is no JSON or too long."""
    if method not in ("POST", "PUT", "PATCH"):
        return
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        # Forms and plain text are what a browser sends from any page without asking.
        raise ApiError(415, f"the body is `{kind or 'of no type'}`, expected `content-type: application/json`", code="E0882")
    length = headers.get("content-length", "")
    if length.isdigit() and int(length) > settings.max_body_bytes:
        raise too_long(settings.max_body_bytes)


def too_long(most: int) -> ApiError:
    return ApiError(413, f"the body is longer than {most:,} bytes", code="E0882")


async def with_origin(app: ASGIApp, scope: Scope, receive: Receive, send: Send, origin: str | None, settings: ServerSettings) -> None:
    """Run `app`, and let the browser show its answer to a page that was allowed to ask."""
    if origin is None or origin not in settings.origins:
        await app(scope, receive, send)
        return

    async def told(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["access-control-allow-origin"] = origin
            headers.add_vary_header("origin")
        await send(message)

    await app(scope, receive, told)


def _preflight(headers: Headers) -> Response:
    asked = headers.get("access-control-request-headers", "authorization, content-type")
    return Response(status_code=204, headers={"access-control-allow-methods": _METHODS, "access-control-allow-headers": asked,
                                              "access-control-max-age": "600"})


def _limited(receive: Receive, settings: ServerSettings) -> Receive:
    """The body as it comes; raises `ApiError` where it grows too long, or comes too slowly."""
    read, whole = 0, False
    end = asyncio.get_running_loop().time() + settings.body_seconds

    async def counted() -> Message:
        nonlocal read, whole
        try:
            # Behind the body comes only that the client has gone, at any time.
            async with asyncio.timeout_at(None if whole else end):
                message = await receive()
        except TimeoutError:
            raise ApiError(408, f"the body did not come within {settings.body_seconds:g} s", code="E0882") from None
        read += len(message.get("body", b""))
        if read > settings.max_body_bytes:
            raise too_long(settings.max_body_bytes)
        whole = not message.get("more_body", False)
        return message

    return counted


def _host_name(host: str) -> str:
    """`Localhost:8000` -> `localhost`, `[::1]:8000` -> `::1`."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    # A name can be made to point here; an address is what it says.
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
