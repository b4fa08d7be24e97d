"""Reads the position scaling of a config.json, in the old spelling and in that of transformers 5.

    "rope_theta": 500000.0, "rope_scaling": {"type": "linear", "factor": 4.0}
    "rope_parameters": {"rope_theta": 500000.0, "rope_type": "linear", "factor": 4.0}

A kind, a key or a value that is not known is refused by name.  What the numbers mean is the business of `rope.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RopeConfig:
    """`kind` is "default", "linear", "dynamic", "llama3" or "yarn".  What follows the factor is read only where the kind needs it.

    original_positions: the context that the model was trained with, before scaling
    beta_fast, beta_slow: turns within that context above which a pair is kept, and below which it is slowed down (yarn)
    truncate: whether those bounds are whole numbers of pairs; attention_factor: what cosines and sines are multiplied by (yarn)
    """

    theta: float
    kind: str = "default"
    factor: float = 1.0
    original_positions: int = 8192
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    attention_factor: float = 1.0

    def longest(self, max_positions: int) -> int:
        """The longest context of a model whose config.json says `max_positions`.

        Who switches yarn on by adding a scaling, as Qwen advises, leaves the context of before the scaling there.  Dynamic scaling
        wants it there, and is meant to reach `factor` times as far.
        """
        return max(max_positions, int(self.factor * self.original_positions)) if self.kind in ("yarn", "dynamic") else max_positions


class UnsupportedRope(ValueError):
    """The message names the key and its value."""


_NEEDED = {
    "default": (), "linear": ("factor",), "dynamic": ("factor",), "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
    "yarn": ("factor",),
}
_YARN_MAY_HAVE = ("beta_fast", "beta_slow", "attention_factor", "mscale", "mscale_all_dim")


def read_rope(keys: Mapping[str, Any], default_theta: float = 1e4) -> RopeConfig:
    """From `rope_theta` and `rope_scaling`, or from `rope_parameters`; default_theta: what the family takes where there is none.

    Raises `UnsupportedRope` for a kind, a key or a value that is not supported.
    """
    name = "rope_parameters" if keys.get("rope_parameters") is not None else "rope_scaling"
    given = keys.get(name)
    if given is not None and not isinstance(given, Mapping):
        raise UnsupportedRope(f"`{name}` is {given!r}, expected an object")
    if name == "rope_parameters" and keys.get("rope_scaling") not in (None, given):
        raise UnsupportedRope("`rope_parameters` and `rope_scaling` say different things")
    given = dict(given or {})
    kind = given.pop("rope_type", None) or given.pop("type", None) or "default"
    given.pop("type", None)
    if kind not in _NEEDED:
        raise UnsupportedRope(f"`{name}` has the type {kind!r}, which is not supported")
    theta = _theta(name, given, keys, default_theta)
    if given.pop("partial_rotary_factor", 1.0) not in (None, 1, 1.0):
        raise UnsupportedRope(f"`{name}.partial_rotary_factor` is not supported")
    values = {key: _positive(f"{name}.{key}", given.pop(key, None)) for key in _NEEDED[kind]}
    original = _original(name, given, keys, kind)
    if kind == "yarn":
        values |= _yarn(name, given, values["factor"])
    if given:
        key = sorted(given)[0]
        raise UnsupportedRope(f"`{name}.{key}` = {given[key]!r} is not known for the type {kind!r}")
    if kind == "llama3" and not values["low_freq_factor"] < values["high_freq_factor"]:
        raise UnsupportedRope(f"`{name}.low_freq_factor` {values['low_freq_factor']} is not below "
                              f"`{name}.high_freq_factor` {values['high_freq_factor']}")
    return RopeConfig(theta, kind, original_positions=original, **values)


def _theta(name: str, given: dict[str, Any], keys: Mapping[str, Any], default: float) -> float:
    inner, outer = given.pop("rope_theta", None), keys.get("rope_theta")
    if inner is not None and outer is not None and inner != outer:
        raise UnsupportedRope(f"`{name}.rope_theta` is {inner!r} and `rope_theta` is {outer!r}")
    theta = inner if inner is not None else outer
    return default if theta is None else _positive("rope_theta", theta)


def _original(name: str, given: dict[str, Any], keys: Mapping[str, Any], kind: str) -> int:
    key = "original_max_position_embeddings"
    value = given.pop(key, None)
    if kind == "dynamic":  # Transformers takes this one, whatever stands beside the scaling.
        return int(_positive("max_position_embeddings", keys.get("max_position_embeddings")))
    if kind not in ("llama3", "yarn"):
        return RopeConfig.original_positions  # Harmless beside a kind that does not read it.
    # Yarn without it means the context that the model has; llama3 is never published without it.
    return int(_positive(f"{name}.{key}", keys.get("max_position_embeddings") if value is None and kind == "yarn" else value))


def _yarn(name: str, given: dict[str, Any], factor: float) -> dict[str, Any]:
    found = {key: _positive(f"{name}.{key}", value) for key in _YARN_MAY_HAVE if (value := given.pop(key, None)) is not None}
    mscale, mscale_all = found.pop("mscale", None), found.pop("mscale_all_dim", None)
    if "attention_factor" not in found:
        both = mscale is not None and mscale_all is not None
        found["attention_factor"] = _warmth(factor, mscale) / _warmth(factor, mscale_all) if both else _warmth(factor, 1.0)
    truncate = given.pop("truncate", True)
    if not isinstance(truncate, bool):
        raise UnsupportedRope(f"`{name}.truncate` is {truncate!r}, expected true or false")
    return {**found, "truncate": truncate}


def _warmth(factor: float, share: float) -> float:
    """Yarn's square root of the temperature: longer contexts need sharper attention."""
    return 1.0 if factor <= 1 else 0.1 * share * math.log(factor) + 1.0


def _positive(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0 or math.isinf(value):
        raise UnsupportedRope(f"`{name}` is {value!r}, expected a positive number")
    return float(value)
