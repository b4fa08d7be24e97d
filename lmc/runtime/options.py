"""The options of a generation: where each comes from, and what values it may have.

    gen(temperature=0.7)  >  --temperature 0.5  >  config: temperature = 0.3  >  0.0

The options of a `fork … with` stand in the `gen`s already.  Whatever the source, a wrong value is refused here, with the name of
the option, before a token is computed.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lmc.diagnostics import Diagnostic, UsageError
from lmc.runtime.request import Jump, Sampling


class OptionError(ValueError):
    """A value that an option cannot have."""


@dataclass(frozen=True, slots=True)
class GenOptions:
    """What a `gen` asks for, resolved.  `seed` is None where it follows from the program seed."""

    max_tokens: int
    min_tokens: int
    stops: tuple[str, ...]
    sampling: Sampling
    seed: int | None
    logprobs: int
    heal: bool
    ignore_eos: bool
    stream: bool


#: Options that `config:` and the command line may set for the whole program.  `seed` there is the program seed, not a `gen`'s.
PROGRAM_OPTIONS = ("max_tokens", "min_tokens", "stop", "temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty",
                   "repetition_penalty", "logit_bias", "logprobs", "heal", "ignore_eos", "stream")

_DEFAULTS: dict[str, Any] = {
    "max_tokens": 256, "min_tokens": 0, "stop": (), "temperature": 0.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "seed": None,
    "frequency_penalty": 0.0, "presence_penalty": 0.0, "repetition_penalty": 1.0, "logit_bias": {}, "logprobs": 0, "heal": True,
    "ignore_eos": False, "stream": False,
}


def resolve_options(given: Mapping[str, Any], overrides: Mapping[str, Any], config: Mapping[str, Any]) -> GenOptions:
    """The options of one `gen`.  `given`: at the call; `overrides`: of the command line; `config`: of the program.

    Raises `OptionError`.
    """
    program = {**{k: config[k] for k in PROGRAM_OPTIONS if k in config}, **{k: v for k, v in overrides.items() if v is not None}}
    asked = {**program, **{k: v for k, v in given.items() if v is not None}}
    for name, value in asked.items():
        check_option(name, value)
    chosen = {**_DEFAULTS, **asked}
    if chosen["min_tokens"] > chosen["max_tokens"]:
        raise OptionError(f"`min_tokens` is {chosen['min_tokens']}, more than `max_tokens`, which is {chosen['max_tokens']}")
    numbers = {name: float(chosen[name]) for name in
               ("temperature", "top_p", "min_p", "frequency_penalty", "presence_penalty", "repetition_penalty")}
    sampling = Sampling(**numbers, top_k=max(0, chosen["top_k"]), logit_bias=_logit_bias(chosen["logit_bias"]))
    stop = chosen["stop"]
    return GenOptions(chosen["max_tokens"], chosen["min_tokens"], (stop,) if isinstance(stop, str) else tuple(stop), sampling,
                      chosen["seed"], chosen["logprobs"], chosen["heal"], chosen["ignore_eos"], chosen["stream"])


def check_option(name: str, value: Any) -> None:
    """Raises `OptionError` where the option cannot have the value."""
    expected, fits = _RULES[name]
    if not fits(value):
        raise OptionError(f"`{name}` is {value!r}, expected {expected}")


def check_jump(jump: str) -> None:
    """Raises `UsageError` for what is no way to write forced text."""
    ways = [way.value for way in Jump]
    if jump not in ways:
        message = f"`jump` is {jump!r}, expected {', '.join(map(repr, ways))}"
        raise UsageError(Diagnostic("E0851", message, None, help="`exact` gives the same text as `off`, sooner"))


def check_overrides(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options for the whole program, from the command line or from Python.  Raises `UsageError` with all that is wrong."""
    faults = []
    for name, value in given.items():
        if name not in PROGRAM_OPTIONS:
            close = difflib.get_close_matches(name, PROGRAM_OPTIONS, 1)
            help = f"did you mean `{close[0]}`?" if close else "the options are: " + ", ".join(PROGRAM_OPTIONS)
            faults.append(Diagnostic("E0841", f"there is no option `{name}` for a whole program", None, help=help))
            continue
        try:
            check_option(name, value)
        except OptionError as error:
            faults.append(Diagnostic("E0841", str(error), None))
    if faults:
        raise UsageError(faults)
    return dict(given)


def _whole(low: int, high: float = math.inf) -> Callable[[Any], bool]:
    return lambda v: isinstance(v, int) and not isinstance(v, bool) and low <= v <= high


def _number(low: float, high: float = math.inf) -> Callable[[Any], bool]:
    return lambda v: isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v) and low <= v <= high


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_stop(value: Any) -> bool:
    texts = (value,) if isinstance(value, str) else value
    return isinstance(texts, (tuple, list)) and all(isinstance(t, str) and t for t in texts)


def _is_bias(value: Any) -> bool:
    return isinstance(value, dict) and all(_token_id(k) is not None and _number(-math.inf)(v) for k, v in value.items())


def _token_id(key: Any) -> int | None:
    if isinstance(key, str) and key.isascii() and key.isdigit():
        return int(key)
    return key if _whole(0)(key) else None


def _logit_bias(table: Mapping[Any, float]) -> tuple[tuple[int, float], ...]:
    return tuple((_token_id(k), float(v)) for k, v in table.items())


_RULES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "max_tokens": ("a whole number from 1", _whole(1)),
    "min_tokens": ("a whole number from 0", _whole(0)),
    "stop": ("a text or a list of texts, none of them empty", _is_stop),
    "temperature": ("a number from 0", _number(0)),
    "top_p": ("a number from 0 to 1", _number(0, 1)),
    "top_k": ("a whole number from 0, or -1 for off", _whole(-1)),
    "min_p": ("a number from 0 to 1", _number(0, 1)),
    "seed": ("a whole number", lambda v: v is None or _whole(-(2**63), 2**64)(v)),
    "frequency_penalty": ("a number", _number(-math.inf)),
    "presence_penalty": ("a number", _number(-math.inf)),
    "repetition_penalty": ("a number above 0", lambda v: _number(0)(v) and v > 0),
    "logit_bias": ("a dict from token ids to numbers", _is_bias),
    "logprobs": ("a whole number from 0 to 100", _whole(0, 100)),
    "heal": ("true or false", _is_bool),
    "ignore_eos": ("true or false", _is_bool),
    "stream": ("true or false", _is_bool),
}
