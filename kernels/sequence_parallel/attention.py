"""Attention of a rank's queries to the keys of all ranks, which come while it is computed (host side: ditron/ops/sequence_parallel/AllGatherAttention).

K and V of all ranks: [WORLD_SIZE, batch, kv_heads, PARTS * section, HEAD_DIM], by sections (sections.py). A piece is some of a rank's batch * kv_heads
heads, K and V; copy engines bring pieces in the order in which they are wanted. On one rank this is attention of tensors with any strides.
"""
import triton
import triton.language as tl
import triton_dist.language as dl

from ..attention.scores import item_of_step, log_sum_exp, share_of_steps, softmax_begin, tile_of_item
from .sections import attend_keys, keys_seen, place_of_tile, rows_of_part, section_of, sequences_of_rows


@triton.jit(do_not_specialize=["own_rows"])
def stage_shard(k_ptr, v_ptr, staged_k_ptr, staged_v_ptr, heads, own_rows, stage_rows, HEAD_DIM: tl.constexpr, BLOCK: tl.constexpr):
    """The rank's K and V, [heads, own_rows, HEAD_DIM], to [heads, stage_rows, HEAD_DIM], with zeros behind. Grid: (blocks, 2): K, V."""
    from_ptr = k_ptr
    to_ptr = staged_k_ptr
    if tl.program_id(1) == 1:
        from_ptr = v_ptr
        to_ptr = staged_v_ptr
    elements = tl.cast(stage_rows, tl.int64) * HEAD_DIM
    own_elements = tl.cast(own_rows, tl.int64) * HEAD_DIM
    blocks = tl.cdiv(elements, BLOCK)
    for index in range(tl.cast(tl.program_id(0), tl.int64), heads * blocks, tl.num_programs(0)):
        head = index // blocks
        offsets = index % blocks * BLOCK + tl.arange(0, BLOCK)
        value = tl.load(from_ptr + head * own_elements + offsets, mask=offsets < own_elements, other=0.0)
        tl.store(to_ptr + head * elements + offsets, value, mask=offsets < elements)


@triton.jit(do_not_specialize=["rank", "first_rows", "own_rows", "sequences"])
def find_sequences(offsets_ptr, begins_ptr, ends_ptr, sequences, section, first_rows, own_rows, rank, world_size, BLOCK: tl.constexpr):
    """Of each of a rank's tokens where the sequence that it belongs to begins and ends among all tokens; offsets_ptr: [sequences + 1], ascending, some perhaps alike."""
    for first in range(tl.program_id(0) * BLOCK, own_rows, tl.num_programs(0) * BLOCK):
        rows = first + tl.arange(0, BLOCK)
        part = (rows >= first_rows).to(tl.int32)
        token = section_of(rank, part, world_size) * section + rows - part * first_rows
        # The last sequence that begins at the token or before it is not below `low`, and below `high`.
        low = tl.zeros((BLOCK,), tl.int32)
        high = low + sequences
        candidates = sequences
        while candidates > 1:
            middle = (low + high) // 2
            is_not_below = tl.load(offsets_ptr + middle) <= token
            low = tl.where(is_not_below, middle, low)
            high = tl.where(is_not_below, high, middle)
            candidates = (candidates + 1) // 2
        tl.store(begins_ptr + rows, tl.load(offsets_ptr + low), mask=rows < own_rows)
        tl.store(ends_ptr + rows, tl.load(offsets_ptr + low + 1), mask=rows < own_rows)


@triton.jit(do_not_specialize=["rank"])
def all_gather_attention(q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, ready_ptr, generation_ptr, batch, heads, kv_heads, all_batch, group, tokens, section, first_rows,
                         own_rows, stage_rows, q_batch_stride, q_head_stride, q_row_stride, out_batch_stride, out_head_stride, out_row_stride, kv_batch_stride,
                         kv_head_stride, kv_row_stride, heads_per_piece, score_scale, rank, WORLD_SIZE: tl.constexpr, PARTS: tl.constexpr, MOST_PIECES: tl.constexpr,
                         CAUSAL: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, begins_ptr=None, ends_ptr=None):
    """ready_ptr: [WORLD_SIZE, MOST_PIECES] signals, >= generation when a piece is there; None: all of it is. lse_ptr: natural logarithms of the sums, fp32 [batch, heads,
    own_rows], or None. first_rows: tokens of the rank's first section; all_batch: WORLD_SIZE * batch; stage_rows: PARTS * section; strides in elements. Sections are
    visited from the own ones on, upwards; score_scale is positive and has the factor log2(e). begins_ptr, ends_ptr: sections.py.
    """
    q_desc = tl.make_tensor_descriptor(q_ptr, shape=[batch, heads, own_rows, HEAD_DIM], strides=[q_batch_stride, q_head_stride, q_row_stride, 1],
                                       block_shape=[1, 1, BLOCK_M, HEAD_DIM])
    k_desc = tl.make_tensor_descriptor(k_ptr, shape=[all_batch, kv_heads, stage_rows, HEAD_DIM], strides=[kv_batch_stride, kv_head_stride, kv_row_stride, 1],
                                       block_shape=[1, 1, BLOCK_N, HEAD_DIM])
    v_desc = tl.make_tensor_descriptor(v_ptr, shape=[all_batch, kv_heads, stage_rows, HEAD_DIM], strides=[kv_batch_stride, kv_head_stride, kv_row_stride, 1],
                                       block_shape=[1, 1, BLOCK_N, HEAD_DIM])
    out_desc = tl.make_tensor_descriptor(out_ptr, shape=[batch, heads, own_rows, HEAD_DIM], strides=[out_batch_stride, out_head_stride, out_row_stride, 1],
                                         block_shape=[1, 1, BLOCK_M, HEAD_DIM])
    # No tile has queries of two sections: that of the first one ends where the other's rows begin.
    first_out_desc = tl.make_tensor_descriptor(out_ptr, shape=[batch, heads, first_rows, HEAD_DIM],
                                               strides=[out_batch_stride, out_head_stride, out_row_stride, 1], block_shape=[1, 1, BLOCK_M, HEAD_DIM])
    generation = tl.cast(0, tl.int64)
    if ready_ptr is not None:
        generation = tl.load(generation_ptr)
    first_tiles = tl.cdiv(first_rows, BLOCK_M)
    tiles = first_tiles
    if PARTS == 2:
        tiles += tl.cdiv(own_rows - first_rows, BLOCK_M)
    # Where the last tiles have the most work first and last ones come by turns, two for a program.
    together, steps = share_of_steps(tiles * batch * heads, CAUSAL)
    for step in tl.range(0, steps, warp_specialize=True):
        item = item_of_step(step, together)
        sequence, head, tile = tile_of_item(item, heads, tiles, CAUSAL, True)
        query_part, query_row, query_place = place_of_tile(tile, first_tiles, first_rows, BLOCK_M)
        first_query = section_of(rank, query_part, WORLD_SIZE) * section + query_row
        query_rows = first_query + tl.arange(0, BLOCK_M)
        begins = None
        ends = None
        last_place = query_place
        if begins_ptr is not None:
            begins, ends, last_place = sequences_of_rows(begins_ptr, ends_ptr, query_place, rows_of_part(query_part, first_rows, own_rows) - query_row, BLOCK_M)

        largest, total = softmax_begin(None, head, 0.0, BLOCK_M)
        accumulator = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
        q = q_desc.load([sequence, head, query_place, 0]).reshape([BLOCK_M, HEAD_DIM])
        for visit in range(0, WORLD_SIZE * PARTS):
            source = (rank + visit // PARTS) % WORLD_SIZE
            part = visit % PARTS
            number = section_of(source, part, WORLD_SIZE)
            keys, begin, partial, unmasked, end = keys_seen(first_query, number, section, tokens, query_place, last_place, begins_ptr, ends_ptr, CAUSAL, BLOCK_M, BLOCK_N)
            arrived_k = k_desc
            arrived_v = v_desc
            if ready_ptr is not None:
                piece = (sequence * kv_heads + head // group) // heads_per_piece
                # Not for what no query of the tile sees.
                token = dl.wait(ready_ptr + source * MOST_PIECES + piece, (end > begin).to(tl.int32), "sys", "acquire", waitValue=generation, compare="ge")
                arrived_k = dl.consume_token(k_desc, token)
                arrived_v = dl.consume_token(v_desc, token)
            largest, total, accumulator = attend_keys(q, arrived_k, arrived_v, source * batch + sequence, head // group, part * section,
                                                      query_rows, number * section, keys, begin, partial, unmasked, end, largest, total, accumulator,
                                                      score_scale, CAUSAL, HEAD_DIM, BLOCK_N, begins, ends)

        accumulator = accumulator * (1.0 / tl.where(total == 0.0, 1.0, total))[:, None]
        result = accumulator.to(out_ptr.dtype.element_ty).reshape([1, 1, BLOCK_M, HEAD_DIM])
        if query_part == 0:
            first_out_desc.store([sequence, head, query_place, 0], result)
        else:
            out_desc.store([sequence, head, query_place, 0], result)
        if lse_ptr is not None:
            is_row = tl.arange(0, BLOCK_M) < tl.where(query_part == 0, first_rows, own_rows) - query_place
            tl.store(lse_ptr + (tl.cast(sequence, tl.int64) * heads + head) * own_rows + query_place + tl.arange(0, BLOCK_M), log_sum_exp(largest, total, 0.0), mask=is_row)
