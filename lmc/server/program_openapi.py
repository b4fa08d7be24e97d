"""The functions of programs in the server's OpenAPI document.

    parameters   ->  the request's body, an object; a field or parameter with a default may be left out
    result       ->  `value` of the answer
    docstring    ->  summary and description

The schemas are those of the types, so what fulfils the request's is taken by the function.
"""

from __future__ import annotations

import json
from typing import Any

from lmc.backend.program import FunctionCode
from lmc.json_schema import argument_schema, json_schema
from lmc.server.connection import event_schema
from lmc.server.program_errors import ERROR_SCHEMA
from lmc.server.program_options import parameters
from lmc.server.settings import RunLimits

EVENTS = "text/event-stream"

_COUNT = {"type": "integer", "minimum": 0}
_NUMBERS: dict[str, Any] = {
    "seed": {**_COUNT, "description": "The program seed: given as `seed`, it repeats the run."},
    "usage": {
        "type": "object", "additionalProperties": False,
        "properties": {name: _COUNT for name in ("calls", "prompt_tokens", "cached_tokens", "generated_tokens", "jumped_tokens")},
        "required": ["calls", "prompt_tokens", "cached_tokens", "generated_tokens", "jumped_tokens"],
    },
    "seconds": {"type": "number", "minimum": 0},
    "warnings": {"type": "array", "items": {"type": "string"}},
    "printed": {"type": "array", "items": {"type": "string"}},
}
_FAULTS = {
    400: "The body is no JSON, or an option has a wrong value.", 401: "The API key is missing or wrong.",
    403: "The request comes from a page that may not ask.", 413: "The body is too long.", 415: "The body is not `application/json`.",
    421: "The server is not called so.", 422: "The arguments do not fit, or the program failed on them: `code` and `kind` say how.",
    429: "Too much is under way.", 500: "A fault of the server or of the model.", 502: "A function of the host failed.",
    503: "The server ends.",
}


def request_schema(code: FunctionCode) -> dict[str, Any]:
    """The body: an object with the parameters.  Raises `NoSchema` where one holds a context."""
    properties = {p.name: argument_schema(p.type) | ({} if p.default is None else {"default": json.loads(p.default)}) for p in code.params}
    required = [p.name for p in code.params if p.default is None]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def response_schema(code: FunctionCode) -> dict[str, Any]:
    """The answer: the function's value, and the numbers of the run.  Raises `NoSchema`."""
    properties = {"value": json_schema(code.result), **_NUMBERS}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def operation(name: str, code: FunctionCode, limits: RunLimits) -> dict[str, Any]:
    """What FastAPI's `add_api_route` is told of the function `code` of the program `name`."""
    first, _, rest = (code.doc or f"Run `{code.name}`.").strip().partition("\n")
    answer = {"application/json": {"schema": response_schema(code)}, EVENTS: {"itemSchema": event_schema("text", "print", "value", "error")}}
    faults = {status: {"description": text, "content": _json(ERROR_SCHEMA)} for status, text in _FAULTS.items()}
    return {
        "operation_id": f"{name}.{code.name}", "summary": first, "description": rest.strip() or first, "tags": ["programs"],
        "responses": {200: {"description": "The function's value.", "content": answer}, **faults},
        "openapi_extra": {
            "parameters": parameters(limits),
            "requestBody": {"required": True, "content": _json(request_schema(code))},
        },
    }


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
