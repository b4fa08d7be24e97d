"""The Triton kernels of a layer's small operations, each one launch in place of several.

    rms_norm          x / sqrt(mean(x²) + eps) * weight
    rotate_and_store  norm of queries and keys (where the model has one), rotation, keys and values to their slots
    gate              silu(gate) * value
"""

import triton
import triton.language as tl


@triton.jit
def rms_norm(x, weight, out, eps, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    """One program per token.  x: (tokens, SIZE) float32; weight: (SIZE,) float32; out: (tokens, SIZE)."""
    token = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    row = tl.load(x + token * SIZE + i, mask=i < SIZE, other=0.0)
    scale = 1.0 / tl.sqrt(tl.sum(row * row, 0) / SIZE + eps)
    normed = tl.load(weight + i, mask=i < SIZE, other=0.0) * (row * scale)
    tl.store(out + token * SIZE + i, normed.to(out.dtype.element_ty), mask=i < SIZE)


@triton.jit
def rotate_and_store(qkv, query_norm, key_norm, cosines, sines, new_slots, q, pool_k, pool_v, eps,
                     HEADS: tl.constexpr, KV_HEADS: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK: tl.constexpr,
                     NORMED: tl.constexpr):
    """One program per token and head of `qkv`: a query goes rotated to `q`, a key rotated and a value as it is to the pool.

    qkv: (tokens, HEADS + 2 * KV_HEADS, HEAD_DIM); query_norm, key_norm: (HEAD_DIM,) float32, read where NORMED
    cosines, sines: (tokens, HEAD_DIM / 2) float32; new_slots: (tokens,) the token's slot
    q: (tokens, HEADS, HEAD_DIM); pool_k, pool_v: (slots, KV_HEADS, HEAD_DIM); BLOCK: a power of two >= HEAD_DIM / 2
    The pairs of a rotation are the elements i and i + HEAD_DIM / 2.
    """
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    HALF: tl.constexpr = HEAD_DIM // 2
    i = tl.arange(0, BLOCK)
    inside = i < HALF
    source = qkv + (token * (HEADS + 2 * KV_HEADS) + head) * HEAD_DIM
    raw_low = tl.load(source + i, mask=inside, other=0.0)
    raw_high = tl.load(source + HALF + i, mask=inside, other=0.0)
    slot = tl.load(new_slots + token).to(tl.int64)
    if head >= HEADS + KV_HEADS:
        target = pool_v + (slot * KV_HEADS + head - HEADS - KV_HEADS) * HEAD_DIM
        tl.store(target + i, raw_low, mask=inside)
        tl.store(target + HALF + i, raw_high, mask=inside)
    else:
        low, high = raw_low.to(tl.float32), raw_high.to(tl.float32)
        if NORMED:
            scale = 1.0 / tl.sqrt((tl.sum(low * low, 0) + tl.sum(high * high, 0)) / HEAD_DIM + eps)
            norm = query_norm if head < HEADS else key_norm
            low = tl.load(norm + i, mask=inside, other=0.0) * (low * scale)
            high = tl.load(norm + HALF + i, mask=inside, other=0.0) * (high * scale)
        cos = tl.load(cosines + token * HALF + i, mask=inside, other=0.0)
        sin = tl.load(sines + token * HALF + i, mask=inside, other=0.0)
        if head < HEADS:
            target = q + (token * HEADS + head) * HEAD_DIM
        else:
            target = pool_k + (slot * KV_HEADS + head - HEADS) * HEAD_DIM
        tl.store(target + i, (low * cos - high * sin).to(target.dtype.element_ty), mask=inside)
        tl.store(target + HALF + i, (high * cos + low * sin).to(target.dtype.element_ty), mask=inside)


@triton.jit
def gate(gate_value, out, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    """One program per token and block.  gate_value: (tokens, 2 * SIZE), the gate before the value; out: (tokens, SIZE)."""
    token = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    gates = tl.load(gate_value + token * 2 * SIZE + i, mask=i < SIZE, other=0.0).to(tl.float32)
    values = tl.load(gate_value + token * 2 * SIZE + SIZE + i, mask=i < SIZE, other=0.0).to(tl.float32)
    tl.store(out + token * SIZE + i, (gates / (1.0 + tl.exp(-gates)) * values).to(out.dtype.element_ty), mask=i < SIZE)
