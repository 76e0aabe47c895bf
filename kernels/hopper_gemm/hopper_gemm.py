"""C = A @ B on one Hopper GPU, cut otherwise than by gemm (host side: ditron/ops/Gemm): tiles of two widths, and stream-K.

Matrices are those of kernels/gemm. A_POLICY and B_POLICY say how long the L2 cache shall keep the operands: "", "evict_first" or
"evict_last". With RESIDENT_BLOCKS = 2 a multiprocessor has two blocks, and one multiplies while the other stores its tile. Elsewhere than on GPUs with tensor copies and warpgroup multiplies the kernels are right, and slow.
"""
import triton
import triton.language as tl

from ..product.product import grouped_tile


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


@triton.jit(do_not_specialize=["whole_tiles"])
def gemm_stream_k(a_ptr, b_ptr, c_ptr, part_ptr, counter_ptr, M, N, K, stride_a, stride_b, stride_c, whole_tiles,
                  BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
                  B_TRANSPOSED: tl.constexpr, PRECISION: tl.constexpr, A_POLICY: tl.constexpr = "", B_POLICY: tl.constexpr = "",
                  RESIDENT_BLOCKS: tl.constexpr = 1):
    """As gemm, where the number of tiles would leave the last wave ragged: the last tiles are cut along K (stream-K, arXiv 2301.03598).

    The first `whole_tiles` tiles, a multiple of the blocks, are computed as in gemm. The steps along K of the others stand in a row, tile
    after tile, and each block gets an equal run of them: at least one step. A run may begin and end within tiles. Blocks that share a tile
    put their parts into part_ptr, fp32 [blocks, 2, BLOCK_M * BLOCK_N] (the part at the beginning of a run and the one at its end), and
    count themselves at counter_ptr, i64 [tiles behind whole_tiles], which only grows. The last one to come adds all parts in the order of K,
    whoever it is: results are the same bits each time, and no block waits for another.
    """
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[stride_a, 1], block_shape=[BLOCK_M, BLOCK_K])
    if B_TRANSPOSED:
        b_desc = tl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[stride_b, 1], block_shape=[BLOCK_N, BLOCK_K])
    else:
        b_desc = tl.make_tensor_descriptor(b_ptr, shape=[K, N], strides=[stride_b, 1], block_shape=[BLOCK_K, BLOCK_N])
    c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[stride_c, 1], block_shape=[BLOCK_M, BLOCK_N])
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    k_tiles = tl.cdiv(K, BLOCK_K)
    block = tl.program_id(0)
    blocks = tl.num_programs(0)
    waves = whole_tiles // blocks
    steps = (tiles_m * tiles_n - whole_tiles) * k_tiles
    run_begin = block * steps // blocks
    run_end = (block + 1) * steps // blocks
    pieces = (run_end - 1) // k_tiles - run_begin // k_tiles + 1
    for item in tl.range(0, waves + pieces, warp_specialize=True, resident_blocks=RESIDENT_BLOCKS):
        tile = block + item * blocks
        first = 0
        end = k_tiles
        cut_tile = 0  # counted from whole_tiles
        sharers = 1
        first_sharer = 0
        if item >= waves:
            cut_tile = run_begin // k_tiles + item - waves
            tile = whole_tiles + cut_tile
            first = max(run_begin - cut_tile * k_tiles, 0)
            end = min(run_end - cut_tile * k_tiles, k_tiles)
            # Step x belongs to block ((x + 1) * blocks - 1) // steps.
            first_sharer = ((cut_tile * k_tiles + 1) * blocks - 1) // steps
            sharers = ((cut_tile + 1) * k_tiles * blocks - 1) // steps - first_sharer + 1
        tl.assume(first < end)
        tile_m, tile_n = grouped_tile(tile, tiles_m, tiles_n, GROUP_M)
        row = tile_m * BLOCK_M
        column = tile_n * BLOCK_N
        accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(first, end):
            a = a_desc.load([row, k * BLOCK_K], eviction_policy=A_POLICY)
            if B_TRANSPOSED:
                b = b_desc.load([column, k * BLOCK_K], eviction_policy=B_POLICY)
                accumulator = tl.dot(a, b.T, accumulator, input_precision=PRECISION)
            else:
                b = b_desc.load([k * BLOCK_K, column], eviction_policy=B_POLICY)
                accumulator = tl.dot(a, b, accumulator, input_precision=PRECISION)
        is_complete = True
        if sharers > 1:
            places = part_ptr + tl.arange(0, BLOCK_M * BLOCK_N)
            own = block * 2 + (cut_tile != run_begin // k_tiles).to(tl.int32)
            tl.store(places + tl.cast(own, tl.int64) * (BLOCK_M * BLOCK_N), in_register_order(accumulator, BLOCK_M, BLOCK_N))
            come = tl.atomic_add(counter_ptr + cut_tile, 1, sem="acq_rel", scope="gpu") + 1
            is_complete = come % sharers == 0
            if is_complete:
                sum = tl.zeros((BLOCK_M * BLOCK_N,), dtype=tl.float32)
                for sharer in tl.range(first_sharer, first_sharer + sharers, loop_unroll_factor=1):
                    part = sharer * 2 + (cut_tile != sharer * steps // blocks // k_tiles).to(tl.int32)
                    sum += tl.load(places + tl.cast(part, tl.int64) * (BLOCK_M * BLOCK_N))
                accumulator = from_register_order(sum, BLOCK_M, BLOCK_N)
        if is_complete:
            c_desc.store([row, column], accumulator.to(c_ptr.dtype.element_ty))


@triton.jit
def gemm_two_widths(a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                    MORE_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, B_TRANSPOSED: tl.constexpr,
                    PRECISION: tl.constexpr, A_POLICY: tl.constexpr = "", B_POLICY: tl.constexpr = "",
                  RESIDENT_BLOCKS: tl.constexpr = 1):
    """As gemm, with tiles of BLOCK_N + MORE_N columns, two powers of two: 128 + 64 make 192. Both parts share A's tile and the ring.
    MORE_N may be 0."""
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[stride_a, 1], block_shape=[BLOCK_M, BLOCK_K])
    if B_TRANSPOSED:
        b_desc = tl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[stride_b, 1], block_shape=[BLOCK_N, BLOCK_K])
    else:
        b_desc = tl.make_tensor_descriptor(b_ptr, shape=[K, N], strides=[stride_b, 1], block_shape=[BLOCK_K, BLOCK_N])
    c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[stride_c, 1], block_shape=[BLOCK_M, BLOCK_N])
    if MORE_N > 0:
        if B_TRANSPOSED:
            more_b_desc = tl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[stride_b, 1], block_shape=[MORE_N, BLOCK_K])
        else:
            more_b_desc = tl.make_tensor_descriptor(b_ptr, shape=[K, N], strides=[stride_b, 1], block_shape=[BLOCK_K, MORE_N])
        more_c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[stride_c, 1], block_shape=[BLOCK_M, MORE_N])
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N + MORE_N)
    k_tiles = tl.cdiv(K, BLOCK_K)
    tl.assume(k_tiles > 0)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), warp_specialize=True,
                         resident_blocks=RESIDENT_BLOCKS):
        tile_m, tile_n = grouped_tile(tile, tiles_m, tiles_n, GROUP_M)
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
