"""Rotary position embedding: the table of angles, with the position scalings that are supported, and the rotation.

    scaling   frequency of pair i, f = theta ** (-2i / head_dim)
    none      f
    linear    f / factor
    llama3    f where the wavelength is short, f / factor where it is long, a blend between (Llama 3.1)

The formulas are those of transformers, in float32 as there, so that greedy texts agree token for token.  This file does not know
heads or the pool.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class RopeConfig:
    """`kind` is "default", "linear" or "llama3".  The last four fields are read only where the kind needs them."""

    theta: float
    kind: str = "default"
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_positions: int = 8192


class UnsupportedRope(ValueError):
    """The message names the key and its value."""


_NEEDED = {
    "default": (), "linear": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
}


def read_rope(keys: Mapping[str, Any]) -> RopeConfig:
    """From config.json: `rope_theta` and `rope_scaling`, or `rope_parameters` as transformers 5 writes them.

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
    theta = _theta(name, given, keys)
    if given.pop("partial_rotary_factor", 1.0) not in (None, 1, 1.0):
        raise UnsupportedRope(f"`{name}.partial_rotary_factor` is not supported")
    values = {key: _positive(f"{name}.{key}", given.pop(key, None)) for key in _NEEDED[kind]}
    # Harmless beside a kind that does not read it: the context before scaling.
    given.pop("original_max_position_embeddings", None)
    if given:
        key = sorted(given)[0]
        raise UnsupportedRope(f"`{name}.{key}` = {given[key]!r} is not known for the type {kind!r}")
    return _rope_config(name, theta, kind, values)


def _theta(name: str, given: dict[str, Any], keys: Mapping[str, Any]) -> float:
    inner, outer = given.pop("rope_theta", None), keys.get("rope_theta")
    if inner is not None and outer is not None and inner != outer:
        raise UnsupportedRope(f"`{name}.rope_theta` is {inner!r} and `rope_theta` is {outer!r}")
    theta = inner if inner is not None else outer
    return 10000.0 if theta is None else _positive("rope_theta", theta)


def _positive(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0 or math.isinf(value):
        raise UnsupportedRope(f"`{name}` is {value!r}, expected a positive number")
    return float(value)


def _rope_config(name: str, theta: float, kind: str, values: dict[str, float]) -> RopeConfig:
    if kind == "default":
        return RopeConfig(theta)
    if kind == "linear":
        return RopeConfig(theta, kind, values["factor"])
    low, high = values["low_freq_factor"], values["high_freq_factor"]
    if not low < high:
        raise UnsupportedRope(f"`{name}.low_freq_factor` {low} is not below `{name}.high_freq_factor` {high}")
    return RopeConfig(theta, kind, values["factor"], low, high, int(values["original_max_position_embeddings"]))


def rope_table(config: RopeConfig, head_dim: int, positions: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines, each (positions, head_dim / 2) float32."""
    angles = torch.arange(positions, dtype=torch.float32)[:, None] * frequencies(config, head_dim)[None, :]
    return angles.cos(), angles.sin()


def frequencies(config: RopeConfig, head_dim: int) -> torch.Tensor:
    """Radians per position for each pair of dimensions: (head_dim / 2,) float32."""
    exponents = torch.arange(0, head_dim, 2, dtype=torch.int64).float() / head_dim
    plain = 1.0 / (config.theta ** exponents)
    if config.kind == "default":
        return plain
    if config.kind == "linear":
        return plain / config.factor
    assert config.kind == "llama3", config
    return _llama3(config, plain)


def _llama3(config: RopeConfig, plain: torch.Tensor) -> torch.Tensor:
    wavelength = 2 * math.pi / plain
    long = config.original_positions / config.low_freq_factor
    short = config.original_positions / config.high_freq_factor
    blend = (config.original_positions / wavelength - config.low_freq_factor) / (config.high_freq_factor - config.low_freq_factor)
    scaled = torch.where(wavelength > long, plain / config.factor, plain)
    middle = (1 - blend) * plain / config.factor + blend * plain
    return torch.where((wavelength >= short) & (wavelength <= long), middle, scaled)


def rotate(x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    """Turn each head's pairs (i, i + head_dim / 2) by the token's angle.

    x: (tokens, heads, head_dim) float32; cosines, sines: (tokens, 1, head_dim / 2) float32.  A new tensor of x's shape.
    """
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cosines - second * sines, second * cosines + first * sines), dim=-1)
