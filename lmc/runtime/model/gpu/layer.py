"""A layer's small operations on a GPU: each function launches one kernel of `small_kernels.py` and has the shapes of `llama.py`."""

from __future__ import annotations

import torch
import triton

from lmc.runtime.model.gpu import small_kernels

_GATE_BLOCK = 1024


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float, dtype: torch.dtype) -> torch.Tensor:
    """x: (tokens, hidden) float32; weight: (hidden,) float32 -> (tokens, hidden) of `dtype`."""
    tokens, size = x.shape
    out = torch.empty(tokens, size, dtype=dtype, device=x.device)
    if tokens:
        small_kernels.rms_norm[(tokens,)](x, weight, out, eps, SIZE=size, BLOCK=triton.next_power_of_2(size), num_warps=4,
                                          enable_fp_fusion=True)
    return out


def rotate_and_store(qkv: torch.Tensor, query_norm: torch.Tensor | None, key_norm: torch.Tensor | None, eps: float,
                     cosines: torch.Tensor, sines: torch.Tensor, new_slots: torch.Tensor, pool_k: torch.Tensor, pool_v: torch.Tensor,
                     heads: int) -> torch.Tensor:
    """Put keys and values of the tokens into the pool; return the rotated queries (tokens, heads, head_dim).

    qkv: (tokens, heads + 2 * kv_heads, head_dim), contiguous; norms: (head_dim,) float32 or both None
    cosines, sines: (tokens, head_dim / 2) float32; new_slots: (tokens,) int32
    """
    tokens, _, head_dim = qkv.shape
    kv_heads = pool_k.shape[1]
    q = torch.empty(tokens, heads, head_dim, dtype=qkv.dtype, device=qkv.device)
    # A kernel wants a pointer even where it reads nothing.
    norms = (cosines, cosines) if query_norm is None else (query_norm, key_norm)
    small_kernels.rotate_and_store[tokens, heads + 2 * kv_heads](
        qkv, *norms, cosines, sines, new_slots, q, pool_k, pool_v, eps, HEADS=heads, KV_HEADS=kv_heads, HEAD_DIM=head_dim,
        BLOCK=triton.next_power_of_2(head_dim // 2), NORMED=query_norm is not None, num_warps=1, enable_fp_fusion=True)
    return q


def gate(gate_value: torch.Tensor) -> torch.Tensor:
    """silu(gate) * value.  gate_value: (tokens, 2 * intermediate), gates first -> (tokens, intermediate)."""
    tokens, double = gate_value.shape
    out = gate_value.new_empty(tokens, double // 2)
    blocks = triton.cdiv(double // 2, _GATE_BLOCK)
    small_kernels.gate[tokens, blocks](gate_value, out, SIZE=double // 2, BLOCK=_GATE_BLOCK, num_warps=4, enable_fp_fusion=True)
    return out
