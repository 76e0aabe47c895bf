"""Attention, backward, with five products: one kernel for all three gradients, for GPUs with tensor copies (host side: ditron/ops/attention).

A program has a tile of keys and goes over the tiles of queries that see some of it. It computes the transposed scores, so that P^T and dS^T stay in
registers as operands of dV and dK; dS^T also goes to shared memory, where it is multiplied with K. That is the tile's part of dQ, which a warp of its own
adds to a float32 workspace. The parts of a tile of queries are added in one order, by a counter (dl.add_in_turn): the same bits every time.

Who works when. PROGRAMS programs share a head of K, a tile each, round by round, so that few tiles of a head are being worked at, one behind the other,
and hardly any waits. Of a round the first program comes first:
    tiles     0 ... PROGRAMS - 1 of the first round, then the next ones
    CAUSAL    early tiles have more to do than late ones. In the first half of the rounds the first program has the last tile, which starts at the
              latest queries, and is ahead of the others by ever more; in the second half it has the first tile, and loses that again.
A program waits for those of lower numbers in its round and for earlier rounds: all of them must run at the same time, as they do if there are no more
than multiprocessors.

The workspace has a tile of queries as the accumulators of two warpgroups have it in registers, [rows * columns / 32, 32]: nothing is rearranged until
the last kernel, which scales and rounds it.
"""
import triton
import triton.language as tl
import triton_dist.language as dl

from .backward import padded_begin
from .backward_by_descriptors import tiles_of
from .scores import LOG2E, changed_scores, is_seen, query_range, sequence, slope_of_change

# Words of a row of the workspace: a tensor copy of 256 rows is one instruction.
ROW = tl.constexpr(32)


@triton.jit
def as_held(tile, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The elements of an accumulator [ROWS, COLUMNS] in the order of the threads that hold them, in rows of ROW."""
    parts = tile.reshape([ROWS // 16, 2, 8, COLUMNS // 8, 4, 2])
    return tl.permute(parts, (0, 3, 2, 4, 1, 5)).reshape([ROWS * COLUMNS // ROW, ROW])


@triton.jit
def from_held(words, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The accumulator that as_held has been given."""
    parts = words.reshape([ROWS // 16, COLUMNS // 8, 8, 4, 2, 2])
    return tl.permute(parts, (0, 4, 2, 1, 3, 5)).reshape([ROWS, COLUMNS])


@triton.jit
def parts_before(tile, first_of_round, last_first, first_query, queries, keys, window, CAUSAL: tl.constexpr, PROGRAMS: tl.constexpr,
                 BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """How many tiles of keys add to a tile of queries before this one, which is among those that do (query_range). last_first: of the order in
    this round."""
    shift = keys - queries
    first = 0
    last = tl.cdiv(keys, BLOCK_N) - 1
    if CAUSAL:
        last = min(last, (first_query + BLOCK_M - 1 + shift) // BLOCK_N)
    if window is not None:
        first = max(first_query + shift - window, 0) // BLOCK_N
    in_round = tile - max(first, first_of_round)
    if CAUSAL:
        in_round = tl.where(last_first, min(last, first_of_round + PROGRAMS - 1) - tile, in_round)
    return max(first_of_round - first, 0) + in_round


@triton.jit
def gradients_by_turns(q_ptr, k_ptr, v_ptr, gradient_ptr, padded_lse_ptr, delta_ptr, dk_ptr, dv_ptr, sums_ptr, counters_ptr, batches, heads, kv_heads,
                       queries, keys, q_batches, q_rows, k_batches, k_rows, q_batch, q_head, q_row, k_batch, k_head, k_row, padded, sums_rows,
                       score_scale, scale, CAUSAL: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                       PROGRAMS: tl.constexpr, window=None, soft_cap=None, slopes_ptr=None, query_offsets_ptr=None, key_offsets_ptr=None):
    """dk, dv and the sums of dq. Grid: groups of PROGRAMS. sums_ptr [sums_rows, ROW] and counters_ptr, a word for each tile of queries, are zero."""
    HEAD_BLOCK: tl.constexpr = triton.next_power_of_2(HEAD_DIM)
    # Two warpgroups divide the rows of a product: those of a tile of queries, or, if it has too few, of the head.
    TRANSPOSED: tl.constexpr = BLOCK_M < 128
    SUM_ROWS: tl.constexpr = BLOCK_M * HEAD_BLOCK // ROW
    q_desc = tiles_of(q_ptr, q_batches, heads, q_rows, q_batch, q_head, q_row, BLOCK_M, HEAD_DIM)
    gradient_desc = tiles_of(gradient_ptr, q_batches, heads, q_rows, q_batch, q_head, q_row, BLOCK_M, HEAD_DIM)
    k_desc = tiles_of(k_ptr, k_batches, kv_heads, k_rows, k_batch, k_head, k_row, BLOCK_N, HEAD_DIM)
    v_desc = tiles_of(v_ptr, k_batches, kv_heads, k_rows, k_batch, k_head, k_row, BLOCK_N, HEAD_DIM)
    sums_desc = tl.make_tensor_descriptor(sums_ptr, shape=[sums_rows, ROW], strides=[ROW, 1], block_shape=[SUM_ROWS, ROW])
    if key_offsets_ptr is None:
        dk_desc = tiles_of(dk_ptr, k_batches, kv_heads, k_rows, k_batch, k_head, k_row, BLOCK_N, HEAD_DIM)
        dv_desc = tiles_of(dv_ptr, k_batches, kv_heads, k_rows, k_batch, k_head, k_row, BLOCK_N, HEAD_DIM)
    group = heads // kv_heads
    rounds = tl.cdiv(tl.cdiv(keys, BLOCK_N), PROGRAMS)
    groups = tl.num_programs(0) // PROGRAMS
    own_group = tl.program_id(0) // PROGRAMS
    place_in_round = tl.program_id(0) % PROGRAMS
    steps = tl.cdiv(batches * kv_heads - own_group, groups) * rounds
    for step in tl.range(0, steps, warp_specialize=True):
        kv_item = step // rounds * groups + own_group
        batch = kv_item // kv_heads
        kv_head = kv_item % kv_heads
        first_of_round = step % rounds * PROGRAMS
        last_first = False
        tile = first_of_round + place_in_round
        if CAUSAL:
            last_first = step % rounds * 2 < rounds
            tile = tl.where(last_first, first_of_round + (PROGRAMS - 1 - place_in_round), tile)
        query_begin, batch_queries = sequence(query_offsets_ptr, batch, queries)
        key_begin, batch_keys = sequence(key_offsets_ptr, batch, keys)
        first_key = tile * BLOCK_N
        shift = batch_keys - batch_queries
        key_rows = tl.arange(0, BLOCK_N)
        begin, unmasked, partial, end = query_range(first_key, batch_queries, batch_keys, window, CAUSAL, BLOCK_M, BLOCK_N)
        end = tl.where(first_key < batch_keys, end, begin)
        q_place = batch
        k_place = batch
        if query_offsets_ptr is not None:
            q_place = 0
        if key_offsets_ptr is not None:
            k_place = 0
        dk = tl.zeros((BLOCK_N, HEAD_BLOCK), dtype=tl.float32)
        dv = tl.zeros((BLOCK_N, HEAD_BLOCK), dtype=tl.float32)
        k = k_desc.load([k_place, kv_head, key_begin + first_key, 0]).reshape([BLOCK_N, HEAD_BLOCK])
        v = v_desc.load([k_place, kv_head, key_begin + first_key, 0]).reshape([BLOCK_N, HEAD_BLOCK])
        turns = tl.cdiv(max(end - begin, 0), BLOCK_M)
        rows = tl.arange(0, BLOCK_M)
        head = kv_head * group
        first_query = begin
        place = padded_begin(head, batch, heads, query_begin, padded, query_offsets_ptr) + tl.where(turns > 0, first_query, 0)
        delta = -tl.load(delta_ptr + place + rows)[None, :]  # later ones are loaded a turn ahead
        for turn in range(0, turns * group):
            lse = tl.load(padded_lse_ptr + place + rows)[None, :]
            q = q_desc.load([q_place, head, query_begin + first_query, 0]).reshape([BLOCK_M, HEAD_BLOCK])
            scores = tl.dot(k, q.T)
            gradient = gradient_desc.load([q_place, head, query_begin + first_query, 0]).reshape([BLOCK_M, HEAD_BLOCK])
            products = tl.dot(v, gradient.T, tl.broadcast_to(delta, [BLOCK_N, BLOCK_M]))
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
            powers = tl.exp2(scores * factor - lse)
            # Unlike dk and dv, dq has sums over the keys: rows behind the last one must be none.
            if CAUSAL:
                masked = first_query < unmasked
            else:
                masked = first_key + BLOCK_N > batch_keys
            if window is not None:
                masked = masked | (first_query > partial)
            if masked:
                query_places = (rows + (first_query + shift - first_key))[None, :]
                seen = is_seen(query_places, key_rows[:, None], batch_keys - first_key, window, CAUSAL)
                powers = tl.where(seen, powers, 0.0)
            dv = tl.dot(powers.to(q_ptr.dtype.element_ty), gradient, dv)
            slopes = (powers * products * change).to(q_ptr.dtype.element_ty)
            dk = tl.dot(slopes, q, dk)
            if TRANSPOSED:
                part = as_held(tl.dot(k.T, slopes), HEAD_BLOCK, BLOCK_M)
            else:
                part = as_held(tl.dot(slopes.T, k), BLOCK_M, HEAD_BLOCK)
            before = parts_before(tile, first_of_round, last_first, first_query, batch_queries, batch_keys, window, CAUSAL, PROGRAMS, BLOCK_M, BLOCK_N)
            sums_tile = (place // BLOCK_M).to(tl.int32)
            first_query += BLOCK_M
            if first_query >= end:  # the next head of the group
                first_query = begin
                head = min(head + 1, kv_head * group + (group - 1))
            place = padded_begin(head, batch, heads, query_begin, padded, query_offsets_ptr) + first_query
            delta = -tl.load(delta_ptr + place + rows)[None, :]
            dl.add_in_turn(sums_desc, [sums_tile * SUM_ROWS, 0], part, counters_ptr + sums_tile, before)
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
def query_gradient_of_sums(sums_ptr, dq_ptr, heads, queries, q_batch, q_head, q_row, padded, scale, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr,
                           query_offsets_ptr=None):
    """dq, scaled and rounded. Grid: (tiles of the longest batch's queries, batches * heads)."""
    HEAD_BLOCK: tl.constexpr = triton.next_power_of_2(HEAD_DIM)
    TRANSPOSED: tl.constexpr = BLOCK_M < 128
    SUM_ROWS: tl.constexpr = BLOCK_M * HEAD_BLOCK // ROW
    batch = tl.program_id(1) // heads
    head = tl.program_id(1) % heads
    query_begin, queries = sequence(query_offsets_ptr, batch, queries)
    first_query = tl.program_id(0) * BLOCK_M
    if first_query < queries:
        place = padded_begin(head, batch, heads, query_begin, padded, query_offsets_ptr) + first_query
        words = sums_ptr + place * HEAD_BLOCK + tl.arange(0, SUM_ROWS)[:, None] * ROW + tl.arange(0, ROW)[None, :]
        if TRANSPOSED:
            dq = from_held(tl.load(words), HEAD_BLOCK, BLOCK_M).T
        else:
            dq = from_held(tl.load(words), BLOCK_M, HEAD_BLOCK)
        base = tl.cast(head, tl.int64) * q_head
        if query_offsets_ptr is None:
            base += tl.cast(batch, tl.int64) * q_batch
        else:
            base += tl.cast(query_begin, tl.int64) * q_row
        rows = first_query + tl.arange(0, BLOCK_M)
        columns = tl.arange(0, HEAD_BLOCK)
        mask = (rows < queries)[:, None] & (columns < HEAD_DIM)[None, :]
        tl.store(dq_ptr + base + rows.to(tl.int64)[:, None] * q_row + columns[None, :], (dq * scale).to(dq_ptr.dtype.element_ty), mask=mask)
