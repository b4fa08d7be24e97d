"""What a client may say of a run beside its arguments: in the query, since the body holds the arguments alone.

    POST /programs/judge/judge?seed=7&max_tokens=500&deadline=30&temperature=0.7

An option that is not known, is given twice or has a wrong value is an error: none is passed over.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lmc.runtime.instance import Budgets, RunOptions
from lmc.runtime.options import OptionError, check_option
from lmc.server.errors import ApiError, refused
from lmc.server.settings import RunLimits

#: Options that go to every `gen` that does not give its own.
_SAMPLING: Mapping[str, dict[str, Any]] = {
    "temperature": {"type": "number", "minimum": 0},
    "top_p": {"type": "number", "minimum": 0, "maximum": 1},
    "top_k": {"type": "integer", "minimum": -1, "maximum": 2**31},
    "min_p": {"type": "number", "minimum": 0, "maximum": 1},
}


@dataclass(frozen=True, slots=True)
class AskedRun:
    """deadline: seconds; stream: whether events are wanted, None where the client did not say"""

    options: RunOptions
    deadline: float
    stream: bool | None


def parameters(limits: RunLimits) -> list[dict[str, Any]]:
    """The options for OpenAPI."""
    return [{"name": name, "in": "query", "required": False, "schema": schema, "description": text}
            for name, (schema, text) in _schemas(limits).items()]


def asked_run(query: Iterable[tuple[str, str]], limits: RunLimits) -> AskedRun:
    """What the query asks for.  Raises `ApiError`."""
    schemas = _schemas(limits)
    given: dict[str, Any] = {}
    for name, text in query:
        if name not in schemas:
            close = difflib.get_close_matches(name, schemas, 1)
            raise refused(name, f"there is no option `{name}`; " + (f"did you mean `{close[0]}`?" if close else
                                                                   "the options are " + ", ".join(schemas)))
        if name in given:
            raise refused(name, f"the option `{name}` is given twice")
        given[name] = _value(name, text, schemas[name][0])
    overrides = {name: _checked(name, given[name]) for name in _SAMPLING if name in given}
    if given.get("stream"):
        overrides["stream"] = True  # every `gen` shows its text as it comes
    budgets = Budgets(calls=given.get("max_calls", limits.calls), tokens=given.get("max_tokens", limits.tokens))
    options = RunOptions(seed=given.get("seed"), overrides=overrides, budgets=budgets)
    return AskedRun(options, float(given.get("deadline", limits.seconds)), given.get("stream"))


def _schemas(limits: RunLimits) -> dict[str, tuple[dict[str, Any], str]]:
    inherited = "For every `gen` that does not give its own."
    return {
        "seed": ({"type": "integer", "minimum": 0, "maximum": 2**64 - 1}, "The program seed: the same one gives the same run."),
        **{name: (schema, inherited) for name, schema in _SAMPLING.items()},
        "max_calls": ({"type": "integer", "minimum": 1, "maximum": limits.calls}, "Calls of the model that the run may make."),
        "max_tokens": ({"type": "integer", "minimum": 1, "maximum": limits.tokens}, "Tokens that the run may generate."),
        "deadline": ({"type": "number", "exclusiveMinimum": 0, "maximum": limits.seconds}, "Seconds that the run may take."),
        "stream": ({"type": "boolean"}, "Whether events are wanted as the run goes on; as `Accept: text/event-stream`."),
    }


def _value(name: str, text: str, schema: Mapping[str, Any]) -> Any:
    """The text as the schema's type, within its bounds."""
    match schema["type"]:
        case "boolean":
            found = {"true": True, "false": False}.get(text)
        case "integer":
            found = int(text) if re.fullmatch(r"-?[0-9]{1,20}", text) else None
        case _:
            found = float(text) if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?", text) else None
    if found is None or not _within(found, schema):
        raise refused(name, f"`{name}` is {text[:40]!r}, expected {_expected(schema)}")
    return found


def _within(value: Any, schema: Mapping[str, Any]) -> bool:
    return (value >= schema.get("minimum", value) and value <= schema.get("maximum", value)
            and ("exclusiveMinimum" not in schema or value > schema["exclusiveMinimum"]))


def _expected(schema: Mapping[str, Any]) -> str:
    if schema["type"] == "boolean":
        return "`true` or `false`"
    kind = "a whole number" if schema["type"] == "integer" else "a number"
    low = f" above {schema['exclusiveMinimum']}" if "exclusiveMinimum" in schema else f" from {schema['minimum']}"
    return kind + low + (f" up to {schema['maximum']:,}" if "maximum" in schema else "")


def _checked(name: str, value: Any) -> Any:
    try:
        check_option(name, value)
    except OptionError as error:
        raise ApiError(400, str(error), param=name, code="E0841") from None
    return value
