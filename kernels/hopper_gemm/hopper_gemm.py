"""C = activation(A @ B * scales + bias) on one Hopper GPU, cut otherwise than by gemm (host side: ditron/ops/Gemm): tiles of two widths, and a last
wave that is split along K.

Matrices, scales, bias and activation are those of kernels/gemm; 8-bit operands with B as [N, K] only. A_POLICY and B_POLICY say how long the L2 cache shall keep the operands: "", "evict_first" or
"evict_last". With CLUSTER = 2 neighbouring blocks compute tiles below each other and fetch B's together; the grid is even. Elsewhere than on GPUs
with tensor copies and warpgroup multiplies the kernels are right, and slow.
"""
import triton
import triton.language as tl

from ..product.product import activated, cluster_tile, epilogue_operands, exact_depth, matmul_tile, result_columns, scaled, sum_type, weight_descriptor
from ..product.split_tail import complete_sums, item_of_split_tail


@triton.jit
def store_tile(c_desc, sums, row, column, a_scales, b_scales, bias, ROW_SCALES: tl.constexpr, COLUMN_SCALES: tl.constexpr,
               ACTIVATION: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Ends the tile at (row, column) of the product, with its epilogue_operands."""
    value = scaled(sums, a_scales, b_scales, bias, ROW_SCALES, COLUMN_SCALES)
    c_desc.store([row, result_columns(column, ACTIVATION)], activated(value, ACTIVATION, BLOCK_M, BLOCK_N).to(c_desc.dtype))


@triton.jit(do_not_specialize=["whole_tiles", "parts", "bias_columns"])
def gemm_split_tail(a_ptr, b_ptr, c_ptr, sums_ptr, tile_counter_ptr, M, N, K, stride_a, stride_b, stride_c, whole_tiles, parts,
                    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
                    B_TRANSPOSED: tl.constexpr, PRECISION: tl.constexpr, A_POLICY: tl.constexpr = "", B_POLICY: tl.constexpr = "",
                    CLUSTER: tl.constexpr = 1, a_scale_ptr=None, b_scale_ptr=None, bias_ptr=None, bias_columns=0,
                    ROW_SCALES: tl.constexpr = False, COLUMN_SCALES: tl.constexpr = False, ACTIVATION: tl.constexpr = "none"):
    """As gemm, where the number of tiles would leave the last wave ragged: the tiles behind `whole_tiles` are split along K into `parts`
    (product/split_tail.py, which says what sums_ptr and tile_counter_ptr are)."""
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[stride_a, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_desc = weight_descriptor(b_ptr, N, K, stride_b, BLOCK_N, BLOCK_K, B_TRANSPOSED)
    c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, result_columns(N, ACTIVATION)], strides=[stride_c, 1],
                                       block_shape=[BLOCK_M, result_columns(BLOCK_N, ACTIVATION)])
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    k_tiles = tl.cdiv(K, BLOCK_K)
    split_tiles = tl.cdiv(tiles_m, CLUSTER) * tiles_n - whole_tiles
    for item in tl.range(tl.program_id(0) // CLUSTER, whole_tiles + split_tiles * parts, tl.num_programs(0) // CLUSTER, warp_specialize=True,
                         cluster_blocks=CLUSTER):
        tile, first, end, piece, split_tile = item_of_split_tail(item, whole_tiles, split_tiles, parts, k_tiles, sums_ptr)
        tile_m, tile_n = cluster_tile(tile, tiles_m, tiles_n, GROUP_M, CLUSTER)
        row = tile_m * BLOCK_M
        column = tile_n * BLOCK_N
        a_scales, b_scales, bias = epilogue_operands(row, column, M, N, a_scale_ptr, 1, b_scale_ptr, bias_ptr, bias_columns, ROW_SCALES,
                                                     COLUMN_SCALES, BLOCK_M, BLOCK_N)
        accumulator = matmul_tile(a_desc, b_desc, row, column, first, end, BLOCK_M, BLOCK_N, BLOCK_K, B_TRANSPOSED, PRECISION, A_POLICY,
                                  B_POLICY)
        sums, is_complete = complete_sums(accumulator, piece, split_tile, split_tiles, parts, sums_ptr, tile_counter_ptr, CLUSTER, BLOCK_M, BLOCK_N)
        if is_complete:
            store_tile(c_desc, sums, row, column, a_scales, b_scales, bias, ROW_SCALES, COLUMN_SCALES, ACTIVATION, BLOCK_M, BLOCK_N)


@triton.jit(do_not_specialize=["bias_columns"])
def gemm_two_widths(a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                    MORE_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, B_TRANSPOSED: tl.constexpr,
                    PRECISION: tl.constexpr, A_POLICY: tl.constexpr = "", B_POLICY: tl.constexpr = "",
                    CLUSTER: tl.constexpr = 1, a_scale_ptr=None, b_scale_ptr=None, bias_ptr=None, bias_columns=0,
                    ROW_SCALES: tl.constexpr = False, COLUMN_SCALES: tl.constexpr = False, ACTIVATION: tl.constexpr = "none"):
    """As gemm, with tiles of BLOCK_N + MORE_N columns, two powers of two: 128 + 64 make 192. Both parts share A's tile and the ring.
    MORE_N may be 0."""
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[stride_a, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_desc = weight_descriptor(b_ptr, N, K, stride_b, BLOCK_N, BLOCK_K, B_TRANSPOSED)
    c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, result_columns(N, ACTIVATION)], strides=[stride_c, 1],
                                       block_shape=[BLOCK_M, result_columns(BLOCK_N, ACTIVATION)])
    if MORE_N > 0:
        more_b_desc = weight_descriptor(b_ptr, N, K, stride_b, MORE_N, BLOCK_K, B_TRANSPOSED)
        more_c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, result_columns(N, ACTIVATION)], strides=[stride_c, 1],
                                                block_shape=[BLOCK_M, result_columns(MORE_N, ACTIVATION)])
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N + MORE_N)
    k_tiles = tl.cdiv(K, BLOCK_K)
    tl.assume(k_tiles > 0)
    for item in tl.range(tl.program_id(0) // CLUSTER, tl.cdiv(tiles_m, CLUSTER) * tiles_n, tl.num_programs(0) // CLUSTER, warp_specialize=True,
                         cluster_blocks=CLUSTER):
        tile_m, tile_n = cluster_tile(item, tiles_m, tiles_n, GROUP_M, CLUSTER)
        row = tile_m * BLOCK_M
        column = tile_n * (BLOCK_N + MORE_N)
        a_scales, b_scales, bias = epilogue_operands(row, column, M, N, a_scale_ptr, 1, b_scale_ptr, bias_ptr, bias_columns, ROW_SCALES,
                                                     COLUMN_SCALES, BLOCK_M, BLOCK_N)
        accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=sum_type(a_desc.dtype))
        if MORE_N > 0:
            _, more_scales, more_bias = epilogue_operands(row, column + BLOCK_N, M, N, None, 1, b_scale_ptr, bias_ptr, bias_columns, ROW_SCALES,
                                                          COLUMN_SCALES, BLOCK_M, MORE_N)
            more = tl.zeros((BLOCK_M, MORE_N), dtype=sum_type(a_desc.dtype))
        for k in range(0, k_tiles):
            depth = k * BLOCK_K
            a = a_desc.load([row, depth], eviction_policy=A_POLICY)
            if B_TRANSPOSED:
                b = b_desc.load([column, depth], eviction_policy=B_POLICY)
                accumulator = tl.dot(a, b.T, accumulator, input_precision=PRECISION, max_num_imprecise_acc=exact_depth(BLOCK_K))
            else:
                b = b_desc.load([depth, column], eviction_policy=B_POLICY)
                accumulator = tl.dot(a, b, accumulator, input_precision=PRECISION, max_num_imprecise_acc=exact_depth(BLOCK_K))
            if MORE_N > 0:
                if B_TRANSPOSED:
                    more_b = more_b_desc.load([column + BLOCK_N, depth], eviction_policy=B_POLICY)
                    more = tl.dot(a, more_b.T, more, input_precision=PRECISION, max_num_imprecise_acc=exact_depth(BLOCK_K))
                else:
                    more_b = more_b_desc.load([depth, column + BLOCK_N], eviction_policy=B_POLICY)
                    more = tl.dot(a, more_b, more, input_precision=PRECISION, max_num_imprecise_acc=exact_depth(BLOCK_K))
        store_tile(c_desc, accumulator, row, column, a_scales, b_scales, bias, ROW_SCALES, COLUMN_SCALES, ACTIVATION, BLOCK_M, BLOCK_N)
        if MORE_N > 0:
            store_tile(more_c_desc, more, row, column + BLOCK_N, a_scales, more_scales, more_bias, ROW_SCALES, COLUMN_SCALES, ACTIVATION, BLOCK_M,
                       MORE_N)
