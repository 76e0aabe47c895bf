"""C = A @ B on one Hopper GPU, cut otherwise than by gemm (host side: ditron/ops/Gemm): tiles of two widths, and a last wave that is split along K.

Matrices are those of kernels/gemm. A_POLICY and B_POLICY say how long the L2 cache shall keep the operands: "", "evict_first" or
"evict_last". With CLUSTER = 2 neighbouring blocks compute tiles below each other and fetch B's together; the grid is even. Elsewhere than on GPUs
with tensor copies and warpgroup multiplies the kernels are right, and slow.
"""
import triton
import triton.language as tl

from ..product.product import cluster_tile, matmul_tile, weight_descriptor


@triton.jit
def in_register_order(tile, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """The elements of an accumulator in a row, so that neighbours are what a thread of a Hopper's warpgroup holds, then what its lanes
    hold: stores and loads of 16 bytes a thread without a detour through shared memory, which is full of operands."""
    tile = tl.reshape(tile, (BLOCK_M // 16, 2, 8, BLOCK_N // 8, 4, 2))
    return tl.reshape(tl.permute(tile, (3, 0, 2, 4, 1, 5)), (BLOCK_M * BLOCK_N,))


@triton.jit
def from_register_order(row, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    row = tl.reshape(row, (BLOCK_N // 8, BLOCK_M // 16, 8, 4, 2, 2))
    return tl.reshape(tl.permute(row, (1, 4, 2, 0, 3, 5)), (BLOCK_M, BLOCK_N))


@triton.jit(do_not_specialize=["whole_tiles", "parts"])
def gemm_split_tail(a_ptr, b_ptr, c_ptr, sums_ptr, counter_ptr, M, N, K, stride_a, stride_b, stride_c, whole_tiles, parts,
                    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
                    B_TRANSPOSED: tl.constexpr, PRECISION: tl.constexpr, A_POLICY: tl.constexpr = "", B_POLICY: tl.constexpr = "",
                    CLUSTER: tl.constexpr = 1):
    """As gemm, where the number of tiles would leave the last wave ragged: the tiles behind `whole_tiles` are split along K into `parts`,
    2 to the number of steps along K.

    The first parts of all these tiles come first, then their second ones: blocks that run at the same time have the same place along K, as
    in a whole wave, and share what they read in the L2 cache. (Stream-K, arXiv 2301.03598, gives each block an equal run of steps, so that
    all are somewhere else: measured, docs/bench.md.) Tiles are counted by clusters. Sums of parts go to sums_ptr, fp32 [parts, tiles,
    CLUSTER, BLOCK_M * BLOCK_N]. Each block counts itself at counter_ptr, i64 [tiles, CLUSTER], which only grows; the last one to come adds the parts of its tile in the order of K, whoever
    it is: results are the same bits each time, and no block waits for another.
    """
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[stride_a, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_desc = weight_descriptor(b_ptr, N, K, stride_b, BLOCK_N, BLOCK_K, B_TRANSPOSED)
    c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[stride_c, 1], block_shape=[BLOCK_M, BLOCK_N])
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    k_tiles = tl.cdiv(K, BLOCK_K)
    split_tiles = tl.cdiv(tiles_m, CLUSTER) * tiles_n - whole_tiles
    for item in tl.range(tl.program_id(0) // CLUSTER, whole_tiles + split_tiles * parts, tl.num_programs(0) // CLUSTER, warp_specialize=True,
                         cluster_blocks=CLUSTER):
        tile = item
        piece = item - whole_tiles
        split_tile = 0  # counted from whole_tiles
        first = 0
        end = k_tiles
        if piece >= 0:
            split_tile = piece % split_tiles
            part = piece // split_tiles
            tile = whole_tiles + split_tile
            first = part * k_tiles // parts
            end = (part + 1) * k_tiles // parts
        tl.assume(first < end)
        tile_m, tile_n = cluster_tile(tile, tiles_m, tiles_n, GROUP_M, CLUSTER)
        row = tile_m * BLOCK_M
        column = tile_n * BLOCK_N
        accumulator = matmul_tile(a_desc, b_desc, row, column, first, end, BLOCK_M, BLOCK_N, BLOCK_K, B_TRANSPOSED, PRECISION, A_POLICY,
                                  B_POLICY)
        is_complete = True
        if piece >= 0:
            member = tl.program_id(0) % CLUSTER
            places = sums_ptr + tl.cast(member, tl.int64) * (BLOCK_M * BLOCK_N) + tl.arange(0, BLOCK_M * BLOCK_N)
            tl.store(places + tl.cast(piece, tl.int64) * (CLUSTER * BLOCK_M * BLOCK_N), in_register_order(accumulator, BLOCK_M, BLOCK_N))
            come = tl.atomic_add(counter_ptr + split_tile * CLUSTER + member, 1, sem="acq_rel", scope="gpu") + 1
            is_complete = come % parts == 0
            if is_complete:
                sum = tl.zeros((BLOCK_M * BLOCK_N,), dtype=tl.float32)
                for other in tl.range(split_tile, split_tiles * parts, split_tiles, loop_unroll_factor=1):
                    sum += tl.load(places + tl.cast(other, tl.int64) * (CLUSTER * BLOCK_M * BLOCK_N))
                accumulator = from_register_order(sum, BLOCK_M, BLOCK_N)
        if is_complete:
            c_desc.store([row, column], accumulator.to(c_ptr.dtype.element_ty))


@triton.jit
def gemm_two_widths(a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                    MORE_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, B_TRANSPOSED: tl.constexpr,
                    PRECISION: tl.constexpr, A_POLICY: tl.constexpr = "", B_POLICY: tl.constexpr = "",
                    CLUSTER: tl.constexpr = 1):
    """As gemm, with tiles of BLOCK_N + MORE_N columns, two powers of two: 128 + 64 make 192. Both parts share A's tile and the ring.
    MORE_N may be 0."""
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[stride_a, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_desc = weight_descriptor(b_ptr, N, K, stride_b, BLOCK_N, BLOCK_K, B_TRANSPOSED)
    c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[stride_c, 1], block_shape=[BLOCK_M, BLOCK_N])
    if MORE_N > 0:
        more_b_desc = weight_descriptor(b_ptr, N, K, stride_b, MORE_N, BLOCK_K, B_TRANSPOSED)
        more_c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[stride_c, 1], block_shape=[BLOCK_M, MORE_N])
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N + MORE_N)
    k_tiles = tl.cdiv(K, BLOCK_K)
    tl.assume(k_tiles > 0)
    for item in tl.range(tl.program_id(0) // CLUSTER, tl.cdiv(tiles_m, CLUSTER) * tiles_n, tl.num_programs(0) // CLUSTER, warp_specialize=True,
                         cluster_blocks=CLUSTER):
        tile_m, tile_n = cluster_tile(item, tiles_m, tiles_n, GROUP_M, CLUSTER)
        row = tile_m * BLOCK_M
        column = tile_n * (BLOCK_N + MORE_N)
        accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        if MORE_N > 0:
            more = tl.zeros((BLOCK_M, MORE_N), dtype=tl.float32)
        for k in range(0, k_tiles):
            depth = k * BLOCK_K
            a = a_desc.load([row, depth], eviction_policy=A_POLICY)
            if B_TRANSPOSED:
                b = b_desc.load([column, depth], eviction_policy=B_POLICY)
                accumulator = tl.dot(a, b.T, accumulator, input_precision=PRECISION)
            else:
                b = b_desc.load([depth, column], eviction_policy=B_POLICY)
                accumulator = tl.dot(a, b, accumulator, input_precision=PRECISION)
            if MORE_N > 0:
                if B_TRANSPOSED:
                    more_b = more_b_desc.load([column + BLOCK_N, depth], eviction_policy=B_POLICY)
                    more = tl.dot(a, more_b.T, more, input_precision=PRECISION)
                else:
                    more_b = more_b_desc.load([depth, column + BLOCK_N], eviction_policy=B_POLICY)
                    more = tl.dot(a, more_b, more, input_precision=PRECISION)
        c_desc.store([row, column], accumulator.to(c_ptr.dtype.element_ty))
        if MORE_N > 0:
            more_c_desc.store([row, column + BLOCK_N], more.to(c_ptr.dtype.element_ty))
