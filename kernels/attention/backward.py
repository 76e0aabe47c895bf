"""Attention, backward: gradients of Q, K and V from those of the result (host side: ditron/ops/attention).

With s = score_scale * q k and P = exp(s - lse), all of them tiles that are computed again:
    delta = rowsum(gradient * out)
    dV = P^T gradient      dS = P * (gradient V^T - delta)      dK = scale * dS^T Q      dQ = scale * dS K
One kernel sums over the queries, for dK and dV, and one over the keys, for dQ: seven products instead of five, and no sum that depends on
which block comes first. The query heads of a group are summed in their order.

Layouts, options and packed rows are those of forward.py; the result and its gradient lie like Q, and each gradient like its tensor. Rows of
log-sum-exp (times log2(e), +inf where there is no row or no key) and of delta are float32 [batches * heads, padded], of packed rows
[heads, padded], a batch beginning at a multiple of PAD: a tile needs no mask for them.
"""
import triton
import triton.language as tl

from .scores import LOG2E, changed_scores, is_seen, key_range, query_range, sequence, slope_of_change

# Rows that a tile of queries divides (AttentionBackward.cpp has the number, too).
PAD = tl.constexpr(128)


@triton.jit
def padded_row(head, batch, heads, query_begin, query_offsets_ptr):
    """Where the log-sum-exp and the delta of a batch's head begin: in which row of `padded` elements, and where in it."""
    if query_offsets_ptr is None:
        return batch * heads + head, 0
    return head, (query_begin + batch * PAD) // PAD * PAD


@triton.jit
def padded_begin(head, batch, heads, query_begin, padded, query_offsets_ptr):
    row, begin = padded_row(head, batch, heads, query_begin, query_offsets_ptr)
    return tl.cast(row, tl.int64) * padded + begin


@triton.jit
def gradient_rows(out_ptr, gradient_ptr, lse_ptr, padded_lse_ptr, delta_ptr, batches, heads, queries, q_batch, q_head, q_row, padded,
                  HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, query_offsets_ptr=None):
    """padded_lse and delta. Grid: (tiles of the longest batch's padded rows, batches * heads)."""
    HEAD_BLOCK: tl.constexpr = triton.next_power_of_2(HEAD_DIM)
    batch = tl.program_id(1) // heads
    head = tl.program_id(1) % heads
    lse_row = tl.cast(tl.program_id(1), tl.int64) * queries
    query_begin, queries = sequence(query_offsets_ptr, batch, queries)
    base = tl.cast(head, tl.int64) * q_head
    if query_offsets_ptr is None:
        base += tl.cast(batch, tl.int64) * q_batch
    else:
        base += tl.cast(query_begin, tl.int64) * q_row
        lse_row = tl.cast(head, tl.int64) * tl.load(query_offsets_ptr + batches) + query_begin
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.arange(0, HEAD_BLOCK)
    mask = (rows < queries)[:, None] & (columns < HEAD_DIM)[None, :]
    places = base + rows.to(tl.int64)[:, None] * q_row + columns[None, :]
    out = tl.load(out_ptr + places, mask=mask, other=0.0).to(tl.float32)
    gradient = tl.load(gradient_ptr + places, mask=mask, other=0.0).to(tl.float32)
    lse = tl.load(lse_ptr + lse_row + rows, mask=rows < queries, other=float("-inf"))
    lse = tl.where(lse == float("-inf"), float("inf"), lse * LOG2E)
    place = padded_begin(head, batch, heads, query_begin, padded, query_offsets_ptr)
    is_row = rows < tl.cdiv(queries, PAD) * PAD
    tl.store(padded_lse_ptr + place + rows, lse, mask=is_row)
    tl.store(delta_ptr + place + rows, tl.sum(out * gradient, axis=1), mask=is_row)


@triton.jit
def sink_gradients(padded_lse_ptr, delta_ptr, sinks_ptr, dsinks_ptr, batches, heads, padded, BLOCK: tl.constexpr):
    """dsink = -sum over the rows of a head of exp(sink - lse) * delta; batches: 1 of packed rows. Rows that are none have lse +inf, or a delta of zero.
    Grid: heads."""
    head = tl.program_id(0)
    sink = tl.load(sinks_ptr + head) * LOG2E
    rows = tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK,), tl.float32)
    for batch in range(0, batches):
        place = tl.cast(batch * heads + head, tl.int64) * padded
        for first in range(0, padded, BLOCK):
            is_row = first + rows < padded
            lse = tl.load(padded_lse_ptr + place + first + rows, mask=is_row, other=float("inf"))
            sums += tl.exp2(sink - lse) * tl.load(delta_ptr + place + first + rows, mask=is_row, other=0.0)
    tl.store(dsinks_ptr + head, -tl.sum(sums, axis=0))


@triton.jit
def batch_begin(batch, begin, batch_stride, row_stride, offsets_ptr):
    """Where a batch lies from the first element on; of packed rows it begins with row `begin`."""
    base = tl.cast(batch, tl.int64) * batch_stride
    if offsets_ptr is not None:
        base = tl.cast(begin, tl.int64) * row_stride
    return base


@triton.jit
def key_gradients(q_ptr, k_ptr, v_ptr, gradient_ptr, padded_lse_ptr, delta_ptr, dk_ptr, dv_ptr, heads, kv_heads, queries, keys, q_batch, q_head, q_row,
                  k_batch, k_head, k_row, padded, score_scale, scale, CAUSAL: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr,
                  BLOCK_N: tl.constexpr, window=None, soft_cap=None, slopes_ptr=None, query_offsets_ptr=None, key_offsets_ptr=None):
    """dk and dv of one tile of keys. Grid: (tiles of the longest batch's keys, batches * kv_heads)."""
    HEAD_BLOCK: tl.constexpr = triton.next_power_of_2(HEAD_DIM)
    group = heads // kv_heads
    batch = tl.program_id(1) // kv_heads
    kv_head = tl.program_id(1) % kv_heads
    query_begin, queries = sequence(query_offsets_ptr, batch, queries)
    key_begin, keys = sequence(key_offsets_ptr, batch, keys)
    q_base = batch_begin(batch, query_begin, q_batch, q_row, query_offsets_ptr)
    k_base = batch_begin(batch, key_begin, k_batch, k_row, key_offsets_ptr)
    k_base += tl.cast(kv_head, tl.int64) * k_head
    first_key = tl.program_id(0) * BLOCK_N
    shift = keys - queries
    key_rows = tl.arange(0, BLOCK_N)
    rows = tl.arange(0, BLOCK_M)
    columns = tl.arange(0, HEAD_BLOCK)
    key_places = k_base + (first_key + key_rows).to(tl.int64)[:, None] * k_row + columns[None, :]
    key_mask = (first_key + key_rows < keys)[:, None] & (columns < HEAD_DIM)[None, :]
    k = tl.load(k_ptr + key_places, mask=key_mask, other=0.0)
    v = tl.load(v_ptr + key_places, mask=key_mask, other=0.0)
    begin, unmasked, partial, end = query_range(first_key, queries, keys, window, CAUSAL, BLOCK_M, BLOCK_N)
    if key_offsets_ptr is not None:
        end = tl.where(first_key < keys, end, begin)
    dk = tl.zeros((BLOCK_N, HEAD_BLOCK), dtype=tl.float32)
    dv = tl.zeros((BLOCK_N, HEAD_BLOCK), dtype=tl.float32)
    for member in range(0, group):
        head = kv_head * group + member
        base = q_base + tl.cast(head, tl.int64) * q_head
        place = padded_begin(head, batch, heads, query_begin, padded, query_offsets_ptr)
        slope = None
        if slopes_ptr is not None:
            slope = tl.load(slopes_ptr + head) * LOG2E
        for first_query in range(begin, end, BLOCK_M):
            mask = (first_query + rows < queries)[:, None] & (columns < HEAD_DIM)[None, :]
            places = base + (first_query + rows).to(tl.int64)[:, None] * q_row + columns[None, :]
            q = tl.load(q_ptr + places, mask=mask, other=0.0)
            gradient = tl.load(gradient_ptr + places, mask=mask, other=0.0)
            scores = tl.dot(k, q.T)
            change = 1.0
            factor = score_scale
            if soft_cap is not None or slope is not None:
                query_places = (first_query + rows + (shift - first_key))[None, :]
                change = slope_of_change(scores, score_scale, soft_cap)
                scores = changed_scores(scores, score_scale, query_places, key_rows[:, None], slope, soft_cap)
                factor = 1.0
            lse = tl.load(padded_lse_ptr + place + first_query + rows)
            powers = tl.exp2(scores * factor - lse[None, :])
            if CAUSAL or window is not None:
                query_places = (first_query + rows + (shift - first_key))[None, :]
                powers = tl.where(is_seen(query_places, key_rows[:, None], keys - first_key, window, CAUSAL), powers, 0.0)
            dv = tl.dot(powers.to(q.dtype), gradient, dv)
            products = tl.dot(v, gradient.T)
            delta = tl.load(delta_ptr + place + first_query + rows)
            slopes = powers * (products - delta[None, :]) * change
            dk = tl.dot(slopes.to(q.dtype), q, dk)
    tl.store(dk_ptr + key_places, (dk * scale).to(dk_ptr.dtype.element_ty), mask=key_mask)
    tl.store(dv_ptr + key_places, dv.to(dv_ptr.dtype.element_ty), mask=key_mask)


@triton.jit
def query_gradient(q_ptr, k_ptr, v_ptr, gradient_ptr, padded_lse_ptr, delta_ptr, dq_ptr, heads, kv_heads, queries, keys, q_batch, q_head, q_row, k_batch,
                   k_head, k_row, padded, score_scale, scale, CAUSAL: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr,
                   BLOCK_N: tl.constexpr, window=None, soft_cap=None, slopes_ptr=None, query_offsets_ptr=None, key_offsets_ptr=None):
    """dq of one tile of queries. Grid: (tiles of the longest batch's queries, batches * heads)."""
    HEAD_BLOCK: tl.constexpr = triton.next_power_of_2(HEAD_DIM)
    tile = tl.num_programs(0) - 1 - tl.program_id(0)
    batch = tl.program_id(1) // heads
    head = tl.program_id(1) % heads
    query_begin, queries = sequence(query_offsets_ptr, batch, queries)
    key_begin, keys = sequence(key_offsets_ptr, batch, keys)
    q_base = batch_begin(batch, query_begin, q_batch, q_row, query_offsets_ptr)
    k_base = batch_begin(batch, key_begin, k_batch, k_row, key_offsets_ptr)
    q_base += tl.cast(head, tl.int64) * q_head
    k_base += tl.cast(head // (heads // kv_heads), tl.int64) * k_head
    first_query = tile * BLOCK_M
    rows = tl.arange(0, BLOCK_M)
    key_rows = tl.arange(0, BLOCK_N)
    columns = tl.arange(0, HEAD_BLOCK)
    mask = (first_query + rows < queries)[:, None] & (columns < HEAD_DIM)[None, :]
    places = q_base + (first_query + rows).to(tl.int64)[:, None] * q_row + columns[None, :]
    q = tl.load(q_ptr + places, mask=mask, other=0.0)
    gradient = tl.load(gradient_ptr + places, mask=mask, other=0.0)
    row = padded_begin(head, batch, heads, query_begin, padded, query_offsets_ptr) + first_query
    is_row = first_query + rows < queries
    lse = tl.load(padded_lse_ptr + row + rows, mask=is_row, other=float("inf"))
    delta = tl.load(delta_ptr + row + rows, mask=is_row, other=0.0)
    slope = None
    if slopes_ptr is not None:
        slope = tl.load(slopes_ptr + head) * LOG2E
    begin, partial, unmasked, end = key_range(first_query, queries, keys, window, CAUSAL, BLOCK_M, BLOCK_N)
    if query_offsets_ptr is not None:
        end = tl.where(first_query < queries, end, begin)
    dq = tl.zeros((BLOCK_M, HEAD_BLOCK), dtype=tl.float32)
    for first_key in range(begin, end, BLOCK_N):
        key_places = k_base + (first_key + key_rows).to(tl.int64)[:, None] * k_row + columns[None, :]
        key_mask = (first_key + key_rows < keys)[:, None] & (columns < HEAD_DIM)[None, :]
        k = tl.load(k_ptr + key_places, mask=key_mask, other=0.0)
        v = tl.load(v_ptr + key_places, mask=key_mask, other=0.0)
        query_places = (first_query + rows + (keys - queries - first_key))[:, None]
        scores = tl.dot(q, k.T)
        change = 1.0
        factor = score_scale
        if soft_cap is not None or slope is not None:
            change = slope_of_change(scores, score_scale, soft_cap)
            scores = changed_scores(scores, score_scale, query_places, key_rows[None, :], slope, soft_cap)
            factor = 1.0
        powers = tl.exp2(scores * factor - lse[:, None])
        powers = tl.where(is_seen(query_places, key_rows[None, :], keys - first_key, window, CAUSAL), powers, 0.0)
        products = tl.dot(gradient, v.T)
        slopes = powers * (products - delta[:, None]) * change
        dq = tl.dot(slopes.to(q.dtype), k, dq)
    tl.store(dq_ptr + places, (dq * scale).to(dq_ptr.dtype.element_ty), mask=mask)
