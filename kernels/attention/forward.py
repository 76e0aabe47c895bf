"""Attention, forward, without the matrix of scores in memory (host side: ditron/ops/attention).

Q and the result are [batch, heads, queries, HEAD_DIM], K and V are [batch, kv_heads, keys, HEAD_DIM], all contiguous. Query
head h reads K and V of head h // (heads / kv_heads). A block computes BLOCK_M rows of one head: it goes over K and V in
steps of BLOCK_N, and keeps for each row the largest score, the sum of the powers and the weighted sum of V; when a larger
score turns up, what was summed is scaled down (online softmax).
"""
import triton
import triton.language as tl

from .softmax import log_sum_exp, scores_to_powers


@triton.jit
def attention_forward(q_ptr, k_ptr, v_ptr, out_ptr, heads, group, queries, keys, score_scale, CAUSAL: tl.constexpr,
                      HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, lse_ptr=None):
    """out = softmax(Q K^T * score_scale / log2(e)) V: score_scale already has the factor log2(e).

    group: heads / kv_heads. CAUSAL: query i sees the keys up to i + keys - queries. A query that sees none gives zeros.
    lse: [batch, heads, queries] float32, the natural logarithm of each row's sum of exp(score); -inf of a query that sees no key.
    Grid: (rows of tiles, batch * heads).
    """
    # The last rows of tiles have the most work when CAUSAL: they start first.
    tile = tl.num_programs(0) - 1 - tl.program_id(0)
    batch = tl.program_id(1) // heads
    head = tl.program_id(1) % heads
    kv_heads = heads // group
    first_query = tile * BLOCK_M
    query_rows = first_query + tl.arange(0, BLOCK_M)
    depths = tl.arange(0, HEAD_DIM)
    key_rows = tl.arange(0, BLOCK_N)
    q_head = tl.cast(batch * heads + head, tl.int64) * queries * HEAD_DIM
    kv_head = tl.cast(batch * kv_heads + head // group, tl.int64) * keys * HEAD_DIM
    query_offsets = query_rows[:, None] * HEAD_DIM + depths[None, :]
    query_mask = query_rows[:, None] < queries
    q = tl.load(q_ptr + q_head + query_offsets, mask=query_mask, other=0.0)

    # Keys below `unmasked` are seen by all rows of the tile; those from there to `end` by some.
    end = keys
    unmasked = (keys // BLOCK_N) * BLOCK_N
    if CAUSAL:
        shift = keys - queries
        end = max(min(keys, first_query + BLOCK_M + shift), 0)
        unmasked = min(unmasked, max(first_query + 1 + shift, 0) // BLOCK_N * BLOCK_N)

    largest = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    accumulator = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
    k_ptrs = k_ptr + kv_head + (depths[:, None] + key_rows[None, :] * HEAD_DIM)
    v_ptrs = v_ptr + kv_head + (key_rows[:, None] * HEAD_DIM + depths[None, :])
    for first_key in range(0, unmasked, BLOCK_N):
        k = tl.load(k_ptrs)
        scores = tl.dot(q, k) * score_scale
        largest, rescale, powers = scores_to_powers(scores, largest)
        total = total * rescale + tl.sum(powers, axis=1)
        v = tl.load(v_ptrs)
        accumulator = tl.dot(powers.to(v_ptr.dtype.element_ty), v, accumulator * rescale[:, None])
        k_ptrs += BLOCK_N * HEAD_DIM
        v_ptrs += BLOCK_N * HEAD_DIM
    for first_key in range(unmasked, end, BLOCK_N):
        left = keys - first_key
        k = tl.load(k_ptrs, mask=key_rows[None, :] < left, other=0.0)
        scores = tl.dot(q, k) * score_scale
        seen = key_rows[None, :] < left
        if CAUSAL:
            seen = seen & (first_key + key_rows[None, :] <= query_rows[:, None] + (keys - queries))
        scores = tl.where(seen, scores, float("-inf"))
        largest, rescale, powers = scores_to_powers(scores, largest)
        total = total * rescale + tl.sum(powers, axis=1)
        v = tl.load(v_ptrs, mask=key_rows[:, None] < left, other=0.0)
        accumulator = tl.dot(powers.to(v_ptr.dtype.element_ty), v, accumulator * rescale[:, None])
        k_ptrs += BLOCK_N * HEAD_DIM
        v_ptrs += BLOCK_N * HEAD_DIM

    if lse_ptr is not None:
        rows = tl.cast(tl.program_id(1), tl.int64) * queries + query_rows
        tl.store(lse_ptr + rows, log_sum_exp(largest, total), mask=query_rows < queries)
    accumulator = accumulator / tl.where(total == 0.0, 1.0, total)[:, None]
    tl.store(out_ptr + q_head + query_offsets, accumulator.to(out_ptr.dtype.element_ty), mask=query_mask)
