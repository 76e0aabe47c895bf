"""Softmax, RMSNorm and layer norm of each row of a matrix (host side: ditron/ops/RowWise).

All read a row once, keep it in registers and write the result once, all computed in fp32; a block takes every
num_programs-th row. Row strides are in elements; BLOCK is a power of two of at least `columns`.

There are two forms. The plain one has a row at a time in a block and hides the wait for memory by several blocks on a
multiprocessor. Wide rows fill the registers of a multiprocessor with one block, which then would do nothing while its row
arrives; so the form in pairs asks for the next row before it works on this one. It keeps rows of 16-bit elements as words
of two elements, which halves the registers of the row that is on its way; columns and strides must be even. Layer norm has
the plain form only.
"""
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def softmax(x_ptr, y_ptr, rows, columns, stride_x, stride_y, BLOCK: tl.constexpr):
    """y = exp(x - max(x)) / sum(exp(x - max(x)))"""
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        wide_row = tl.cast(row, tl.int64)
        x = tl.load(x_ptr + wide_row * stride_x + offsets, mask=mask, other=float("-inf")).to(tl.float32)
        # In units of log 2, so that an exponent is one multiply-add.
        powers = tl.exp2(x * LOG2_E - tl.max(x, axis=0) * LOG2_E)
        scale = 1.0 / tl.sum(powers, axis=0)
        tl.store(y_ptr + wide_row * stride_y + offsets, (powers * scale).to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def rms_norm(x_ptr, weight_ptr, y_ptr, rows, columns, stride_x, stride_y, epsilon, BLOCK: tl.constexpr):
    """y = x / sqrt(mean(x * x) + epsilon) * weight"""
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        wide_row = tl.cast(row, tl.int64)
        x = tl.load(x_ptr + wide_row * stride_x + offsets, mask=mask, other=0.0).to(tl.float32)
        scale = tl.rsqrt(tl.sum(x * x, axis=0) / columns + epsilon)
        weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + wide_row * stride_y + offsets, (x * scale * weight).to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def layer_norm(x_ptr, weight_ptr, bias_ptr, y_ptr, rows, columns, stride_x, stride_y, epsilon, BLOCK: tl.constexpr):
    """y = (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) * weight + bias"""
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        wide_row = tl.cast(row, tl.int64)
        x = tl.load(x_ptr + wide_row * stride_x + offsets, mask=mask, other=0.0).to(tl.float32)
        mean = tl.sum(x, axis=0) / columns
        x = tl.where(mask, x - mean, 0.0)
        scale = tl.rsqrt(tl.sum(x * x, axis=0) / columns + epsilon)
        weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + wide_row * stride_y + offsets, (x * scale * weight + bias).to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def unpack(words, TYPE: tl.constexpr):
    """The elements with even and with odd index of words of two 16-bit elements, in fp32."""
    even = tl.cast(tl.cast(words, tl.int16), TYPE, bitcast=True).to(tl.float32)
    odd = tl.cast(tl.cast(words >> 16, tl.int16), TYPE, bitcast=True).to(tl.float32)
    return even, odd


@triton.jit
def pack(even, odd, TYPE: tl.constexpr):
    """The reverse of unpack, rounding to TYPE."""
    even_bits = tl.cast(tl.cast(even, TYPE), tl.uint16, bitcast=True).to(tl.uint32)
    odd_bits = tl.cast(tl.cast(odd, TYPE), tl.uint16, bitcast=True).to(tl.uint32)
    return tl.cast(even_bits | (odd_bits << 16), tl.int32, bitcast=True)


@triton.jit
def load_words(words_ptr, row, rows, row_words, offsets, mask, OTHER: tl.constexpr = 0):
    """A row, padded with the word OTHER; nothing but that past the last row."""
    return tl.load(words_ptr + tl.cast(row, tl.int64) * row_words + offsets, mask=mask & (row < rows), other=OTHER)


@triton.jit
def softmax_pairs(x_ptr, y_ptr, rows, columns, stride_x, stride_y, BLOCK: tl.constexpr):
    """softmax for 16-bit elements, one row ahead."""
    offsets = tl.arange(0, BLOCK // 2)
    mask = offsets < columns // 2
    x_words = tl.cast(x_ptr, tl.pointer_type(tl.int32))
    y_words = tl.cast(y_ptr, tl.pointer_type(tl.int32))
    # Two negative infinities.
    PADDING: tl.constexpr = -0x7F0080 if x_ptr.dtype.element_ty == tl.bfloat16 else -0x3FF0400
    coming = load_words(x_words, tl.program_id(0), rows, stride_x // 2, offsets, mask, PADDING)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        even, odd = unpack(coming, x_ptr.dtype.element_ty)
        coming = load_words(x_words, row + tl.num_programs(0), rows, stride_x // 2, offsets, mask, PADDING)
        # In units of log 2, so that an exponent is one multiply-add.
        largest = tl.max(tl.maximum(even, odd), axis=0) * LOG2_E
        even = tl.exp2(even * LOG2_E - largest)
        odd = tl.exp2(odd * LOG2_E - largest)
        scale = 1.0 / tl.sum(even + odd, axis=0)
        tl.store(y_words + tl.cast(row, tl.int64) * (stride_y // 2) + offsets,
                 pack(even * scale, odd * scale, y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def rms_norm_pairs(x_ptr, weight_ptr, y_ptr, rows, columns, stride_x, stride_y, epsilon, BLOCK: tl.constexpr):
    """rms_norm for 16-bit elements, one row ahead."""
    offsets = tl.arange(0, BLOCK // 2)
    mask = offsets < columns // 2
    x_words = tl.cast(x_ptr, tl.pointer_type(tl.int32))
    y_words = tl.cast(y_ptr, tl.pointer_type(tl.int32))
    weight_words = tl.cast(weight_ptr, tl.pointer_type(tl.int32))
    coming = load_words(x_words, tl.program_id(0), rows, stride_x // 2, offsets, mask)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        even, odd = unpack(coming, x_ptr.dtype.element_ty)
        coming = load_words(x_words, row + tl.num_programs(0), rows, stride_x // 2, offsets, mask)
        scale = tl.rsqrt(tl.sum(even * even + odd * odd, axis=0) / columns + epsilon)
        even_weight, odd_weight = unpack(tl.load(weight_words + offsets, mask=mask, other=0), x_ptr.dtype.element_ty)
        tl.store(y_words + tl.cast(row, tl.int64) * (stride_y // 2) + offsets,
                 pack(even * scale * even_weight, odd * scale * odd_weight, y_ptr.dtype.element_ty), mask=mask)
