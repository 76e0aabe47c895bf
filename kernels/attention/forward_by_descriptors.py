"""Attention, forward, for GPUs with tensor copies, which fetch whole tiles: K and V go on beside the products, and no warp computes
addresses (docs/warp-specialisation.md)."""
import triton
import triton.language as tl

from .softmax import log_sum_exp


@triton.jit
def attention_forward_by_descriptors(q_ptr, k_ptr, v_ptr, out_ptr, batch_heads, batch_kv_heads, group, queries, keys, q_stride,
                                     kv_stride, score_scale, CAUSAL: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr,
                                     BLOCK_N: tl.constexpr, lse_ptr=None):
    """What attention_forward of forward.py computes.

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
        if lse_ptr is not None:
            rows = tl.arange(0, BLOCK_M)
            tl.store(lse_ptr + (tl.cast(head, tl.int64) * queries + first_query) + rows, log_sum_exp(largest, total), mask=rows < queries - first_query)
