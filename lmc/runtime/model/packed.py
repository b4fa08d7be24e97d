"""Weights as the native step reads them: in blocks of sixteen outputs over 32-bit words.

    weight (outputs, inputs)   ->   packed (blocks, words, 16) int32
                                    word w of output 16 * block + lane: one float32 input, or two neighbouring bfloat16 inputs

Outputs are padded to a block and words to a multiple of 16, with zeros: adding the product of two zeros changes no sum.
This file does not know what the matrices mean; native.h says the same in C.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from lmc.runtime.model.large_memory import LargeMemory

LANES = 16


@dataclass(frozen=True, slots=True)
class Packed:
    """words: (blocks, words, 16) int32; bias: (16 * blocks,) float32 or None; outputs: of the model, without padding."""

    words: torch.Tensor
    bias: torch.Tensor | None
    outputs: int


def pack(memory: LargeMemory, weight: torch.Tensor, bias: torch.Tensor | None = None) -> Packed:
    """weight: (outputs, inputs) float32 or bfloat16; bias: (outputs,) or None; memory: where the words lie."""
    outputs, inputs = weight.shape
    group = LANES * (4 // weight.dtype.itemsize)
    padded = F.pad(weight, (0, -inputs % group, 0, -outputs % LANES)).contiguous()
    words = padded.view(torch.int32).view(-1, LANES, padded.shape[1] * weight.dtype.itemsize // 4)
    return Packed(memory.copy(words.transpose(1, 2)), None if bias is None else pad_lanes(bias), outputs)


def pack_gate_up(memory: LargeMemory, gate_up: torch.Tensor, bias: torch.Tensor | None = None) -> Packed:
    """gate_up: (2 * intermediate, inputs), the gate's rows above the values'.  Blocks of both by turns, so that the two numbers that
    are multiplied come out of one piece of work."""
    by_turns = _by_turns(gate_up)
    return pack(memory, by_turns, None if bias is None else _by_turns(bias[:, None])[:, 0])


def pad_lanes(x: torch.Tensor) -> torch.Tensor:
    """x: (n,) -> float32, padded with zeros to a multiple of sixteen."""
    return F.pad(x.float(), (0, -len(x) % LANES)).contiguous()


def _by_turns(gate_up: torch.Tensor) -> torch.Tensor:
    gate, up = (F.pad(half, (0, 0, 0, -len(half) % LANES)).view(-1, LANES, half.shape[1]) for half in gate_up.chunk(2))
    return torch.stack((gate, up), dim=1).reshape(-1, gate_up.shape[1])
