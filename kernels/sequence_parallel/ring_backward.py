"""Gradients of attention over ranks (host side: ditron/ops/sequence_parallel/RingAttentionBackward); mathematics: kernels/attention/backward.py.

Shards go round the ranks, of which each has a rank's K and V, Q, the gradient of its result, log-sum-exp and delta, by sections (sections.py). For each shard there are two
launches: one goes on with dQ of the own queries, over its keys, and one with dK and dV of the own keys, over its queries. So sums stay where their tokens are, and are added in the
order in which shards come: the same bits in every run. What launches leave to the next ones is fp32. `tiles`, first_tile, first_complete and end_complete are those of ring.py, of
tiles of queries or keys.

Rows of log-sum-exp (times log2(e), +inf where there is no token or no key) and delta: fp32 [batch, heads, PARTS, padded], multiples of 128 rows: a tile needs no mask for them.
"""
import triton
import triton.language as tl

from ..attention.scores import LOG2E, item_of_step, share_of_steps, tile_of_item
from .sections import is_key_seen, keys_seen, merge_tile, place_of_tile, rows_of_part, section_of, sequences_of_rows, tiles_of_heads, tokens_of


@triton.jit(do_not_specialize=["first_rows", "own_rows"])
def stage_queries(q_ptr, gradient_ptr, out_ptr, lse_ptr, staged_q_ptr, staged_gradient_ptr, logs_ptr, delta_ptr, heads, section, first_rows, own_rows, padded,
                  PARTS: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr):
    """The part of a rank's shard that has to do with queries; q_ptr, gradient_ptr and out_ptr: [heads, own_rows, HEAD_DIM], heads of all sequences."""
    columns = tl.arange(0, HEAD_DIM)[None, :]
    blocks = padded // BLOCK_M
    for index in range(tl.program_id(0), heads * PARTS * blocks, tl.num_programs(0)):
        head = tl.cast(index // blocks // PARTS, tl.int64)
        part = index // blocks % PARTS
        first_row = index % blocks * BLOCK_M
        rows = tl.arange(0, BLOCK_M)
        is_own = rows < rows_of_part(part, first_rows, own_rows) - first_row
        is_staged = (rows < section - first_row)[:, None]
        own_place = head * own_rows + part * first_rows + first_row
        own_places = own_place * HEAD_DIM + rows[:, None] * HEAD_DIM + columns
        places = ((head * PARTS + part) * section + first_row) * HEAD_DIM + rows[:, None] * HEAD_DIM + columns
        q = tl.load(q_ptr + own_places, mask=is_own[:, None], other=0.0)
        gradient = tl.load(gradient_ptr + own_places, mask=is_own[:, None], other=0.0)
        out = tl.load(out_ptr + own_places, mask=is_own[:, None], other=0.0)
        lse = tl.load(lse_ptr + own_place + rows, mask=is_own, other=float("-inf"))
        tl.store(staged_q_ptr + places, q, mask=is_staged)
        tl.store(staged_gradient_ptr + places, gradient, mask=is_staged)
        place = (head * PARTS + part) * padded + first_row
        tl.store(logs_ptr + place + rows, tl.where(lse == float("-inf"), float("inf"), lse * LOG2E))
        tl.store(delta_ptr + place + rows, tl.sum(out.to(tl.float32) * gradient.to(tl.float32), axis=1))


@triton.jit(do_not_specialize=["rank", "world_size", "source", "first_tile", "tiles", "all_tiles", "first_complete", "end_complete", "has_begun"])
def ring_query_gradient(q_ptr, gradient_ptr, logs_ptr, delta_ptr, k_ptr, v_ptr, dq_ptr, partial_ptr, batch, heads, kv_heads, group, tokens, section, first_rows,
                        own_rows, stage_rows, padded, q_batch_stride, q_head_stride, kv_batch_stride, kv_head_stride, score_scale, scale, rank, world_size, source,
                        first_tile, tiles, all_tiles, first_complete, end_complete, has_begun, PARTS: tl.constexpr, CAUSAL: tl.constexpr, HEAD_DIM: tl.constexpr,
                        BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, begins_ptr=None, ends_ptr=None):
    """Q and what belongs to it is the rank's own, K and V are those of rank `source`; dq_ptr, partial_ptr: [batch, heads, own_rows, HEAD_DIM]."""
    q_desc = tiles_of_heads(q_ptr, batch, heads, stage_rows, q_batch_stride, q_head_stride, BLOCK_M, HEAD_DIM)
    gradient_desc = tiles_of_heads(gradient_ptr, batch, heads, stage_rows, q_batch_stride, q_head_stride, BLOCK_M, HEAD_DIM)
    k_desc = tiles_of_heads(k_ptr, batch, kv_heads, stage_rows, kv_batch_stride, kv_head_stride, BLOCK_N, HEAD_DIM)
    v_desc = tiles_of_heads(v_ptr, batch, kv_heads, stage_rows, kv_batch_stride, kv_head_stride, BLOCK_N, HEAD_DIM)
    first_tiles = tl.cdiv(first_rows, BLOCK_M)
    together, steps = share_of_steps(tiles * batch * heads, CAUSAL)
    for step in tl.range(0, steps, warp_specialize=True):
        item = item_of_step(step, together)
        sequence, head, tile = tile_of_item(item, heads, tiles, CAUSAL, True)
        tile += first_tile
        query_part, query_row, query_place = place_of_tile(tile, first_tiles, first_rows, BLOCK_M)
        first_query = section_of(rank, query_part, world_size) * section + query_row
        rows = tl.arange(0, BLOCK_M)
        all_head = tl.cast(sequence, tl.int64) * heads + head
        place = (all_head * PARTS + query_part) * padded + query_row
        logs = tl.load(logs_ptr + place + rows)
        delta = tl.load(delta_ptr + place + rows)
        rows_left = rows_of_part(query_part, first_rows, own_rows) - query_row
        begins = None
        ends = None
        last_place = query_place
        if begins_ptr is not None:
            begins, ends, last_place = sequences_of_rows(begins_ptr, ends_ptr, query_place, rows_left, BLOCK_M)
        dq = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
        q = q_desc.load([sequence, head, query_place, 0]).reshape([BLOCK_M, HEAD_DIM])
        gradient = gradient_desc.load([sequence, head, query_place, 0]).reshape([BLOCK_M, HEAD_DIM])
        for part in range(0, PARTS):
            number = section_of(source, part, world_size)
            keys, begin, partial, unmasked, end = keys_seen(first_query, number, section, tokens, query_place, last_place, begins_ptr, ends_ptr, CAUSAL, BLOCK_M, BLOCK_N)
            for first_key in range(begin, end, BLOCK_N):
                k = k_desc.load([sequence, head // group, part * section + first_key, 0]).reshape([BLOCK_N, HEAD_DIM])
                scores = tl.dot(q, k.T)
                v = v_desc.load([sequence, head // group, part * section + first_key, 0]).reshape([BLOCK_N, HEAD_DIM])
                products = tl.dot(gradient, v.T)
                powers = tl.exp2(scores * score_scale - logs[:, None])
                masked = first_key >= unmasked
                if begins is not None:
                    masked = masked | (first_key < partial)
                if masked:
                    powers = tl.where(is_key_seen(first_query + rows, number * section, first_key, keys, CAUSAL, BLOCK_N, begins, ends), powers, 0.0)
                slopes = powers * (products - delta[:, None])
                dq = tl.dot(slopes.to(q_ptr.dtype.element_ty), k, dq)
        merge_tile(dq, 1.0, partial_ptr, dq_ptr, all_head * all_tiles + tile, all_head * own_rows + query_place, rows_left, has_begun,
                   (tile >= first_complete) & (tile < end_complete), scale, HEAD_DIM, BLOCK_M)


@triton.jit
def query_tiles(first_token, end_token, number, section, tokens, BLOCK_M: tl.constexpr):
    """Tiles of the queries of section `number` that are tokens from first_token to end_token, which may be None: the first one's first query, and how many there are."""
    begin = 0
    if first_token is not None:
        begin = max(first_token - number * section, 0) // BLOCK_M * BLOCK_M
    end = tokens_of(number, section, tokens)
    if end_token is not None:
        end = min(end, end_token - number * section)
    return begin, tl.cdiv(max(end - begin, 0), BLOCK_M)


@triton.jit(do_not_specialize=["rank", "world_size", "source", "first_tile", "tiles", "all_tiles", "first_complete", "end_complete", "has_begun"])
def ring_key_gradients(k_ptr, v_ptr, q_ptr, gradient_ptr, logs_ptr, delta_ptr, dk_ptr, dv_ptr, partial_dk_ptr, partial_dv_ptr, batch, heads, kv_heads, group, tokens,
                       section, first_rows, own_rows, stage_rows, log_rows, padded, q_batch_stride, q_head_stride, kv_batch_stride, kv_head_stride, score_scale, scale, rank, world_size,
                       source, first_tile, tiles, all_tiles, first_complete, end_complete, has_begun, PARTS: tl.constexpr, CAUSAL: tl.constexpr, HEAD_DIM: tl.constexpr,
                       BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, begins_ptr=None, ends_ptr=None):
    """K and V are the rank's own, Q and what belongs to it are those of rank `source`; dk_ptr, dv_ptr and their sums: [batch, kv_heads, own_rows, HEAD_DIM].
    log_rows: batch * heads * PARTS."""
    q_desc = tiles_of_heads(q_ptr, batch, heads, stage_rows, q_batch_stride, q_head_stride, BLOCK_M, HEAD_DIM)
    gradient_desc = tiles_of_heads(gradient_ptr, batch, heads, stage_rows, q_batch_stride, q_head_stride, BLOCK_M, HEAD_DIM)
    k_desc = tiles_of_heads(k_ptr, batch, kv_heads, stage_rows, kv_batch_stride, kv_head_stride, BLOCK_N, HEAD_DIM)
    v_desc = tiles_of_heads(v_ptr, batch, kv_heads, stage_rows, kv_batch_stride, kv_head_stride, BLOCK_N, HEAD_DIM)
    # Rows come with the tiles: to wait for memory in each turn took a quarter of the time (docs/ops/attention.md).
    logs_desc = tl.make_tensor_descriptor(logs_ptr, shape=[log_rows, padded], strides=[padded, 1], block_shape=[1, BLOCK_M])
    delta_desc = tl.make_tensor_descriptor(delta_ptr, shape=[log_rows, padded], strides=[padded, 1], block_shape=[1, BLOCK_M])
    first_tiles = tl.cdiv(first_rows, BLOCK_N)
    together, steps = share_of_steps(tiles * batch * kv_heads, CAUSAL)
    for step in tl.range(0, steps, warp_specialize=True):
        item = item_of_step(step, together)
        sequence, kv_head, tile = tile_of_item(item, kv_heads, tiles, CAUSAL, False)
        tile += first_tile
        key_part, key_row, key_place = place_of_tile(tile, first_tiles, first_rows, BLOCK_N)
        first_key = section_of(rank, key_part, world_size) * section + key_row
        key_rows = tl.arange(0, BLOCK_N)
        dk = tl.zeros((BLOCK_N, HEAD_DIM), dtype=tl.float32)
        dv = tl.zeros((BLOCK_N, HEAD_DIM), dtype=tl.float32)
        k = k_desc.load([sequence, kv_head, key_place, 0]).reshape([BLOCK_N, HEAD_DIM])
        v = v_desc.load([sequence, kv_head, key_place, 0]).reshape([BLOCK_N, HEAD_DIM])
        rows_left = rows_of_part(key_part, first_rows, own_rows) - key_row
        first_seeing = None
        end_seeing = None
        if begins_ptr is not None:
            begins, ends, last_place = sequences_of_rows(begins_ptr, ends_ptr, key_place, rows_left, BLOCK_N)
            first_seeing = tl.load(begins_ptr + key_place)
            end_seeing = tl.load(ends_ptr + last_place)
        if CAUSAL:
            first_seeing = first_key
        # Both sections' tiles of queries in one loop, which has its tiles fetched ahead without a gap.
        later_section = section_of(source, 1, world_size)
        begin, turns = query_tiles(first_seeing, end_seeing, source, section, tokens, BLOCK_M)
        first_turns = turns
        later_begin = 0
        if PARTS == 2:
            later_begin, later_turns = query_tiles(first_seeing, end_seeing, later_section, section, tokens, BLOCK_M)
            turns += later_turns
        for turn in range(0, turns * group):
            head = kv_head * group + turn // turns
            turn_of_head = turn % turns
            part = (turn_of_head >= first_turns).to(tl.int32)
            first_query = tl.where(part == 0, begin + turn_of_head * BLOCK_M, later_begin + (turn_of_head - first_turns) * BLOCK_M)
            shift = first_key - tl.where(part == 0, source, later_section) * section
            rows = tl.arange(0, BLOCK_M)
            log_row = (sequence * heads + head) * PARTS + part
            q = q_desc.load([sequence, head, part * section + first_query, 0]).reshape([BLOCK_M, HEAD_DIM])
            scores = tl.dot(k, q.T)
            powers = tl.exp2(scores * score_scale - logs_desc.load([log_row, first_query]))
            # The queries' places among the tile's keys.
            query_rows = rows + (first_query - shift)
            if CAUSAL:
                if first_query < shift + BLOCK_N - 1:
                    powers = tl.where(key_rows[:, None] <= query_rows[None, :], powers, 0.0)
            if begins_ptr is not None:
                seen = (query_rows[None, :] >= (begins - first_key)[:, None]) & (query_rows[None, :] < (ends - first_key)[:, None])
                powers = tl.where(seen, powers, 0.0)
            gradient = gradient_desc.load([sequence, head, part * section + first_query, 0]).reshape([BLOCK_M, HEAD_DIM])
            products = tl.dot(v, gradient.T)
            dv = tl.dot(powers.to(q_ptr.dtype.element_ty), gradient, dv)
            products -= delta_desc.load([log_row, first_query])
            dk = tl.dot((powers * products).to(q_ptr.dtype.element_ty), q, dk)
        is_complete = (tile >= first_complete) & (tile < end_complete)
        all_head = tl.cast(sequence, tl.int64) * kv_heads + kv_head
        sum_tile = all_head * all_tiles + tile
        place = all_head * own_rows + key_place
        merge_tile(dk, 1.0, partial_dk_ptr, dk_ptr, sum_tile, place, rows_left, has_begun, is_complete, scale, HEAD_DIM, BLOCK_N)
        merge_tile(dv, 1.0, partial_dv_ptr, dv_ptr, sum_tile, place, rows_left, has_begun, is_complete, 1.0, HEAD_DIM, BLOCK_N)
