"""The Triton kernels of attention over the pool.

    tile      some queries of one or several rows x a run of keys        one program per tile and key head
    merge     the partial results of a token, by their log-sum-exp       one program per token and head

Extending, decoding and the shared-prefix phase are one kernel, which differ in their tiles (`tiles.py`): a prefill chunk is tiles of
many queries over all they see; a decoding row is one query over runs of its keys (split KV); branches that share slots put their
queries into one tile over the shared run.  The query heads of a key head lie in one tile, so that a key is read once for all of them.

A run's result is a mean under softmax and the log-sum-exp of its scores in base 2; `merge_partials` weighs the runs of a token.
`WIDEN` takes the operands of products to float32: the interpreter multiplies the raw bits of bfloat16.
"""

import triton
import triton.language as tl


@triton.jit
def attend_tiles(q, pool_k, pool_v, out, partial, partial_lse, query_tokens, query_positions, slots,
                 tile_query, tile_count, tile_slot, tile_keys, tile_position, tile_partial, scale_log2,
                 HEADS: tl.constexpr, KV_HEADS: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr,
                 BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, WIDEN: tl.constexpr):
    """Queries of a tile over its run of keys.

    q, out: (tokens, HEADS, HEAD_DIM); pool_k, pool_v: (slots, KV_HEADS, HEAD_DIM)
    partial: (partials, HEADS, HEAD_DIM) float32; partial_lse: (partials, HEADS) float32, base 2
    query_tokens, query_positions: (queries,) the token and the position of each query of the plan
    slots: the slots of all runs, one behind the other
    tile_query, tile_count: a tile's queries are `tile_count` from `tile_query` on; tile_count * (HEADS / KV_HEADS) <= BLOCK_M
    tile_slot, tile_keys, tile_position: its run is `tile_keys` of `slots` from `tile_slot` on; the first key's position
    tile_partial: where its queries' partial results begin, or -1: they are written to `out`
    scale_log2: factor of q · k, times log2(e)
    """
    tile = tl.program_id(0)
    kv_head = tl.program_id(1)
    GROUP: tl.constexpr = HEADS // KV_HEADS
    count = tl.load(tile_count + tile)
    keys = tl.load(tile_keys + tile)
    first_key = tl.load(tile_position + tile)
    run = slots + tl.load(tile_slot + tile)

    m = tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    real = m // GROUP < count
    queries = tl.load(tile_query + tile) + m // GROUP
    heads = kv_head * GROUP + m % GROUP
    tokens = tl.load(query_tokens + queries, mask=real, other=0).to(tl.int64)
    # How many keys of the run each query sees; a query of no token sees none.
    seen = tl.load(query_positions + queries, mask=real, other=-1) - first_key + 1
    inside = d < HEAD_DIM
    query = tl.load(q + (tokens * HEADS + heads)[:, None] * HEAD_DIM + d, mask=real[:, None] & inside, other=0.0)
    if WIDEN:
        query = query.to(tl.float32)

    top, total, acc = attend_run(query, pool_k, pool_v, run, keys, seen, kv_head, d, scale_log2, KV_HEADS, HEAD_DIM, BLOCK_M, BLOCK_D,
                                 BLOCK_N, WIDEN)
    mean = acc / tl.where(total > 0, total, 1.0)[:, None]
    begin = tl.load(tile_partial + tile)
    if begin < 0:
        tl.store(out + (tokens * HEADS + heads)[:, None] * HEAD_DIM + d, mean.to(out.dtype.element_ty), mask=real[:, None] & inside)
    else:
        row = (begin + m // GROUP).to(tl.int64) * HEADS + heads
        tl.store(partial + row[:, None] * HEAD_DIM + d, mean, mask=real[:, None] & inside)
        tl.store(partial_lse + row, tl.where(total > 0, top + tl.log2(tl.where(total > 0, total, 1.0)), float("-inf")), mask=real)


@triton.jit
def attend_run(query, pool_k, pool_v, run, keys, seen, kv_head, d, scale_log2,
               KV_HEADS: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_N: tl.constexpr,
               WIDEN: tl.constexpr):
    """Online softmax of a tile's queries over its run: the highest score in base 2, the sum of weights below it, the weighed values.

    query: (BLOCK_M, BLOCK_D); run: the first of `keys` slots; seen: (BLOCK_M,) how many of them each query sees
    """
    inside = d < HEAD_DIM
    top = tl.full([BLOCK_M], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    for start in range(0, tl.minimum(keys, tl.max(seen)), BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        slot = tl.load(run + n, mask=n < keys, other=0).to(tl.int64)
        place = (slot * KV_HEADS + kv_head) * HEAD_DIM
        key = tl.load(pool_k + place[None, :] + d[:, None], mask=(n < keys)[None, :] & inside[:, None], other=0.0)
        value = tl.load(pool_v + place[:, None] + d[None, :], mask=(n < keys)[:, None] & inside[None, :], other=0.0)
        if WIDEN:
            key, value = key.to(tl.float32), value.to(tl.float32)
        scores = tl.dot(query, key, input_precision="ieee") * scale_log2
        scores = tl.where((n[None, :] < keys) & (n[None, :] < seen[:, None]), scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        # A query that has seen nothing yet: minus infinity less itself would be no number.
        base = tl.where(higher == float("-inf"), 0.0, higher)
        weights = tl.exp2(scores - base[:, None])
        fade = tl.exp2(top - base)
        total = total * fade + tl.sum(weights, 1)
        acc = acc * fade[:, None] + tl.dot(weights.to(value.dtype), value, input_precision="ieee")
        top = higher
    return top, total, acc


@triton.jit
def merge_partials(partial, partial_lse, out, merged_tokens, merge_first, merge_rows,
                   HEADS: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr):
    """The results of a token's runs, weighed by `2 ** lse`, in the order of their positions, so that the sum has one order.

    partial, partial_lse, out: as in `attend_tiles`
    merged_tokens: (merged,) the tokens that have partial results
    merge_first: (merged + 1,) into merge_rows, which lists each token's rows of `partial`
    """
    index = tl.program_id(0)
    head = tl.program_id(1)
    d = tl.arange(0, BLOCK_D)
    inside = d < HEAD_DIM
    top = float("-inf")
    total = 0.0
    acc = tl.zeros([BLOCK_D], tl.float32)
    for i in range(tl.load(merge_first + index), tl.load(merge_first + index + 1)):
        row = tl.load(merge_rows + i).to(tl.int64) * HEADS + head
        lse = tl.load(partial_lse + row)
        mean = tl.load(partial + row * HEAD_DIM + d, mask=inside, other=0.0)
        # The first run of a token holds its position 0, which it sees: the first `higher` is a number, and so is each that follows.
        higher = tl.maximum(top, lse)
        fade = tl.exp2(top - higher)
        weight = tl.exp2(lse - higher)
        total = total * fade + weight
        acc = acc * fade + mean * weight
        top = higher
    token = tl.load(merged_tokens + index).to(tl.int64)
    # Padding merges nothing.
    total = tl.where(total > 0, total, 1.0)
    tl.store(out + (token * HEADS + head) * HEAD_DIM + d, (acc / total).to(out.dtype.element_ty), mask=inside)
