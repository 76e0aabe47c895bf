import triton
import triton.language as tl
import triton_dist.language as dl
from triton.language.extra import libdevice
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import *

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
