"""Attention, forward, for GPUs with tensor copies, which fetch whole tiles: K and V go on beside the products, and no warp computes
addresses (docs/warp-specialisation.md)."""
import triton
import triton.language as tl

from .scores import LOG2E, changed_scores, is_seen, item_of_step, key_range, log_sum_exp, power_of, sequence, share_of_steps, softmax_begin, softmax_turn, tile_of_item


@triton.jit
def attention_forward_by_descriptors(q_ptr, k_ptr, v_ptr, out_ptr, batches, heads, kv_heads, queries, keys, q_batches, q_rows, k_batches, k_rows, q_batch, q_head, q_row,
                                     k_batch, k_head, k_row, v_batch, v_head, v_row, out_batch, out_head, out_row, score_scale, CAUSAL: tl.constexpr,
                                     HEAD_DIM: tl.constexpr, VALUE_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, lse_ptr=None,
                                     window=None, soft_cap=None, sinks_ptr=None, slopes_ptr=None, query_offsets_ptr=None, key_offsets_ptr=None,
                                     key_lengths_ptr=None, table_ptr=None, table_stride=0, PAGE: tl.constexpr = 1,
                                     VALUES_TRANSPOSED: tl.constexpr = False):
    """What attention_forward of forward.py computes; of a page BLOCK_N divides the rows.

    q_batches, q_rows, k_batches, k_rows: batches in memory and rows of each; packed rows are one batch, and each page is one.
    VALUES_TRANSPOSED: V is [batches, kv_heads, VALUE_DIM, keys], v_row the stride of its columns.
    """
    HEAD_BLOCK: tl.constexpr = triton.next_power_of_2(HEAD_DIM)
    VALUE_BLOCK: tl.constexpr = triton.next_power_of_2(VALUE_DIM)
    # Wide results leave in halves: what they leave through is taken from the ring of K.
    OUT_BLOCK: tl.constexpr = min(VALUE_BLOCK, 128)
    POWER: tl.constexpr = power_of(v_ptr.dtype.element_ty)
    group = heads // kv_heads
    q_desc = tl.make_tensor_descriptor(q_ptr, shape=[q_batches, heads, q_rows, HEAD_DIM], strides=[q_batch, q_head, q_row, 1],
                                       block_shape=[1, 1, BLOCK_M, HEAD_BLOCK])
    k_desc = tl.make_tensor_descriptor(k_ptr, shape=[k_batches, kv_heads, k_rows, HEAD_DIM], strides=[k_batch, k_head, k_row, 1],
                                       block_shape=[1, 1, BLOCK_N, HEAD_BLOCK])
    if VALUES_TRANSPOSED:
        v_desc = tl.make_tensor_descriptor(v_ptr, shape=[k_batches, kv_heads, VALUE_DIM, k_rows], strides=[v_batch, v_head, v_row, 1],
                                           block_shape=[1, 1, VALUE_BLOCK, BLOCK_N])
    else:
        v_desc = tl.make_tensor_descriptor(v_ptr, shape=[k_batches, kv_heads, k_rows, VALUE_DIM], strides=[v_batch, v_head, v_row, 1],
                                           block_shape=[1, 1, BLOCK_N, VALUE_BLOCK])
    if query_offsets_ptr is None:
        out_desc = tl.make_tensor_descriptor(out_ptr, shape=[q_batches, heads, q_rows, VALUE_DIM], strides=[out_batch, out_head, out_row, 1],
                                             block_shape=[1, 1, BLOCK_M, OUT_BLOCK])
    tiles = tl.cdiv(queries, BLOCK_M)
    key_rows = tl.arange(0, BLOCK_N)
    # Tiles of one head follow each other and share its keys in the L2 cache. When CAUSAL the last ones have the most work: first and last
    # ones come by turns.
    together, steps = share_of_steps(tiles * batches * heads, CAUSAL)
    for step in tl.range(0, steps, warp_specialize=True):
        item = item_of_step(step, together)
        batch, head, tile = tile_of_item(item, heads, tiles, CAUSAL, True)
        query_begin, batch_queries = sequence(query_offsets_ptr, batch, queries)
        key_begin, batch_keys = sequence(key_offsets_ptr, batch, keys)
        if key_lengths_ptr is not None:
            batch_keys = tl.load(key_lengths_ptr + batch)
        shift = batch_keys - batch_queries
        first_query = tile * BLOCK_M
        query_rows = first_query + tl.arange(0, BLOCK_M)
        begin, partial, unmasked, end = key_range(first_query, batch_queries, batch_keys, window, CAUSAL, BLOCK_M, BLOCK_N)
        slope = None
        if slopes_ptr is not None:
            slope = tl.load(slopes_ptr + head) * LOG2E

        largest, total = softmax_begin(sinks_ptr, head, POWER, BLOCK_M)
        accumulator = tl.zeros((BLOCK_M, VALUE_BLOCK), dtype=tl.float32)
        q_place = batch
        k_place = batch
        if query_offsets_ptr is not None:
            q_place = 0
            end = tl.where(first_query < batch_queries, end, begin)
        if key_offsets_ptr is not None:
            k_place = 0
        q = q_desc.load([q_place, head, query_begin + first_query, 0]).reshape([BLOCK_M, HEAD_BLOCK])
        for first_key in range(begin, end, BLOCK_N):
            row = key_begin + first_key
            if table_ptr is not None:
                k_place = tl.load(table_ptr + batch * table_stride + first_key // PAGE)
                row = first_key % PAGE
            k = k_desc.load([k_place, head // group, row, 0]).reshape([BLOCK_N, HEAD_BLOCK])
            scores = tl.dot(q, k.T)
            factor = score_scale
            if soft_cap is not None or slopes_ptr is not None:
                scores = changed_scores(scores, score_scale, (query_rows + (shift - first_key))[:, None], key_rows[None, :], slope, soft_cap)
                factor = 1.0
            masked = first_key >= unmasked
            if window is not None:
                masked = masked | (first_key < partial)
            if masked:
                seen = is_seen((query_rows + (shift - first_key))[:, None], key_rows[None, :], batch_keys - first_key, window, CAUSAL)
                scores = tl.where(seen, scores, float("-inf"))
            largest, total, rescale, powers = softmax_turn(scores, factor, largest, total, POWER)
            if VALUES_TRANSPOSED:
                v = v_desc.load([k_place, head // group, 0, row]).reshape([VALUE_BLOCK, BLOCK_N]).T
            else:
                v = v_desc.load([k_place, head // group, row, 0]).reshape([BLOCK_N, VALUE_BLOCK])
            accumulator = tl.dot(powers.to(v_ptr.dtype.element_ty), v, accumulator * rescale[:, None])

        accumulator = accumulator * (1.0 / tl.where(total == 0.0, 1.0, total))[:, None]
        if query_offsets_ptr is None:
            out = accumulator.to(out_ptr.dtype.element_ty)
            if OUT_BLOCK < VALUE_BLOCK:
                low, high = out.reshape([BLOCK_M, 2, OUT_BLOCK]).permute(0, 2, 1).split()
                out_desc.store([batch, head, first_query, 0], low.reshape([1, 1, BLOCK_M, OUT_BLOCK]))
                out_desc.store([batch, head, first_query, OUT_BLOCK], high.reshape([1, 1, BLOCK_M, OUT_BLOCK]))
            else:
                out_desc.store([batch, head, first_query, 0], out.reshape([1, 1, BLOCK_M, OUT_BLOCK]))
            lse_row = tl.cast(item // tiles, tl.int64) * queries
        else:  # rows behind the last one are another batch's
            columns = tl.arange(0, VALUE_BLOCK)
            mask = (query_rows[:, None] < batch_queries) & (columns[None, :] < VALUE_DIM)
            places = (query_begin + query_rows).to(tl.int64)[:, None] * out_row + columns[None, :]
            tl.store(out_ptr + tl.cast(head, tl.int64) * out_head + places, accumulator.to(out_ptr.dtype.element_ty), mask=mask)
            lse_row = tl.cast(head, tl.int64) * q_rows + query_begin
        if lse_ptr is not None:
            rows = tl.arange(0, BLOCK_M)
            tl.store(lse_ptr + (lse_row + first_query) + rows, log_sum_exp(largest, total, POWER), mask=rows < batch_queries - first_query)
