"""What the kernels of attention over ranks share: which rank has which tokens, what a tile of queries does with the keys of a section, and how launches of a ring go on with what
those before them left.

The tokens of a sequence are cut into world_size * PARTS sections of `section` tokens, the last ones shorter or empty. With PARTS 1 rank r has section r. With
PARTS 2 it has sections r and 2 * world_size - 1 - r, one behind the other: then all ranks have as much to do when queries see only what came before them.

In a rank's shard of K and V, or of Q, its sections begin at multiples of `section` rows: [batch, heads, PARTS * section, HEAD_DIM], zeros where there are fewer
tokens. In its tensors they follow each other: only the last section that has any tokens is short.

Tokens may be those of several sequences, one behind the other: begins_ptr and ends_ptr, [own_rows], then say of each of a rank's tokens where its sequence begins and ends
among all tokens (find_sequences of attention.py); None: they are of one.
"""
import triton
import triton.language as tl

from ..attention.scores import softmax_turn


@triton.jit
def section_of(rank, part, world_size):
    return tl.where(part == 0, rank, 2 * world_size - 1 - rank)


@triton.jit
def tokens_of(section_number, section, tokens):
    return min(max(tokens - section_number * section, 0), section)


@triton.jit
def place_of_tile(tile, first_tiles, first_rows, BLOCK: tl.constexpr):
    """The part that a tile of a rank's tokens belongs to, its first row in there, and in the tensor. No tile has rows of two parts."""
    part = (tile >= first_tiles).to(tl.int32)
    row = (tile - part * first_tiles) * BLOCK
    return part, row, part * first_rows + row


@triton.jit
def rows_of_part(part, first_rows, own_rows):
    return tl.where(part == 0, first_rows, own_rows - first_rows)


@triton.jit
def tiles_of_heads(ptr, batch, heads, rows, batch_stride, head_stride, BLOCK: tl.constexpr, HEAD_DIM: tl.constexpr):
    """A descriptor of [batch, heads, rows, HEAD_DIM] with rows that follow each other, for tiles of BLOCK rows of a head."""
    return tl.make_tensor_descriptor(ptr, shape=[batch, heads, rows, HEAD_DIM], strides=[batch_stride, head_stride, HEAD_DIM, 1], block_shape=[1, 1, BLOCK, HEAD_DIM])


@triton.jit
def sequences_of_rows(begins_ptr, ends_ptr, place, rows_left, BLOCK: tl.constexpr):
    """Of a tile's tokens from `place` on, of which rows_left are of its part: where their sequences begin and end among all tokens, and the place of the last one."""
    rows = tl.arange(0, BLOCK)
    begins = tl.load(begins_ptr + place + rows, mask=rows < rows_left, other=0)
    ends = tl.load(ends_ptr + place + rows, mask=rows < rows_left, other=0)
    return begins, ends, place + min(rows_left, BLOCK) - 1


@triton.jit
def keys_seen(first_query, number, section, tokens, place, last_place, begins_ptr, ends_ptr, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Keys of section `number`, those that some queries of the tile see, from `begin` to `end`, and those that all of them see, tiles from `partial` to `unmasked`. place,
    last_place: of the tile's first and last token, for packed sequences."""
    keys = tokens_of(number, section, tokens)
    end = keys
    unmasked = keys // BLOCK_N * BLOCK_N
    section_begin = number * section
    shift = first_query - section_begin
    if CAUSAL:
        end = max(min(keys, shift + BLOCK_M), 0)
        unmasked = min(unmasked, max(shift + 1, 0) // BLOCK_N * BLOCK_N)
    begin = 0
    partial = 0
    if begins_ptr is not None:
        begin = max(tl.load(begins_ptr + place) - section_begin, 0) // BLOCK_N * BLOCK_N
        partial = tl.load(begins_ptr + last_place) - section_begin
        unmasked = min(unmasked, max(tl.load(ends_ptr + place) - section_begin, 0) // BLOCK_N * BLOCK_N)
        end = min(end, tl.load(ends_ptr + last_place) - section_begin)
    return keys, begin, partial, unmasked, end


@triton.jit
def is_key_seen(query_rows, section_begin, first_key, keys, CAUSAL: tl.constexpr, BLOCK_N: tl.constexpr, begins=None, ends=None):
    """Of the tile's queries the keys of a section from its first_key-th on. query_rows: places of the queries among all tokens; begins, ends: of the sequences that they
    belong to, where tokens are of several."""
    key_rows = tl.arange(0, BLOCK_N)
    seen = (key_rows < keys - first_key)[None, :]
    if CAUSAL:
        seen = seen & (key_rows[None, :] <= (query_rows - (section_begin + first_key))[:, None])
    if begins is not None:
        seen = seen & (key_rows[None, :] >= (begins - (section_begin + first_key))[:, None])
        seen = seen & (key_rows[None, :] < (ends - (section_begin + first_key))[:, None])
    return seen


@triton.jit
def attend_keys(q, k_desc, v_desc, place, kv_head, first_row, query_rows, section_begin, keys, begin, partial, unmasked, end, largest, total, accumulator, score_scale,
                CAUSAL: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_N: tl.constexpr, begins=None, ends=None):
    """Goes on with online softmax over a section's keys from `begin` to `end`, whose rows begin at first_row. All rows of the tile see those from `partial` to `unmasked`;
    without `begins` from 0 on."""
    for first_key in range(begin, end, BLOCK_N):
        k = k_desc.load([place, kv_head, first_row + first_key, 0]).reshape([BLOCK_N, HEAD_DIM])
        scores = tl.dot(q, k.T)
        masked = first_key >= unmasked
        if begins is not None:
            masked = masked | (first_key < partial)
        if masked:
            scores = tl.where(is_key_seen(query_rows, section_begin, first_key, keys, CAUSAL, BLOCK_N, begins, ends), scores, float("-inf"))
        largest, total, rescale, powers = softmax_turn(scores, score_scale, largest, total, 0.0)
        v = v_desc.load([place, kv_head, first_row + first_key, 0]).reshape([BLOCK_N, HEAD_DIM])
        accumulator = tl.dot(powers.to(v.dtype), v, accumulator * rescale[:, None])
    return largest, total, accumulator


@triton.jit
def merge_columns(sums, factor_before, tile_ptr, row_ptr, rows_left, has_begun, is_complete, scale, HEAD_DIM: tl.constexpr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)[:, None]
    columns = tl.arange(0, COLUMNS)[None, :]
    if has_begun != 0:
        sums += tl.load(tile_ptr + rows * COLUMNS + columns) * factor_before
        # Of small tiles several warps hold copies, one of which stores.
        tl.debug_barrier()
    if is_complete:
        tl.store(row_ptr + rows * HEAD_DIM + columns, (sums * scale).to(row_ptr.dtype.element_ty), mask=rows < rows_left)
    else:
        tl.store(tile_ptr + rows * COLUMNS + columns, sums)


@triton.jit
def merge_tile(sums, factor_before, partial_ptr, result_ptr, tile, place, rows_left, has_begun, is_complete, scale, HEAD_DIM: tl.constexpr, BLOCK: tl.constexpr):
    """Adds what earlier launches left, times factor_before: of partial_ptr, fp32, the tile-th [BLOCK, HEAD_DIM]. What is complete goes, times scale, to the result, from row
    `place` on; the rest to the next launch. Wide tiles in halves: they take less shared memory on their way, and fewer registers. What warps have loaded before comes before what
    they store behind."""
    tile_ptr = partial_ptr + tile * (BLOCK * HEAD_DIM)
    row_ptr = result_ptr + place * HEAD_DIM
    if HEAD_DIM > 64:
        HALF: tl.constexpr = HEAD_DIM // 2
        low, high = sums.reshape([BLOCK, 2, HALF]).permute(0, 2, 1).split()
        merge_columns(low, factor_before, tile_ptr, row_ptr, rows_left, has_begun, is_complete, scale, HEAD_DIM, HALF, BLOCK)
        merge_columns(high, factor_before, tile_ptr + BLOCK * HALF, row_ptr + HALF, rows_left, has_begun, is_complete, scale, HEAD_DIM, HALF, BLOCK)
    else:
        merge_columns(sums, factor_before, tile_ptr, row_ptr, rows_left, has_begun, is_complete, scale, HEAD_DIM, HEAD_DIM, BLOCK)
