"""Attention, backward, for GPUs with tensor copies: what backward.py computes, in persistent programs whose tiles a warp of its own fetches. Both
kernels keep the operand of their last product in registers, which is why the one for dK and dV computes the transposed scores. Rows of log-sum-exp and of
delta come with the tiles: they are of other queries in each turn there, and to wait for memory took a quarter of its time."""
import triton
import triton.language as tl

from .backward import padded_begin, padded_row
from .scores import LOG2E, changed_scores, is_seen, item_of_step, key_range, query_range, sequence, share_of_steps, slope_of_change, tile_of_item


@triton.jit
def tiles_of(ptr, batches, heads, rows, batch, head, row, BLOCK: tl.constexpr, HEAD_DIM: tl.constexpr):
    """A descriptor of [batches, heads, rows, HEAD_DIM] with these strides, for tiles of BLOCK rows of a head."""
    return tl.make_tensor_descriptor(ptr, shape=[batches, heads, rows, HEAD_DIM], strides=[batch, head, row, 1],
                                     block_shape=[1, 1, BLOCK, triton.next_power_of_2(HEAD_DIM)])


@triton.jit
def key_gradients_by_descriptors(q_ptr, k_ptr, v_ptr, gradient_ptr, padded_lse_ptr, delta_ptr, dk_ptr, dv_ptr, row_heads, batches, heads, kv_heads, queries, keys,
                                 q_batches, q_rows, k_batches, k_rows, q_batch, q_head, q_row, k_batch, k_head, k_row, padded, score_scale, scale,
                                 CAUSAL: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, window=None,
                                 soft_cap=None, slopes_ptr=None, query_offsets_ptr=None, key_offsets_ptr=None):
    """q_batches, q_rows, k_batches, k_rows: batches in memory and rows of each; packed rows are one batch. row_heads: heads of all batches in memory."""
    HEAD_BLOCK: tl.constexpr = triton.next_power_of_2(HEAD_DIM)
    q_desc = tiles_of(q_ptr, q_batches, heads, q_rows, q_batch, q_head, q_row, BLOCK_M, HEAD_DIM)
    gradient_desc = tiles_of(gradient_ptr, q_batches, heads, q_rows, q_batch, q_head, q_row, BLOCK_M, HEAD_DIM)
    k_desc = tiles_of(k_ptr, k_batches, kv_heads, k_rows, k_batch, k_head, k_row, BLOCK_N, HEAD_DIM)
    v_desc = tiles_of(v_ptr, k_batches, kv_heads, k_rows, k_batch, k_head, k_row, BLOCK_N, HEAD_DIM)
    lse_desc = tl.make_tensor_descriptor(padded_lse_ptr, shape=[row_heads, padded], strides=[padded, 1], block_shape=[1, BLOCK_M])
    delta_desc = tl.make_tensor_descriptor(delta_ptr, shape=[row_heads, padded], strides=[padded, 1], block_shape=[1, BLOCK_M])
    if key_offsets_ptr is None:
        dk_desc = tiles_of(dk_ptr, k_batches, kv_heads, k_rows, k_batch, k_head, k_row, BLOCK_N, HEAD_DIM)
        dv_desc = tiles_of(dv_ptr, k_batches, kv_heads, k_rows, k_batch, k_head, k_row, BLOCK_N, HEAD_DIM)
    group = heads // kv_heads
    tiles = tl.cdiv(keys, BLOCK_N)
    # When CAUSAL the first tiles have the most work: first and last ones come by turns.
    together, steps = share_of_steps(tiles * batches * kv_heads, CAUSAL)
    for step in tl.range(0, steps, warp_specialize=True):
        item = item_of_step(step, together)
        batch, kv_head, tile = tile_of_item(item, kv_heads, tiles, CAUSAL, False)
        query_begin, batch_queries = sequence(query_offsets_ptr, batch, queries)
        key_begin, batch_keys = sequence(key_offsets_ptr, batch, keys)
        first_key = tile * BLOCK_N
        shift = batch_keys - batch_queries
        key_rows = tl.arange(0, BLOCK_N)
        begin, unmasked, partial, end = query_range(first_key, batch_queries, batch_keys, window, CAUSAL, BLOCK_M, BLOCK_N)
        q_place = batch
        k_place = batch
        if query_offsets_ptr is not None:
            q_place = 0
        if key_offsets_ptr is not None:
            k_place = 0
            end = tl.where(first_key < batch_keys, end, begin)
        dk = tl.zeros((BLOCK_N, HEAD_BLOCK), dtype=tl.float32)
        dv = tl.zeros((BLOCK_N, HEAD_BLOCK), dtype=tl.float32)
        k = k_desc.load([k_place, kv_head, key_begin + first_key, 0]).reshape([BLOCK_N, HEAD_BLOCK])
        v = v_desc.load([k_place, kv_head, key_begin + first_key, 0]).reshape([BLOCK_N, HEAD_BLOCK])
        turns = tl.cdiv(max(end - begin, 0), BLOCK_M)
        for turn in range(0, turns * group):
            head = kv_head * group + turn // turns
            first_query = begin + turn % turns * BLOCK_M
            rows = tl.arange(0, BLOCK_M)
            row_head, row_begin = padded_row(head, batch, heads, query_begin, query_offsets_ptr)
            q = q_desc.load([q_place, head, query_begin + first_query, 0]).reshape([BLOCK_M, HEAD_BLOCK])
            scores = tl.dot(k, q.T)
            change = 1.0
            factor = score_scale
            if soft_cap is not None or slopes_ptr is not None:
                slope = None
                if slopes_ptr is not None:
                    slope = tl.load(slopes_ptr + head) * LOG2E
                query_places = (rows + (first_query + shift - first_key))[None, :]
                change = slope_of_change(scores, score_scale, soft_cap)
                scores = changed_scores(scores, score_scale, query_places, key_rows[:, None], slope, soft_cap)
                factor = 1.0
            powers = tl.exp2(scores * factor - lse_desc.load([row_head, row_begin + first_query]))
            if CAUSAL or window is not None:
                masked = first_query < unmasked
                if window is not None:
                    masked = masked | (first_query > partial)
                if masked:
                    query_places = (rows + (first_query + shift - first_key))[None, :]
                    seen = is_seen(query_places, key_rows[:, None], batch_keys - first_key, window, CAUSAL)
                    powers = tl.where(seen, powers, 0.0)
            gradient = gradient_desc.load([q_place, head, query_begin + first_query, 0]).reshape([BLOCK_M, HEAD_BLOCK])
            products = tl.dot(v, gradient.T)
            dv = tl.dot(powers.to(q_ptr.dtype.element_ty), gradient, dv)
            slopes = powers * (products - delta_desc.load([row_head, row_begin + first_query])) * change
            dk = tl.dot(slopes.to(q_ptr.dtype.element_ty), q, dk)
        dk = (dk * scale).to(dk_ptr.dtype.element_ty)
        if key_offsets_ptr is None:
            dk_desc.store([batch, kv_head, first_key, 0], dk.reshape([1, 1, BLOCK_N, HEAD_BLOCK]))
            dv_desc.store([batch, kv_head, first_key, 0], dv.to(dv_ptr.dtype.element_ty).reshape([1, 1, BLOCK_N, HEAD_BLOCK]))
        else:  # rows behind the last one are another batch's
            columns = tl.arange(0, HEAD_BLOCK)
            mask = (first_key + key_rows < batch_keys)[:, None] & (columns < HEAD_DIM)[None, :]
            places = tl.cast(kv_head, tl.int64) * k_head + (key_begin + first_key + key_rows).to(tl.int64)[:, None] * k_row + columns[None, :]
            tl.store(dk_ptr + places, dk, mask=mask)
            tl.store(dv_ptr + places, dv.to(dv_ptr.dtype.element_ty), mask=mask)


@triton.jit
def query_gradient_by_descriptors(q_ptr, k_ptr, v_ptr, gradient_ptr, padded_lse_ptr, delta_ptr, dq_ptr, batches, heads, kv_heads, queries, keys, q_batches,
                                  q_rows, k_batches, k_rows, q_batch, q_head, q_row, k_batch, k_head, k_row, padded, score_scale, scale,
                                  CAUSAL: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, window=None,
                                  soft_cap=None, slopes_ptr=None, query_offsets_ptr=None, key_offsets_ptr=None):
    HEAD_BLOCK: tl.constexpr = triton.next_power_of_2(HEAD_DIM)
    q_desc = tiles_of(q_ptr, q_batches, heads, q_rows, q_batch, q_head, q_row, BLOCK_M, HEAD_DIM)
    gradient_desc = tiles_of(gradient_ptr, q_batches, heads, q_rows, q_batch, q_head, q_row, BLOCK_M, HEAD_DIM)
    k_desc = tiles_of(k_ptr, k_batches, kv_heads, k_rows, k_batch, k_head, k_row, BLOCK_N, HEAD_DIM)
    v_desc = tiles_of(v_ptr, k_batches, kv_heads, k_rows, k_batch, k_head, k_row, BLOCK_N, HEAD_DIM)
    if query_offsets_ptr is None:
        dq_desc = tiles_of(dq_ptr, q_batches, heads, q_rows, q_batch, q_head, q_row, BLOCK_M, HEAD_DIM)
    group = heads // kv_heads
    tiles = tl.cdiv(queries, BLOCK_M)
    together, steps = share_of_steps(tiles * batches * heads, CAUSAL)
    for step in tl.range(0, steps, warp_specialize=True):
        item = item_of_step(step, together)
        batch, head, tile = tile_of_item(item, heads, tiles, CAUSAL, True)
        query_begin, batch_queries = sequence(query_offsets_ptr, batch, queries)
        key_begin, batch_keys = sequence(key_offsets_ptr, batch, keys)
        first_query = tile * BLOCK_M
        shift = batch_keys - batch_queries
        rows = tl.arange(0, BLOCK_M)
        key_rows = tl.arange(0, BLOCK_N)
        begin, partial, unmasked, end = key_range(first_query, batch_queries, batch_keys, window, CAUSAL, BLOCK_M, BLOCK_N)
        q_place = batch
        k_place = batch
        if query_offsets_ptr is not None:
            q_place = 0
            end = tl.where(first_query < batch_queries, end, begin)
        if key_offsets_ptr is not None:
            k_place = 0
        slope = None
        if slopes_ptr is not None:
            slope = tl.load(slopes_ptr + head) * LOG2E
        place = padded_begin(head, batch, heads, query_begin, padded, query_offsets_ptr) + first_query
        is_row = rows < batch_queries - first_query
        lse = tl.load(padded_lse_ptr + place + rows, mask=is_row, other=float("inf"))
        delta = tl.load(delta_ptr + place + rows, mask=is_row, other=0.0)
        dq = tl.zeros((BLOCK_M, HEAD_BLOCK), dtype=tl.float32)
        q = q_desc.load([q_place, head, query_begin + first_query, 0]).reshape([BLOCK_M, HEAD_BLOCK])
        gradient = gradient_desc.load([q_place, head, query_begin + first_query, 0]).reshape([BLOCK_M, HEAD_BLOCK])
        for first_key in range(begin, end, BLOCK_N):
            k = k_desc.load([k_place, head // group, key_begin + first_key, 0]).reshape([BLOCK_N, HEAD_BLOCK])
            scores = tl.dot(q, k.T)
            v = v_desc.load([k_place, head // group, key_begin + first_key, 0]).reshape([BLOCK_N, HEAD_BLOCK])
            products = tl.dot(gradient, v.T)
            change = 1.0
            factor = score_scale
            query_places = (rows + (first_query + shift - first_key))[:, None]
            if soft_cap is not None or slopes_ptr is not None:
                change = slope_of_change(scores, score_scale, soft_cap)
                scores = changed_scores(scores, score_scale, query_places, key_rows[None, :], slope, soft_cap)
                factor = 1.0
            powers = tl.exp2(scores * factor - lse[:, None])
            masked = first_key >= unmasked
            if window is not None:
                masked = masked | (first_key < partial)
            if masked:
                powers = tl.where(is_seen(query_places, key_rows[None, :], batch_keys - first_key, window, CAUSAL), powers, 0.0)
            slopes = powers * (products - delta[:, None]) * change
            dq = tl.dot(slopes.to(q_ptr.dtype.element_ty), k, dq)
        dq = (dq * scale).to(dq_ptr.dtype.element_ty)
        if query_offsets_ptr is None:
            dq_desc.store([batch, head, first_query, 0], dq.reshape([1, 1, BLOCK_M, HEAD_BLOCK]))
        else:  # rows behind the last one are another batch's
            columns = tl.arange(0, HEAD_BLOCK)
            mask = is_row[:, None] & (columns < HEAD_DIM)[None, :]
            places = tl.cast(head, tl.int64) * q_head + (query_begin + first_query + rows).to(tl.int64)[:, None] * q_row + columns[None, :]
            tl.store(dq_ptr + places, dq, mask=mask)
