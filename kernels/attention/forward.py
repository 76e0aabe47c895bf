"""Attention, forward, without the matrix of scores in memory (host side: ditron/ops/attention).

A block computes BLOCK_M rows of one head: it goes over K and V in steps of BLOCK_N, and keeps for each row the largest score, the sum of the
powers and the weighted sum of V; when a larger score turns up, what was summed is scaled down (online softmax).

Of a tensor's element the place is batch * batch stride + head * head stride + row * row stride + column. Query head h reads K and V of head
h // group. Rows of a batch are
    rows `queries`, `keys` of it                       without offsets
    rows offsets[batch] to offsets[batch + 1]          with offsets, int32 [batches + 1]: packed one batch behind the other
    the first lengths[batch] of `keys`                 with lengths, int32 [batches]
    row r % PAGE of "batch" table[batch, r // PAGE]    with a table, int32 [batches, table_stride]: K and V in pages
"""
import triton
import triton.language as tl

from .scores import LOG2E, changed_scores, is_seen, key_range, log_sum_exp, power_of, sequence, softmax_begin, softmax_turn


@triton.jit
def rows_of_keys(base_ptr, first_key, key_rows, left, batch, batch_stride, row_stride, table_ptr, table_stride, PAGE: tl.constexpr):
    """Pointers to the rows of a tile of keys."""
    rows = first_key + key_rows
    if table_ptr is None:
        return base_ptr + rows.to(tl.int64) * row_stride
    pages = tl.load(table_ptr + batch * table_stride + rows // PAGE, mask=key_rows < left, other=0)
    return base_ptr + pages.to(tl.int64) * batch_stride + (rows % PAGE) * row_stride


@triton.jit
def turns(begin, end, q, k_base, v_base, largest, total, accumulator, keys, place, batch, k_batch, k_row, v_batch, v_row, table_ptr, table_stride,
          score_scale, slope, soft_cap, window, HEAD_DIM: tl.constexpr, VALUE_DIM: tl.constexpr, CAUSAL: tl.constexpr, MASKED: tl.constexpr,
          PAGE: tl.constexpr, POWER: tl.constexpr, BLOCK_N: tl.constexpr):
    """The tiles of keys from `begin` to `end`; MASKED: some queries may not see some of them, and the last ones may not be there."""
    depths = tl.arange(0, q.shape[1])
    columns = tl.arange(0, accumulator.shape[1])
    key_rows = tl.arange(0, BLOCK_N)
    for first_key in range(begin, end, BLOCK_N):
        left = keys - first_key
        k_mask = None
        v_mask = None
        if MASKED:
            k_mask = (depths[:, None] < HEAD_DIM) & (key_rows[None, :] < left)
            v_mask = (columns[None, :] < VALUE_DIM) & (key_rows[:, None] < left)
        else:
            if HEAD_DIM < q.shape[1]:
                k_mask = depths[:, None] < HEAD_DIM
            if VALUE_DIM < accumulator.shape[1]:
                v_mask = columns[None, :] < VALUE_DIM
        k_rows = rows_of_keys(k_base, first_key, key_rows, left, batch, k_batch, k_row, table_ptr, table_stride, PAGE)
        k = tl.load(k_rows[None, :] + depths[:, None], mask=k_mask)
        scores = tl.dot(q, k)
        factor = score_scale
        if soft_cap is not None or slope is not None:
            scores = changed_scores(scores, score_scale, (place - first_key)[:, None], key_rows[None, :], slope, soft_cap)
            factor = 1.0
        if MASKED:
            seen = is_seen((place - first_key)[:, None], key_rows[None, :], left, window, CAUSAL)
            scores = tl.where(seen & (key_rows < left)[None, :], scores, float("-inf"))
        largest, total, rescale, powers = softmax_turn(scores, factor, largest, total, POWER)
        v_rows = rows_of_keys(v_base, first_key, key_rows, left, batch, v_batch, v_row, table_ptr, table_stride, PAGE)
        v = tl.load(v_rows[:, None] + columns[None, :], mask=v_mask)
        accumulator = tl.dot(powers.to(v.dtype), v, accumulator * rescale[:, None])
    return largest, total, accumulator


@triton.jit
def attention_forward(q_ptr, k_ptr, v_ptr, out_ptr, heads, group, queries, keys, q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head,
                      v_row, out_batch, out_head, out_row, score_scale, CAUSAL: tl.constexpr, HEAD_DIM: tl.constexpr, VALUE_DIM: tl.constexpr,
                      BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, lse_ptr=None, window=None, soft_cap=None, sinks_ptr=None, slopes_ptr=None,
                      query_offsets_ptr=None, key_offsets_ptr=None, key_lengths_ptr=None, table_ptr=None, table_stride=0,
                      PAGE: tl.constexpr = 1):
    """out = softmax(Q K^T * score_scale / log2(e)) V: score_scale, positive, already has the factor log2(e). A query that sees no key gives zeros.

    lse: the natural logarithm of each row's sum of exp(score), float32 [batches, heads, queries], of packed rows [heads, rows]; -inf of a
    query that sees no key. queries: of packed rows those of the longest batch, whose end is that of the last one in memory.
    Grid: (tiles of the longest batch, batches * heads).
    """
    HEAD_BLOCK: tl.constexpr = triton.next_power_of_2(HEAD_DIM)
    VALUE_BLOCK: tl.constexpr = triton.next_power_of_2(VALUE_DIM)
    POWER: tl.constexpr = power_of(v_ptr.dtype.element_ty)
    # The last rows of tiles have the most work when CAUSAL: they start first.
    tile = tl.num_programs(0) - 1 - tl.program_id(0)
    batch = tl.program_id(1) // heads
    head = tl.program_id(1) % heads
    lse_row = tl.cast(tl.program_id(1), tl.int64) * queries
    query_begin, queries = sequence(query_offsets_ptr, batch, queries)
    key_begin, keys = sequence(key_offsets_ptr, batch, keys)
    if key_lengths_ptr is not None:
        keys = tl.load(key_lengths_ptr + batch)
    if query_offsets_ptr is not None:
        lse_row = tl.cast(head, tl.int64) * tl.load(query_offsets_ptr + tl.num_programs(1) // heads) + query_begin
    wide = tl.cast(batch, tl.int64)
    wide_head = tl.cast(head, tl.int64)
    q_base = q_ptr + wide_head * q_head
    out_base = out_ptr + wide_head * out_head
    k_base = k_ptr + wide_head // group * k_head
    v_base = v_ptr + wide_head // group * v_head
    if query_offsets_ptr is None:
        q_base += wide * q_batch
        out_base += wide * out_batch
    else:
        q_base += tl.cast(query_begin, tl.int64) * q_row
        out_base += tl.cast(query_begin, tl.int64) * out_row
    if key_offsets_ptr is not None:
        k_base += tl.cast(key_begin, tl.int64) * k_row
        v_base += tl.cast(key_begin, tl.int64) * v_row
    elif table_ptr is None:
        k_base += wide * k_batch
        v_base += wide * v_batch
    first_query = tile * BLOCK_M
    query_rows = first_query + tl.arange(0, BLOCK_M)
    depths = tl.arange(0, HEAD_BLOCK)
    q_mask = query_rows[:, None] < queries
    if HEAD_DIM < HEAD_BLOCK:
        q_mask = q_mask & (depths[None, :] < HEAD_DIM)
    q = tl.load(q_base + query_rows[:, None].to(tl.int64) * q_row + depths[None, :], mask=q_mask, other=0.0)
    slope = None
    if slopes_ptr is not None:
        slope = tl.load(slopes_ptr + head) * LOG2E

    begin, partial, unmasked, end = key_range(first_query, queries, keys, window, CAUSAL, BLOCK_M, BLOCK_N)
    place = query_rows + (keys - queries)
    largest, total = softmax_begin(sinks_ptr, head, POWER, BLOCK_M)
    accumulator = tl.zeros((BLOCK_M, VALUE_BLOCK), dtype=tl.float32)
    if window is not None:
        plain = min(tl.cdiv(partial, BLOCK_N) * BLOCK_N, end)
        largest, total, accumulator = turns(begin, plain, q, k_base, v_base, largest, total, accumulator, keys, place, batch, k_batch, k_row,
                                                v_batch, v_row, table_ptr, table_stride, score_scale, slope, soft_cap, window, HEAD_DIM, VALUE_DIM, CAUSAL,
                                                True, PAGE, POWER, BLOCK_N)
        begin = max(begin, plain)
    largest, total, accumulator = turns(begin, unmasked, q, k_base, v_base, largest, total, accumulator, keys, place, batch, k_batch, k_row,
                                            v_batch, v_row, table_ptr, table_stride, score_scale, slope, soft_cap, window, HEAD_DIM, VALUE_DIM, CAUSAL,
                                            False, PAGE, POWER, BLOCK_N)
    largest, total, accumulator = turns(max(begin, unmasked), end, q, k_base, v_base, largest, total, accumulator, keys, place, batch, k_batch, k_row,
                                            v_batch, v_row, table_ptr, table_stride, score_scale, slope, soft_cap, window, HEAD_DIM, VALUE_DIM, CAUSAL,
                                            True, PAGE, POWER, BLOCK_N)

    if lse_ptr is not None:
        tl.store(lse_ptr + lse_row + query_rows, log_sum_exp(largest, total, POWER), mask=query_rows < queries)
    accumulator = accumulator / tl.where(total == 0.0, 1.0, total)[:, None]
    columns = tl.arange(0, VALUE_BLOCK)
    out_mask = query_rows[:, None] < queries
    if VALUE_DIM < VALUE_BLOCK:
        out_mask = out_mask & (columns[None, :] < VALUE_DIM)
    tl.store(out_base + query_rows[:, None].to(tl.int64) * out_row + columns[None, :], accumulator.to(out_ptr.dtype.element_ty), mask=out_mask)
