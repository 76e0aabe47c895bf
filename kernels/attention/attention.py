"""Attention, forward, without the matrix of scores in memory (host side: ditron/ops/Attention).

Q and the result are [batch, heads, queries, HEAD_DIM], K and V are [batch, kv_heads, keys, HEAD_DIM], all contiguous. Query
head h reads K and V of head h // (heads / kv_heads). A block computes BLOCK_M rows of one head: it goes over K and V in
steps of BLOCK_N, and keeps for each row the largest score, the sum of the powers and the weighted sum of V; when a larger
score turns up, what was summed is scaled down (online softmax).
"""
import triton
import triton.language as tl


@triton.jit
def scores_to_powers(scores, largest):
    """Running maximum with these scores, factor for what was summed before, and 2 ** (score - maximum)."""
    new_largest = tl.maximum(largest, tl.max(scores, axis=1))
    # A row of which every key so far is masked has no maximum: any finite number does.
    finite = tl.where(new_largest == float("-inf"), 0.0, new_largest)
    rescale = tl.exp2(largest - finite)
    powers = tl.exp2(scores - finite[:, None])
    return new_largest, rescale, powers


@triton.jit
def attention_forward(q_ptr, k_ptr, v_ptr, out_ptr, heads, group, queries, keys, score_scale, CAUSAL: tl.constexpr,
                      HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """out = softmax(Q K^T * score_scale / log2(e)) V: score_scale already has the factor log2(e).

    group: heads / kv_heads. CAUSAL: query i sees the keys up to i + keys - queries. A query that sees none gives zeros.
    Grid: (rows of tiles, batch * heads).
    """
    # The last rows of tiles have the most work when CAUSAL: they start first.
    tile = tl.num_programs(0) - 1 - tl.program_id(0)
    batch = tl.program_id(1) // heads
    head = tl.program_id(1) % heads
    kv_heads = heads // group
    first_query = tile * BLOCK_M
    query_rows = first_query + tl.arange(0, BLOCK_M)
    depths = tl.arange(0, HEAD_DIM)
    key_rows = tl.arange(0, BLOCK_N)
    q_head = tl.cast(batch * heads + head, tl.int64) * queries * HEAD_DIM
    kv_head = tl.cast(batch * kv_heads + head // group, tl.int64) * keys * HEAD_DIM
    query_offsets = query_rows[:, None] * HEAD_DIM + depths[None, :]
    query_mask = query_rows[:, None] < queries
    q = tl.load(q_ptr + q_head + query_offsets, mask=query_mask, other=0.0)

    # Keys below `unmasked` are seen by all rows of the tile; those from there to `end` by some.
    end = keys
    unmasked = (keys // BLOCK_N) * BLOCK_N
    if CAUSAL:
        shift = keys - queries
        end = max(min(keys, first_query + BLOCK_M + shift), 0)
        unmasked = min(unmasked, max(first_query + 1 + shift, 0) // BLOCK_N * BLOCK_N)

    largest = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    accumulator = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
    k_ptrs = k_ptr + kv_head + (depths[:, None] + key_rows[None, :] * HEAD_DIM)
    v_ptrs = v_ptr + kv_head + (key_rows[:, None] * HEAD_DIM + depths[None, :])
    for first_key in range(0, unmasked, BLOCK_N):
        k = tl.load(k_ptrs)
        scores = tl.dot(q, k) * score_scale
        largest, rescale, powers = scores_to_powers(scores, largest)
        total = total * rescale + tl.sum(powers, axis=1)
        v = tl.load(v_ptrs)
        accumulator = tl.dot(powers.to(v_ptr.dtype.element_ty), v, accumulator * rescale[:, None])
        k_ptrs += BLOCK_N * HEAD_DIM
        v_ptrs += BLOCK_N * HEAD_DIM
    for first_key in range(unmasked, end, BLOCK_N):
        left = keys - first_key
        k = tl.load(k_ptrs, mask=key_rows[None, :] < left, other=0.0)
        scores = tl.dot(q, k) * score_scale
        seen = key_rows[None, :] < left
        if CAUSAL:
            seen = seen & (first_key + key_rows[None, :] <= query_rows[:, None] + (keys - queries))
        scores = tl.where(seen, scores, float("-inf"))
        largest, rescale, powers = scores_to_powers(scores, largest)
        total = total * rescale + tl.sum(powers, axis=1)
        v = tl.load(v_ptrs, mask=key_rows[:, None] < left, other=0.0)
        accumulator = tl.dot(powers.to(v_ptr.dtype.element_ty), v, accumulator * rescale[:, None])
        k_ptrs += BLOCK_N * HEAD_DIM
        v_ptrs += BLOCK_N * HEAD_DIM

    accumulator = accumulator / tl.where(total == 0.0, 1.0, total)[:, None]
    tl.store(out_ptr + q_head + query_offsets, accumulator.to(out_ptr.dtype.element_ty), mask=query_mask)


@triton.jit
def attention_forward_by_descriptors(q_ptr, k_ptr, v_ptr, out_ptr, batch_heads, batch_kv_heads, group, queries, keys, q_stride,
                                     kv_stride, score_scale, CAUSAL: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr,
                                     BLOCK_N: tl.constexpr):
    """The same for GPUs with tensor copies, which fetch whole tiles: K and V go on beside the products, and no warp computes addresses.

    batch_heads: batch * heads, and so batch_kv_heads. q_stride, kv_stride: elements from head to head. score_scale is positive: then
    the largest score stays the largest when it is scaled, and scaling and subtraction are one operation.
    """
    q_desc = tl.make_tensor_descriptor(q_ptr, shape=[batch_heads, queries, HEAD_DIM], strides=[q_stride, HEAD_DIM, 1],
                                       block_shape=[1, BLOCK_M, HEAD_DIM])
    k_desc = tl.make_tensor_descriptor(k_ptr, shape=[batch_kv_heads, keys, HEAD_DIM], strides=[kv_stride, HEAD_DIM, 1],
                                       block_shape=[1, BLOCK_N, HEAD_DIM])
    v_desc = tl.make_tensor_descriptor(v_ptr, shape=[batch_kv_heads, keys, HEAD_DIM], strides=[kv_stride, HEAD_DIM, 1],
                                       block_shape=[1, BLOCK_N, HEAD_DIM])
    out_desc = tl.make_tensor_descriptor(out_ptr, shape=[batch_heads, queries, HEAD_DIM], strides=[q_stride, HEAD_DIM, 1],
                                         block_shape=[1, BLOCK_M, HEAD_DIM])
    tiles = tl.cdiv(queries, BLOCK_M)
    key_rows = tl.arange(0, BLOCK_N)
    shift = keys - queries
    items = tiles * batch_heads
    programs = tl.num_programs(0)
    # Tiles of one head follow each other and share its keys in the L2 cache. When CAUSAL the last ones have the most work: first and last
    # ones come by turns, and a program takes two that follow each other, so that all have about as much to do.
    together = 1
    if CAUSAL:
        together = tl.where(items > programs, 2, 1)
    groups = tl.cdiv(items, together)
    steps = tl.cdiv(groups - tl.program_id(0), programs) * together
    if (groups - 1) % programs == tl.program_id(0):
        steps -= groups * together - items
    for step in tl.range(0, steps, warp_specialize=True):
        item = (step // together * programs + tl.program_id(0)) * together + step % together
        head = item // tiles
        tile = item % tiles
        if CAUSAL:
            tile = tl.where(tile % 2 == 0, tiles - 1 - tile // 2, tile // 2)
        first_query = tile * BLOCK_M
        query_rows = first_query + tl.arange(0, BLOCK_M)
        # Keys below `unmasked` are seen by all rows of the tile; those from there to `end` by some.
        end = keys
        unmasked = (keys // BLOCK_N) * BLOCK_N
        if CAUSAL:
            end = max(min(keys, first_query + BLOCK_M + shift), 0)
            unmasked = min(unmasked, max(first_query + 1 + shift, 0) // BLOCK_N * BLOCK_N)

        largest = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
        total = tl.zeros((BLOCK_M,), dtype=tl.float32)
        accumulator = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
        q = q_desc.load([head, first_query, 0]).reshape([BLOCK_M, HEAD_DIM])
        for first_key in range(0, end, BLOCK_N):
            k = k_desc.load([head // group, first_key, 0]).reshape([BLOCK_N, HEAD_DIM])
            scores = tl.dot(q, k.T)
            if first_key >= unmasked:
                if CAUSAL:
                    seen = key_rows[None, :] <= (query_rows + (shift - first_key))[:, None]
                else:
                    seen = (key_rows < keys - first_key)[None, :]
                scores = tl.where(seen, scores, float("-inf"))
            new_largest = tl.maximum(largest, tl.max(scores, axis=1) * score_scale)
            # A row of which every key so far is masked has no maximum: any finite number does.
            finite = tl.where(new_largest == float("-inf"), 0.0, new_largest)
            rescale = tl.exp2(largest - finite)
            powers = tl.exp2(scores * score_scale - finite[:, None])
            total = total * rescale + tl.sum(powers, axis=1)
            largest = new_largest
            v = v_desc.load([head // group, first_key, 0]).reshape([BLOCK_N, HEAD_DIM])
            accumulator = tl.dot(powers.to(v_ptr.dtype.element_ty), v, accumulator * rescale[:, None])

        accumulator = accumulator * (1.0 / tl.where(total == 0.0, 1.0, total))[:, None]
        out_desc.store([head, first_query, 0], accumulator.to(out_ptr.dtype.element_ty).reshape([1, BLOCK_M, HEAD_DIM]))
