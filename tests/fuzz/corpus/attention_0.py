import triton
import triton.language as tl
import triton_dist.language as dl
from triton.language.extra import libdevice
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import *

@triton.jit
def scores_to_powers(scores, largest):
    """Running maximum with these scores, factor for what was summed before, and 2 ** (score - maximum)."""
    new_largest = tl.maximum(largest, tl.max(scores, axis=1))
    finite = tl.where(new_largest == float("-inf"), 0.0, new_largest)
    rescale = tl.exp2(largest - finite)
    powers = tl.exp2(scores - finite[:, None])
    return new_largest, rescale, powers


@triton.jit
def attention_forward(q_ptr, k_ptr, v_ptr, out_ptr, heads, group, queries, keys, score_scale, CAUSAL: tl.constexpr,
                      HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """out = softmax(Q K^T * score_scale / log2(e)) V: score_scale already has the factor log2(e).

    group: heads / kv_heads. CAUSAL: query i sees the keys up to i + keys - queries. A query that sees none gives zeros.
    Grid: (rows of tiles, batch * heads).
    """
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

    accumulator = accumulator / tl.where(total == 0.0, 1.0, total)[:, None]
