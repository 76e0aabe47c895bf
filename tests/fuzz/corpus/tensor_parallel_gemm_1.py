import triton
import triton.language as tl
import triton_dist.language as dl
from triton.language.extra import libdevice
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import *

@triton.jit
def swizzle_reduce_scatter(index, M, rows_per_rank, rank, WORLD_SIZE: tl.constexpr, NUM_NODES: tl.constexpr,
                           BLOCK_M: tl.constexpr):
    """The index-th row of tiles to compute, so that segments complete in the order in which they are sent.

    The next node's segments come first and the own node's last; inside a node the next local rank's first and the own
    last. A tile that reaches into several nodes is needed by all of them, so it belongs to the one visited first.
    """
    LOCAL_SIZE: tl.constexpr = WORLD_SIZE // NUM_NODES
    rows_per_node = rows_per_rank * LOCAL_SIZE
    num_tiles = tl.cdiv(M, BLOCK_M)
    own_node = rank // LOCAL_SIZE
    local_rank = rank % LOCAL_SIZE
    first_node = (own_node + 1) % NUM_NODES
    result = index
    remaining = index
    for visit in tl.static_range(NUM_NODES):
        node = (first_node + visit) % NUM_NODES
        begin = 0
        end = 0
        running = num_tiles
        for back in tl.static_range(NUM_NODES):
            n = NUM_NODES - 1 - back
            boundary = min(n * rows_per_node, M)
            node_begin = tl.cdiv(boundary, BLOCK_M)
            if n == own_node + 1:
                node_begin = boundary // BLOCK_M
            node_begin = min(node_begin, running)
            if n == node:
                begin = node_begin
                end = running
            running = node_begin
        size = end - begin
        if (remaining >= 0) & (remaining < size):
            next_local = (local_rank + 1) % LOCAL_SIZE
            first = min((node * LOCAL_SIZE + next_local) * rows_per_rank, M) // BLOCK_M - begin
            result = begin + (remaining + max(first, 0)) % size
        remaining -= size
    return result


@triton.jit
def matmul_tile(a_desc, b_desc, row, column, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
                B_TRANSPOSED: tl.constexpr, PRECISION: tl.constexpr):
    """fp32 accumulator of the tile of A @ B at (row, column). What lies beyond the matrices reads as zero."""
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    steps = tl.cdiv(K, BLOCK_K)
    tl.assume(steps > 0)
    for k in range(0, steps):
        a = a_desc.load([row, k * BLOCK_K])
        if B_TRANSPOSED:
            b = b_desc.load([column, k * BLOCK_K])
            accumulator = tl.dot(a, b.T, accumulator, input_precision=PRECISION)
        else:
            b = b_desc.load([k * BLOCK_K, column])
            accumulator = tl.dot(a, b, accumulator, input_precision=PRECISION)
    return accumulator


@triton.jit
def weight_descriptor(b_ptr, N, K, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, B_TRANSPOSED: tl.constexpr):
    """B as [N, K] (the weight of a torch Linear, B_TRANSPOSED) or as [K, N]; row-major."""
    if B_TRANSPOSED:
        b_desc = tl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[K, 1], block_shape=[BLOCK_N, BLOCK_K])
    else:
        b_desc = tl.make_tensor_descriptor(b_ptr, shape=[K, N], strides=[N, 1], block_shape=[BLOCK_K, BLOCK_N])
    return b_desc


