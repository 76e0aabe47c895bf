"""C = A @ B on one GPU, fp32 accumulation (host side: ditron/ops/Gemm).

A is [M, K] and C is [M, N], row-major. B is [N, K] row-major, as the weight of a torch Linear (B_TRANSPOSED), or [K, N].
Rows may be padded: each matrix has a row stride.

`gemm` is persistent and moves tiles by tensor descriptors: on Hopper TMA, an mbarrier ring, wgmma and warp
specialisation, elsewhere pointers. `gemm_pointers` has a block per tile and loads through pointers: the better shape for
GPUs without TMA, and the only one for row strides that are no multiple of 16 bytes.
"""
import triton
import triton.language as tl


@triton.jit
def grouped_tile(index, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """Number of a tile -> (row, column) of tiles: column-major inside groups of GROUP_M rows of tiles, for L2 reuse."""
    tiles_in_group = GROUP_M * tiles_n
    first_row = (index // tiles_in_group) * GROUP_M
    group_rows = min(tiles_m - first_row, GROUP_M)
    row = first_row + (index % tiles_in_group) % group_rows
    column = (index % tiles_in_group) // group_rows
    return row, column


@triton.jit
def gemm(a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
         BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, B_TRANSPOSED: tl.constexpr, PRECISION: tl.constexpr):
    """Each of the num_programs blocks computes every num_programs-th tile."""
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[stride_a, 1], block_shape=[BLOCK_M, BLOCK_K])
    if B_TRANSPOSED:
        b_desc = tl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[stride_b, 1], block_shape=[BLOCK_N, BLOCK_K])
    else:
        b_desc = tl.make_tensor_descriptor(b_ptr, shape=[K, N], strides=[stride_b, 1], block_shape=[BLOCK_K, BLOCK_N])
    c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[stride_c, 1], block_shape=[BLOCK_M, BLOCK_N])
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    k_tiles = tl.cdiv(K, BLOCK_K)
    # Without the promise the accumulators of a loop without a turn must be merged in, register by register.
    tl.assume(k_tiles > 0)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), warp_specialize=True):
        tile_m, tile_n = grouped_tile(tile, tiles_m, tiles_n, GROUP_M)
        row = tile_m * BLOCK_M
        column = tile_n * BLOCK_N
        accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, k_tiles):
            a = a_desc.load([row, k * BLOCK_K])
            if B_TRANSPOSED:
                b = b_desc.load([column, k * BLOCK_K])
                accumulator = tl.dot(a, b.T, accumulator, input_precision=PRECISION)
            else:
                b = b_desc.load([k * BLOCK_K, column])
                accumulator = tl.dot(a, b, accumulator, input_precision=PRECISION)
        c_desc.store([row, column], accumulator.to(c_ptr.dtype.element_ty))


@triton.jit
def gemm_pointers(a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c, BLOCK_M: tl.constexpr,
                  BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, B_TRANSPOSED: tl.constexpr,
                  PRECISION: tl.constexpr):
    """One tile per block. Offsets inside a tile fit 32 bits; where a tile begins is found in 64."""
    tile_m, tile_n = grouped_tile(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)
    rows = tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_N)
    depths = tl.arange(0, BLOCK_K)
    row_mask = rows[:, None] < M - tile_m * BLOCK_M
    column_mask = columns[None, :] < N - tile_n * BLOCK_N
    a_ptrs = a_ptr + tl.cast(tile_m * BLOCK_M, tl.int64) * stride_a + (rows[:, None] * stride_a + depths[None, :])
    if B_TRANSPOSED:
        b_ptrs = b_ptr + tl.cast(tile_n * BLOCK_N, tl.int64) * stride_b + (columns[None, :] * stride_b + depths[:, None])
        b_step = BLOCK_K
    else:
        b_ptrs = b_ptr + tile_n * BLOCK_N + (depths[:, None] * stride_b + columns[None, :])
        b_step = BLOCK_K * stride_b
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        a = tl.load(a_ptrs, mask=row_mask & (depths[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=(depths[:, None] < left) & column_mask, other=0.0)
        accumulator = tl.dot(a, b, accumulator, input_precision=PRECISION)
        a_ptrs += BLOCK_K
        b_ptrs += b_step
    c_ptrs = c_ptr + tl.cast(tile_m * BLOCK_M, tl.int64) * stride_c + tile_n * BLOCK_N
    c_ptrs += rows[:, None] * stride_c + columns[None, :]
    tl.store(c_ptrs, accumulator.to(c_ptr.dtype.element_ty), mask=row_mask & column_mask)
