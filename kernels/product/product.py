"""Tiles of a matrix product and what is done with their sums: what all kernels that multiply share. No kernels of its own.

Sums are fp32, of int8 operands int32. The sums of a tile become results in fp32, in this order (`scaled_tile`, `activated`):
  value = sum * scale of A * scale of B + bias
  result = activation(value)
A scale is one number, or one for each row of A (ROW_SCALES) or column of B (COLUMN_SCALES); its pointer is None where there is none. The
bias has bias_columns elements: all N, or none on ranks that must not add what another rank adds.
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
def cluster_tile(item, tiles_m, tiles_n, GROUP_M: tl.constexpr, CLUSTER: tl.constexpr):
    """(row, column) of this block's tile of the item that its cluster has: CLUSTER tiles below each other, which share the columns of B."""
    row, column = grouped_tile(item, tl.cdiv(tiles_m, CLUSTER), tiles_n, GROUP_M // CLUSTER)
    return row * CLUSTER + tl.program_id(0) % CLUSTER, column


@triton.jit
def sum_type(element: tl.constexpr):
    """Of products of such operands."""
    if element.is_int():
        return tl.int32
    else:
        return tl.float32


@triton.jit
def exact_depth(BLOCK_K: tl.constexpr):
    """Products of fp8 that may be added in the tensor core, whose sums are shorter than fp32 on Hopper, before they are added in fp32."""
    return BLOCK_K if BLOCK_K < 128 else 128


@triton.jit
def can_fetch_ahead(element: tl.constexpr, B_TRANSPOSED: tl.constexpr):
    """For warp_specialize: Hopper's tensor cores read operands along K only, but for those of 16 bits."""
    return B_TRANSPOSED or element.primitive_bitwidth == 16


@triton.jit
def weight_descriptor(b_ptr, N, K, stride_b, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, B_TRANSPOSED: tl.constexpr):
    """B as [N, K] (the weight of a torch Linear, B_TRANSPOSED) or as [K, N]; rows are stride_b elements apart."""
    if B_TRANSPOSED:
        b_desc = tl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[stride_b, 1], block_shape=[BLOCK_N, BLOCK_K])
    else:
        b_desc = tl.make_tensor_descriptor(b_ptr, shape=[K, N], strides=[stride_b, 1], block_shape=[BLOCK_K, BLOCK_N])
    return b_desc


@triton.jit
def matmul_tile(a_desc, b_desc, row, column, first_step, end_step, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                BLOCK_K: tl.constexpr, B_TRANSPOSED: tl.constexpr, PRECISION: tl.constexpr, A_POLICY: tl.constexpr = "",
                B_POLICY: tl.constexpr = ""):
    """Sum of the steps [first_step, end_step) of BLOCK_K of the tile of A @ B at (row, column). What lies beyond the matrices reads as
    zero. A_POLICY, B_POLICY: how long the L2 cache shall keep the operands."""
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=sum_type(a_desc.dtype))
    for k in range(first_step, end_step):
        a = a_desc.load([row, k * BLOCK_K], eviction_policy=A_POLICY)
        if B_TRANSPOSED:
            b = b_desc.load([column, k * BLOCK_K], eviction_policy=B_POLICY)
            accumulator = tl.dot(a, b.T, accumulator, input_precision=PRECISION, max_num_imprecise_acc=exact_depth(BLOCK_K))
        else:
            b = b_desc.load([k * BLOCK_K, column], eviction_policy=B_POLICY)
            accumulator = tl.dot(a, b, accumulator, input_precision=PRECISION, max_num_imprecise_acc=exact_depth(BLOCK_K))
    return accumulator


@triton.jit
def matmul_tile_turned(a_desc, b_desc, row, column, first_step, end_step, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                       BLOCK_K: tl.constexpr, B_TRANSPOSED: tl.constexpr, PRECISION: tl.constexpr):
    """The same tile as B.T @ A.T, [BLOCK_N, BLOCK_M]: warpgroups multiply 64 rows at least, and here the few rows of A are columns."""
    accumulator = tl.zeros((BLOCK_N, BLOCK_M), dtype=sum_type(a_desc.dtype))
    for k in range(first_step, end_step):
        a = a_desc.load([row, k * BLOCK_K])
        if B_TRANSPOSED:
            b = b_desc.load([column, k * BLOCK_K])
            accumulator = tl.dot(b, a.T, accumulator, input_precision=PRECISION, max_num_imprecise_acc=exact_depth(BLOCK_K))
        else:
            b = b_desc.load([k * BLOCK_K, column])
            accumulator = tl.dot(b.T, a.T, accumulator, input_precision=PRECISION, max_num_imprecise_acc=exact_depth(BLOCK_K))
    return accumulator


@triton.jit
def epilogue_operands(row, column, M, N, a_scale_ptr, stride_a_scale, b_scale_ptr, bias_ptr, bias_columns, ROW_SCALES: tl.constexpr,
                      COLUMN_SCALES: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """(scales of A, scales of B, bias) of the tile at (row, column) of an [M, N] product; None is what there is none of. Scales of A's rows are
    stride_a_scale apart. Asked for before the tile is multiplied, they come meanwhile."""
    a_scales = None
    if a_scale_ptr is not None:
        if ROW_SCALES:
            rows = tl.arange(0, BLOCK_M)
            a_scales = tl.load(a_scale_ptr + tl.cast(row, tl.int64) * stride_a_scale + rows * stride_a_scale, mask=rows < M - row, other=0.0)
        else:
            a_scales = tl.load(a_scale_ptr)
    columns = tl.arange(0, BLOCK_N)
    b_scales = None
    if b_scale_ptr is not None:
        if COLUMN_SCALES:
            b_scales = tl.load(b_scale_ptr + column + columns, mask=columns < N - column, other=0.0)
        else:
            b_scales = tl.load(b_scale_ptr)
    bias = None
    if bias_ptr is not None:
        bias = tl.load(bias_ptr + column + columns, mask=columns < bias_columns - column, other=0.0)
    return a_scales, b_scales, bias


@triton.jit
def scaled(sums, a_scales, b_scales, bias, ROW_SCALES: tl.constexpr, COLUMN_SCALES: tl.constexpr):
    """The sums of a tile with its epilogue_operands, in fp32."""
    value = sums.to(tl.float32)
    if a_scales is not None:
        value *= a_scales[:, None] if ROW_SCALES else a_scales
    if b_scales is not None:
        value *= b_scales[None, :] if COLUMN_SCALES else b_scales
    if bias is not None:
        value += bias.to(tl.float32)[None, :]
    return value


@triton.jit
def scaled_tile(sums, row, column, M, N, a_scale_ptr, stride_a_scale, b_scale_ptr, bias_ptr, bias_columns, ROW_SCALES: tl.constexpr,
                COLUMN_SCALES: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """The tile at (row, column) of an [M, N] product, in fp32."""
    a_scales, b_scales, bias = epilogue_operands(row, column, M, N, a_scale_ptr, stride_a_scale, b_scale_ptr, bias_ptr, bias_columns, ROW_SCALES,
                                                 COLUMN_SCALES, BLOCK_M, BLOCK_N)
    return scaled(sums, a_scales, b_scales, bias, ROW_SCALES, COLUMN_SCALES)


@triton.jit
def activated(value, ACTIVATION: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """[BLOCK_M, result_columns(BLOCK_N)]. swiglu: columns 2j are gates, columns 2j + 1 what they let through."""
    if ACTIVATION == "swiglu":
        gate, up = tl.split(tl.reshape(value, (BLOCK_M, BLOCK_N // 2, 2)))
        result = gate * tl.sigmoid(gate) * up
    elif ACTIVATION == "silu":
        result = value * tl.sigmoid(value)
    elif ACTIVATION == "gelu":
        result = 0.5 * value * (1.0 + tl.erf(value * 0.7071067811865476))
    elif ACTIVATION == "relu":
        result = tl.maximum(value, 0.0)
    else:
        tl.static_assert(ACTIVATION == "none", "ACTIVATION is none, relu, gelu, silu or swiglu")
        result = value
    return result


@triton.jit
def result_columns(columns, ACTIVATION: tl.constexpr):
    if ACTIVATION == "swiglu":
        return columns // 2
    else:
        return columns
