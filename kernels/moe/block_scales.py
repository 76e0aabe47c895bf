"""Rows as fp8 with a scale for each block of elements (host side: ditron/ops/moe/BlockScales; also used by kernels/expert_parallel).

Each SCALED elements of a row are divided by (largest magnitude / MOST_FP8) and rounded; that divisor is their scale, 1 where all are 0.
"""
import triton
import triton.language as tl

# Elements that have one scale.
SCALED = tl.constexpr(128)
# The largest finite number of float8e4nv.
MOST_FP8 = tl.constexpr(448.0)


@triton.jit
def scaled_lanes(CHUNK: tl.constexpr):
    """Places of a chunk's elements, a row for each block that has one scale."""
    return tl.arange(0, CHUNK // SCALED)[:, None] * SCALED + tl.arange(0, SCALED)[None, :]


@triton.jit
def quantize(x_ptr, left, element: tl.constexpr, CHUNK: tl.constexpr):
    """The next `left` elements of a row, at most CHUNK, as [CHUNK / SCALED, SCALED] of the narrow type, and a scale for each of its rows."""
    lanes = scaled_lanes(CHUNK)
    values = tl.load(x_ptr + lanes, mask=lanes < left, other=0.0).to(tl.float32)
    largest = tl.max(tl.abs(values), axis=1)
    scale = tl.where(largest > 0, tl.div_rn(largest, tl.full((CHUNK // SCALED,), MOST_FP8, tl.float32)), 1.0)
    return tl.div_rn(values, tl.broadcast_to(scale[:, None], (CHUNK // SCALED, SCALED))).to(element), scale


@triton.jit(do_not_specialize=["max_rows"], do_not_specialize_on_alignment=["count_ptr"])
def quantize_rows(x_ptr, rows_ptr, scales_ptr, count_ptr, max_rows, columns, CHUNK: tl.constexpr):
    """The first count_ptr[0] int32 rows, at most max_rows, of x_ptr [max_rows, columns] -> rows_ptr of the narrow type, and scales_ptr
    [max_rows, ceil(columns / SCALED)]. The others are not touched."""
    chunks = tl.cdiv(columns, CHUNK)
    scales = tl.cdiv(columns, SCALED)
    rows = tl.minimum(tl.load(count_ptr), max_rows).to(tl.int64)
    lanes = scaled_lanes(CHUNK)
    blocks = tl.arange(0, CHUNK // SCALED)
    for item in range(tl.cast(tl.program_id(0), tl.int64), rows * chunks, tl.num_programs(0)):
        row = item // chunks
        begin = item % chunks * CHUNK
        values, scale = quantize(x_ptr + row * columns + begin, columns - begin, rows_ptr.dtype.element_ty, CHUNK)
        tl.store(rows_ptr + row * columns + begin + lanes, values, mask=lanes < columns - begin)
        tl.store(scales_ptr + row * scales + begin // SCALED + blocks, scale, mask=blocks < scales - begin // SCALED)
