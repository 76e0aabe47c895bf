"""What is between the projection to Q, K and V and attention with a cache of keys (host side: ditron/ops/layers/AttentionHeads).

A token's row of the projection has its heads of Q, then of K, then of V, perhaps in several groups one behind the other. Heads of Q and K may be normed, each
by itself, and rotated by the token's position; Q goes to memory of its own, K and V to the cache, at the token's place among the keys of its sequence.

Where tokens are, one of
    lengths, offsets     tokens of sequence s follow each other from offsets[s] on, and are the last of lengths[s] keys
    lengths              each sequence has one token, the last of lengths[s] keys
    places, positions    each sequence has one token; its place may be -1, which is none: then K and V go nowhere
    neither              each sequence has `rows_of_sequence` tokens at the places from 0 on, the positions from first_position on
"""
import triton
import triton.language as tl


@triton.jit
def normed(source_ptr, column, is_head, is_query, is_value, scale, q_weight_ptr, k_weight_ptr):
    """Columns of heads as they go on, in float32. scale: by which heads are multiplied that are normed."""
    values = tl.load(source_ptr + column[None, :], mask=is_head[:, None], other=0.0).to(tl.float32)
    if q_weight_ptr is None:
        return values
    of_query = tl.load(q_weight_ptr + column).to(tl.float32)[None, :]
    of_key = tl.load(k_weight_ptr + column).to(tl.float32)[None, :]
    weight = tl.where(is_query[:, None], of_query, of_key)
    return tl.where(is_value[:, None], values, values * scale[:, None] * weight)


@triton.jit
def place_heads(rows_ptr, k_ptr, v_ptr, batch, heads, kv_heads, page_stride, row_stride, head_stride, HEAD_DIM: tl.constexpr, BATCH: tl.constexpr,
                BLOCK_HEADS: tl.constexpr, q_ptr=None, lengths_ptr=None, offsets_ptr=None, places_ptr=None, positions_ptr=None, rows_of_sequence=1,
                first_position=0, table_ptr=None, table_stride=0, PAGE: tl.constexpr = 1, q_weight_ptr=None, k_weight_ptr=None, epsilon=0.0,
                rotary_ptr=None, ROTARY_DIM: tl.constexpr = 0, INTERLEAVED: tl.constexpr = False, GROUPS: tl.constexpr = 1):
    """rows [tokens, (heads + 2 kv_heads) HEAD_DIM] -> q [tokens, heads, HEAD_DIM], K and V to their places. Tokens behind the last offset, and those
    of sequences that have no keys, go to no cache. Each of GROUPS has as many heads of Q, of K and of V, which are numbered through the groups.

    Key i of sequence s is row i % PAGE of page table[s, i // PAGE], without a table row i of page s. Weights of norms [HEAD_DIM]. rotary
    [positions, ROTARY_DIM] float32: of each angle the cosine, then of each the sine. Angle j turns columns j and j + ROTARY_DIM / 2 of a head,
    INTERLEAVED 2j and 2j + 1; columns from ROTARY_DIM on stay.
    Grid: (tokens, blocks of BLOCK_HEADS heads).
    """
    token = tl.program_id(0)
    sequence = token
    is_there = token < batch
    if places_ptr is not None:
        place = tl.load(places_ptr + token)
        position = tl.load(positions_ptr + token)
        is_there = place >= 0
    elif lengths_ptr is not None:
        end = token + 1
        if offsets_ptr is not None:
            numbers = tl.arange(0, BATCH)
            ends = tl.load(offsets_ptr + 1 + numbers, mask=numbers < batch, other=2147483647)
            sequence = tl.sum((ends <= token).to(tl.int32), axis=0)
            is_there = sequence < batch
            sequence = min(sequence, batch - 1)
            end = tl.load(offsets_ptr + sequence + 1)
        place = tl.load(lengths_ptr + sequence) - end + token
        position = place
        is_there = is_there & (place >= 0)
    else:
        sequence = token // rows_of_sequence
        place = token % rows_of_sequence
        position = first_position + place
        is_there = sequence < batch

    all_heads = heads + 2 * kv_heads
    head = tl.program_id(1) * BLOCK_HEADS + tl.arange(0, BLOCK_HEADS)
    column = tl.arange(0, HEAD_DIM)
    is_head = head < all_heads
    # Within the group, and what groups before it have.
    within = head
    of_group = heads
    kv_of_group = kv_heads
    group = tl.zeros((BLOCK_HEADS,), tl.int32)
    if GROUPS > 1:
        of_group = heads // GROUPS
        kv_of_group = kv_heads // GROUPS
        group = head // (all_heads // GROUPS)
        within = head % (all_heads // GROUPS)
    is_query = is_head & (within < of_group)
    is_value = within >= of_group + kv_of_group
    source_ptr = rows_ptr + (tl.cast(token, tl.int64) * all_heads + head)[:, None] * HEAD_DIM
    scale = tl.zeros((BLOCK_HEADS,), tl.float32)
    if q_weight_ptr is not None:
        plain = tl.load(source_ptr + column[None, :], mask=is_head[:, None], other=0.0).to(tl.float32)
        scale = tl.rsqrt(tl.sum(plain * plain, axis=1) / HEAD_DIM + epsilon)
    values = normed(source_ptr, column, is_head, is_query, is_value, scale, q_weight_ptr, k_weight_ptr)
    if rotary_ptr is not None:
        HALF: tl.constexpr = ROTARY_DIM // 2
        is_rotated = column < ROTARY_DIM
        if INTERLEAVED:
            partner = column ^ 1
            angle = column // 2
            sign = tl.where(column % 2 == 0, -1.0, 1.0)
        else:
            partner = tl.where(column < HALF, column + HALF, column - HALF)
            angle = column % HALF
            sign = tl.where(column < HALF, -1.0, 1.0)
        others = normed(source_ptr, tl.where(is_rotated, partner, column), is_head, is_query, is_value, scale, q_weight_ptr, k_weight_ptr)
        # A token behind the last one has a position of the last sequence, which may have none there.
        has_angle = is_rotated & (position >= 0) & (is_there | (places_ptr is not None))
        angles_ptr = rotary_ptr + tl.cast(position, tl.int64) * ROTARY_DIM + angle
        cosine = tl.load(angles_ptr, mask=has_angle, other=1.0)
        sine = tl.load(angles_ptr + HALF, mask=has_angle, other=0.0) * sign
        values = tl.where(is_value[:, None], values, values * cosine[None, :] + others * sine[None, :])

    values = values.to(rows_ptr.dtype.element_ty)
    if q_ptr is not None:
        of_query = q_ptr + (tl.cast(token, tl.int64) * heads + group * of_group + within)[:, None] * HEAD_DIM
        tl.store(of_query + column[None, :], values, mask=is_query[:, None])
    page = sequence
    row = place
    if table_ptr is not None:
        page = tl.load(table_ptr + sequence * table_stride + place // PAGE, mask=is_there, other=0)
        row = place % PAGE
    key_head = group * kv_of_group + within - of_group
    of_key = tl.cast(page, tl.int64) * page_stride + tl.cast(row, tl.int64) * row_stride + key_head[:, None] * head_stride + column[None, :]
    goes = is_head & is_there
    tl.store(k_ptr + of_key, values, mask=(goes & (within >= of_group) & (within < of_group + kv_of_group))[:, None])
    tl.store(v_ptr + of_key - kv_of_group * head_stride, values, mask=(goes & is_value)[:, None])
