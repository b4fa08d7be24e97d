"""Rotary position embedding: the table of angles, with the position scalings that are supported, and the rotation.

    scaling   frequency of pair i, f = theta ** (-2i / head_dim)
    none      f
    linear    f / factor
    dynamic   f
    llama3    f where the wavelength is short, f / factor where it is long, a blend between (Llama 3.1)
    yarn      f for the first pairs, f / factor for the last, a blend between; cosines and sines times the attention factor

Dynamic scaling stretches the frequencies once a text outgrows the trained context, all positions together: the keys of the same
prefix would differ from text to text, so none could be kept.  `lmc` gives such a model the trained context, in which it scales
nothing.  The formulas are those of transformers, in float32 as there, so that greedy texts agree token for token.  This file does
not know heads or the pool.
"""

from __future__ import annotations

import math

import torch

from lmc.runtime.model.rope_config import RopeConfig


def rope_table(config: RopeConfig, head_dim: int, positions: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines, each (positions, head_dim / 2) float32."""
    angles = torch.arange(positions, dtype=torch.float32)[:, None] * frequencies(config, head_dim)[None, :]
    return angles.cos() * config.attention_factor, angles.sin() * config.attention_factor


def frequencies(config: RopeConfig, head_dim: int) -> torch.Tensor:
    """Radians per position for each pair of dimensions: (head_dim / 2,) float32."""
    exponents = torch.arange(0, head_dim, 2, dtype=torch.int64).float() / head_dim
    plain = 1.0 / (config.theta ** exponents)
    if config.kind in ("default", "dynamic"):
        return plain
    if config.kind == "linear":
        return plain / config.factor
    if config.kind == "yarn":
        return _yarn(config, head_dim)
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


def _yarn(config: RopeConfig, head_dim: int) -> torch.Tensor:
    low, high = _pair(config, config.beta_fast, head_dim), _pair(config, config.beta_slow, head_dim)
    if config.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, head_dim - 1)
    width = high - low if high != low else 0.001
    kept = 1 - torch.clamp((torch.arange(head_dim // 2, dtype=torch.float32) - low) / width, 0, 1)
    powers = config.theta ** (torch.arange(0, head_dim, 2).float() / head_dim)
    return 1.0 / (config.factor * powers) * (1 - kept) + 1.0 / powers * kept


def _pair(config: RopeConfig, turns: float, head_dim: int) -> float:
    """The pair of dimensions, as a real number, that turns so often within the trained context."""
    return head_dim * math.log(config.original_positions / (turns * 2 * math.pi)) / (2 * math.log(config.theta))


def rotate(x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    """Turn each head's pairs (i, i + head_dim / 2) by the token's angle.

    x: (tokens, heads, head_dim) float32; cosines, sines: (tokens, 1, head_dim / 2) float32.  A new tensor of x's shape.
    """
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cosines - second * sines, second * cosines + first * sines), dim=-1)
