"""C = activation(A @ B * scales + bias) on one GPU (host side: ditron/ops/Gemm).

A is [M, K] and C is [M, N], row-major ([M, N / 2] with swiglu). B is [N, K] row-major, as the weight of a torch Linear (B_TRANSPOSED), or
[K, N]. Rows may be padded: each matrix has a row stride. Scales, bias and activation: kernels/product.

`gemm` is persistent and moves tiles by tensor descriptors: on Hopper TMA, an mbarrier ring, wgmma and warp
specialisation, elsewhere pointers. `gemm_pointers` has a block per tile and loads through pointers: the better shape for
GPUs without TMA, and the only one for row strides that are no multiple of 16 bytes.
"""
import triton
import triton.language as tl

from ..product.product import activated, can_fetch_ahead, epilogue_operands, exact_depth, grouped_tile, matmul_tile, result_columns, scaled, scaled_tile, sum_type, weight_descriptor


@triton.jit(do_not_specialize=["bias_columns"])
def gemm(a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
         BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, B_TRANSPOSED: tl.constexpr, PRECISION: tl.constexpr, a_scale_ptr=None,
         b_scale_ptr=None, bias_ptr=None, bias_columns=0, ROW_SCALES: tl.constexpr = False, COLUMN_SCALES: tl.constexpr = False,
         ACTIVATION: tl.constexpr = "none"):
    """Each of the num_programs blocks computes every num_programs-th tile."""
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[stride_a, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_desc = weight_descriptor(b_ptr, N, K, stride_b, BLOCK_N, BLOCK_K, B_TRANSPOSED)
    RESULT_N: tl.constexpr = result_columns(BLOCK_N, ACTIVATION)
    c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, result_columns(N, ACTIVATION)], strides=[stride_c, 1],
                                       block_shape=[BLOCK_M, RESULT_N])
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    k_tiles = tl.cdiv(K, BLOCK_K)
    # Without the promise the accumulators of a loop without a turn must be merged in, register by register.
    tl.assume(k_tiles > 0)
    FETCH_AHEAD: tl.constexpr = can_fetch_ahead(b_ptr.dtype.element_ty, B_TRANSPOSED)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), warp_specialize=FETCH_AHEAD):
        tile_m, tile_n = grouped_tile(tile, tiles_m, tiles_n, GROUP_M)
        row = tile_m * BLOCK_M
        column = tile_n * BLOCK_N
        a_scales, b_scales, bias = epilogue_operands(row, column, M, N, a_scale_ptr, 1, b_scale_ptr, bias_ptr, bias_columns, ROW_SCALES,
                                                     COLUMN_SCALES, BLOCK_M, BLOCK_N)
        sums = matmul_tile(a_desc, b_desc, row, column, 0, k_tiles, BLOCK_M, BLOCK_N, BLOCK_K, B_TRANSPOSED, PRECISION)
        value = scaled(sums, a_scales, b_scales, bias, ROW_SCALES, COLUMN_SCALES)
        result = activated(value, ACTIVATION, BLOCK_M, BLOCK_N)
        c_desc.store([row, tile_n * RESULT_N], result.to(c_ptr.dtype.element_ty))


@triton.jit(do_not_specialize=["bias_columns"])
def gemm_pointers(a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c, BLOCK_M: tl.constexpr,
                  BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, B_TRANSPOSED: tl.constexpr,
                  PRECISION: tl.constexpr, a_scale_ptr=None, b_scale_ptr=None, bias_ptr=None, bias_columns=0,
                  ROW_SCALES: tl.constexpr = False, COLUMN_SCALES: tl.constexpr = False, ACTIVATION: tl.constexpr = "none"):
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
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=sum_type(a_ptr.dtype.element_ty))
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        a = tl.load(a_ptrs, mask=row_mask & (depths[None, :] < left), other=0)
        b = tl.load(b_ptrs, mask=(depths[:, None] < left) & column_mask, other=0)
        sums = tl.dot(a, b, sums, input_precision=PRECISION, max_num_imprecise_acc=exact_depth(BLOCK_K))
        a_ptrs += BLOCK_K
        b_ptrs += b_step
    value = scaled_tile(sums, tile_m * BLOCK_M, tile_n * BLOCK_N, M, N, a_scale_ptr, 1, b_scale_ptr, bias_ptr, bias_columns, ROW_SCALES,
                        COLUMN_SCALES, BLOCK_M, BLOCK_N)
    result = activated(value, ACTIVATION, BLOCK_M, BLOCK_N)
    RESULT_N: tl.constexpr = result_columns(BLOCK_N, ACTIVATION)
    result_offsets = tl.arange(0, RESULT_N)
    c_ptrs = c_ptr + tl.cast(tile_m * BLOCK_M, tl.int64) * stride_c + tile_n * RESULT_N
    c_ptrs += rows[:, None] * stride_c + result_offsets[None, :]
    tl.store(c_ptrs, result.to(c_ptr.dtype.element_ty),
             mask=row_mask & (result_offsets[None, :] < result_columns(N, ACTIVATION) - tile_n * RESULT_N))
