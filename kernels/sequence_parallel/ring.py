"""Attention of a rank's queries to the keys of all ranks, which go round them (host side: ditron/ops/sequence_parallel/RingAttention).

One launch for each shard of K and V, [batch, kv_heads, PARTS * section, HEAD_DIM] by sections (sections.py), while the next one arrives. A launch merges what its keys give with
what those before them gave, by the logarithms of their sums, always in the order in which shards come: the same bits in every run.

Of the `all_tiles` tiles of a rank's tokens a launch has `tiles` from first_tile on: where queries see only what came before them, the early section of the tokens has nothing to
do with the shards of later ranks. Tiles from first_complete to end_complete have seen all keys with this launch.
"""
import triton
import triton.language as tl
from triton_dist.language.extra import libshmem_device

from ..attention.scores import LN2, item_of_step, share_of_steps, softmax_begin, tile_of_item
from .sections import attend_keys, keys_seen, merge_tile, place_of_tile, rows_of_part, section_of, sequences_of_rows, tiles_of_heads


@triton.jit
def send_to_node(slot_ptr, peer_slot_ptr, bytes, gate_ptr, peer):
    """A shard to the rank with this one's place on another node, and behind it that rank's gate opened; one program."""
    libshmem_device.putmem_signal_nbi_block(peer_slot_ptr, slot_ptr, bytes, gate_ptr, 1, libshmem_device.NVSHMEM_SIGNAL_SET, peer)


@triton.jit(do_not_specialize=["rank", "world_size", "source", "first_tile", "tiles", "all_tiles", "first_complete", "end_complete", "has_begun"])
def ring_attention(q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, partial_ptr, logs_ptr, batch, heads, kv_heads, group, tokens, section, first_rows, own_rows, stage_rows,
                   q_batch_stride, q_head_stride, kv_batch_stride, kv_head_stride, score_scale, rank, world_size, source, first_tile, tiles, all_tiles, first_complete,
                   end_complete, has_begun, PARTS: tl.constexpr, CAUSAL: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                   begins_ptr=None, ends_ptr=None):
    """K and V are those of rank `source`. q_ptr, out_ptr: [batch, heads, own_rows, HEAD_DIM], lse_ptr: as in all_gather_attention. partial_ptr, logs_ptr: results so far and
    logarithms to base 2 of their sums, fp32 [batch, heads, all_tiles, BLOCK_M, HEAD_DIM] and [batch, heads, all_tiles, BLOCK_M], read where has_begun.
    """
    q_desc = tiles_of_heads(q_ptr, batch, heads, own_rows, q_batch_stride, q_head_stride, BLOCK_M, HEAD_DIM)
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
        rows_left = rows_of_part(query_part, first_rows, own_rows) - query_row
        begins = None
        ends = None
        last_place = query_place
        if begins_ptr is not None:
            begins, ends, last_place = sequences_of_rows(begins_ptr, ends_ptr, query_place, rows_left, BLOCK_M)
        largest, total = softmax_begin(None, head, 0.0, BLOCK_M)
        accumulator = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
        q = q_desc.load([sequence, head, query_place, 0]).reshape([BLOCK_M, HEAD_DIM])
        for part in range(0, PARTS):
            number = section_of(source, part, world_size)
            keys, begin, partial, unmasked, end = keys_seen(first_query, number, section, tokens, query_place, last_place, begins_ptr, ends_ptr, CAUSAL, BLOCK_M, BLOCK_N)
            largest, total, accumulator = attend_keys(q, k_desc, v_desc, sequence, head // group, part * section, first_query + rows, number * section, keys,
                                                      begin, partial, unmasked, end, largest, total, accumulator, score_scale, CAUSAL, HEAD_DIM, BLOCK_N, begins,
                                                      ends)

        all_head = tl.cast(sequence, tl.int64) * heads + head
        sum_tile = all_head * all_tiles + tile
        place = all_head * own_rows + query_place
        tile_logs_ptr = logs_ptr + sum_tile * BLOCK_M
        logs = largest + tl.log2(total)
        factor = 1.0 / tl.where(total == 0.0, 1.0, total)
        factor_before = tl.zeros((BLOCK_M,), dtype=tl.float32)
        if has_begun != 0:
            before = tl.load(tile_logs_ptr + rows)
            largest = tl.maximum(logs, before)
            finite = tl.where(largest == float("-inf"), 0.0, largest)
            share = tl.exp2(logs - finite)
            share_before = tl.exp2(before - finite)
            sums = share + share_before
            logs = finite + tl.log2(sums)
            sums = tl.where(sums == 0.0, 1.0, sums)
            factor = factor * share / sums
            factor_before = share_before / sums
        is_complete = (tile >= first_complete) & (tile < end_complete)
        merge_tile(accumulator * factor[:, None], factor_before[:, None], partial_ptr, out_ptr, sum_tile, place, rows_left, has_begun, is_complete, 1.0, HEAD_DIM, BLOCK_M)
        if is_complete:
            if lse_ptr is not None:
                tl.store(lse_ptr + place + rows, logs * LN2, mask=rows < rows_left)
        else:
            tl.store(tile_logs_ptr + rows, logs)
