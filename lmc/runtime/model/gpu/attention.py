"""Attention over the pool on a GPU: launches the kernels of `attention_kernels.py` over a plan of `tiles.py`.

    plan = place(plan_attention(rows, …), device)      once per step
    attend(q, pool_k, pool_v, plan, scale=…)           once per layer

`attend` has the contract of the plain kernel, `lmc.runtime.model.attention.attend`, and the tests hold them together.  On the CPU it
runs under Triton's interpreter only, with TRITON_INTERPRET=1 set before triton is imported.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import torch
import triton

from lmc.runtime.model.gpu.attention_kernels import attend_tiles, merge_partials
from lmc.runtime.model.gpu.tiles import AttentionPlan, Tiles


@dataclass(frozen=True, slots=True)
class Blocks:
    """The shape of a tile: `m` rows (queries times the query heads of a key head), `n` keys at a time."""

    m: int
    n: int
    warps: int
    stages: int


@dataclass(frozen=True, slots=True)
class PlacedPlan:
    """An `AttentionPlan` as int32 tensors on the device of the pool, and the room for its partial results.

    partial: (partials, heads, head_dim) float32; partial_lse: (partials, heads) float32
    """

    slots: torch.Tensor
    single: tuple[torch.Tensor, ...]
    many: tuple[torch.Tensor, ...]
    merge: tuple[torch.Tensor, torch.Tensor, torch.Tensor]
    partial: torch.Tensor
    partial_lse: torch.Tensor


def few_blocks(dtype: torch.dtype, head_dim: int, group: int) -> Blocks:
    """For tiles of few queries.  group: query heads per key head."""
    m = max(16, triton.next_power_of_2(group))
    if dtype == torch.float32:
        return Blocks(m, 32, 4, 2) if head_dim <= 64 else Blocks(m, 16, 4, _float32_stages(head_dim))
    return Blocks(m, 64 if head_dim <= 64 else 32, 4, 2)


def many_blocks(dtype: torch.dtype, head_dim: int) -> Blocks:
    """For tiles of many queries.  The largest that spill no register on sm_80 and sm_90."""
    if dtype == torch.float32:
        return Blocks(32, 32, 4, 2) if head_dim <= 64 else Blocks(16, 16, 4, _float32_stages(head_dim))
    return Blocks(64, 64, 4, 2) if head_dim <= 64 else Blocks(64, 32, 8, 2)


def _float32_stages(head_dim: int) -> int:
    # Found by compiling: the masks of a head that is no power of two leave no registers for a second stage.
    return 2 if head_dim == triton.next_power_of_2(head_dim) else 1


def place(plan: AttentionPlan, *, heads: int, head_dim: int, device: torch.device) -> PlacedPlan:
    """Copy a plan to `device`."""
    def tensors(*arrays):
        return tuple(torch.from_numpy(a).to(device, non_blocking=True) for a in arrays)

    single, many = (tensors(*(getattr(tiles, f.name) for f in fields(Tiles))) for tiles in (plan.single, plan.many))
    return PlacedPlan(*tensors(plan.slots), single, many, tensors(plan.merged_tokens, plan.merge_first, plan.merge_rows),
                      torch.empty(plan.partials, heads, head_dim, device=device), torch.empty(plan.partials, heads, device=device))


def attend(q: torch.Tensor, pool_k: torch.Tensor, pool_v: torch.Tensor, plan: PlacedPlan, *, scale: float) -> torch.Tensor:
    """Causal attention of each query over its row's slots.

    q: (tokens, heads, head_dim); pool_k, pool_v: (slots, kv_heads, head_dim), same dtype as q; scale: factor of q · k
    Returns (tokens, heads * head_dim).  Sums are kept in float32.
    """
    tokens, heads, head_dim = q.shape
    kv_heads = pool_k.shape[1]
    out = torch.empty_like(q)
    kinds = ((plan.single, few_blocks(q.dtype, head_dim, heads // kv_heads)), (plan.many, many_blocks(q.dtype, head_dim)))
    for (query_tokens, query_positions, *tiles), blocks in kinds:
        if len(tiles[0]):
            attend_tiles[len(tiles[0]), kv_heads](
                q, pool_k, pool_v, out, plan.partial, plan.partial_lse, query_tokens, query_positions, plan.slots, *tiles,
                scale * math.log2(math.e), HEADS=heads, KV_HEADS=kv_heads, HEAD_DIM=head_dim,
                BLOCK_D=triton.next_power_of_2(head_dim), BLOCK_M=blocks.m, BLOCK_N=blocks.n, WIDEN=widened(q),
                num_warps=blocks.warps, num_stages=blocks.stages, enable_fp_fusion=True)
    if len(plan.merge[0]):
        merge_partials[len(plan.merge[0]), heads](
            plan.partial, plan.partial_lse, out, *plan.merge, HEADS=heads, HEAD_DIM=head_dim,
            BLOCK_D=triton.next_power_of_2(head_dim), num_warps=1, enable_fp_fusion=True)
    return out.view(tokens, heads * head_dim)


def widened(x: torch.Tensor) -> bool:
    """Whether products take float32 operands: only under the interpreter, which would multiply the raw bits of bfloat16."""
    return not x.is_cuda and x.dtype == torch.bfloat16
