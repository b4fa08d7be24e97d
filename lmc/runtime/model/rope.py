"""Rotary position embedding: the table of angles, with the position scalings that are supported, and the rotation.

    scaling   frequency of pair i, f = theta ** (-2i / head_dim)
    none      f
    linear    f / factor
    dynamic   f within the trained context; behind it that of a larger theta, which grows with the position
    llama3    f where the wavelength is short, f / factor where it is long, a blend between (Llama 3.1)
    yarn      f for the first pairs, f / factor for the last, a blend between; cosines and sines times the attention factor

Dynamic scaling chooses theta by the length of the text so far.  The angle of position p is that of a text which ends there, p + 1 long: it
depends on p alone, so the keys of a prefix are the same in every text, as they are for transformers when it decodes token by token.
The formulas are those of transformers, in float32 as there, so that greedy texts agree token for token.  This file does not know
heads or the pool.
"""

from __future__ import annotations

import math

import torch

from lmc.runtime.model.rope_config import RopeConfig


def rope_table(config: RopeConfig, head_dim: int, positions: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines, each (positions, head_dim / 2) float32."""
    places = torch.arange(positions, dtype=torch.float32)[:, None]
    angles = places * frequencies(config, head_dim)[None, :]
    trained = config.original_positions
    if config.kind == "dynamic" and positions > trained:
        angles[trained:] = places[trained:] * _grown(config, head_dim, places[trained:] + 1)
    return angles.cos() * config.attention_factor, angles.sin() * config.attention_factor


def frequencies(config: RopeConfig, head_dim: int) -> torch.Tensor:
    """Radians per position for each pair of dimensions, of dynamic scaling within the trained context: (head_dim / 2,) float32."""
    plain = 1.0 / (config.theta ** _exponents(head_dim))
    if config.kind in ("default", "dynamic"):
        return plain
    if config.kind == "linear":
        return plain / config.factor
    if config.kind == "yarn":
        return _yarn(config, head_dim)
    assert config.kind == "llama3", config
    return _llama3(config, plain)


def _exponents(head_dim: int) -> torch.Tensor:
    return torch.arange(0, head_dim, 2, dtype=torch.int64).float() / head_dim


def _grown(config: RopeConfig, head_dim: int, lengths: torch.Tensor) -> torch.Tensor:
    """Frequencies at the end of texts longer than the trained context.  lengths: (n, 1) float32; (n, head_dim / 2) float32."""
    stretch = config.factor * lengths / config.original_positions - (config.factor - 1)
    # A lone pair turns by one radian whatever theta is.
    return 1.0 / (config.theta * stretch ** (head_dim / max(head_dim - 2, 1))) ** _exponents(head_dim)


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
