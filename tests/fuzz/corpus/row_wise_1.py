import triton
import triton.language as tl
import triton_dist.language as dl
from triton.language.extra import libdevice
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import *

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
    PADDING: tl.constexpr = -0x7F0080 if x_ptr.dtype.element_ty == tl.bfloat16 else -0x3FF0400
    coming = load_words(x_words, tl.program_id(0), rows, stride_x // 2, offsets, mask, PADDING)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        even, odd = unpack(coming, x_ptr.dtype.element_ty)
        coming = load_words(x_words, row + tl.num_programs(0), rows, stride_x // 2, offsets, mask, PADDING)
        largest = tl.max(tl.maximum(even, odd), axis=0) * LOG2_E
        even = tl.exp2(even * LOG2_E - largest)
        odd = tl.exp2(odd * LOG2_E - largest)
        scale = 1.0 / tl.sum(even + odd, axis=0)
        tl.store(y_words + tl.cast(row, tl.int64) * (stride_y // 2) + offsets,
                 pack(even * scale, odd * scale, y_ptr.dtype.element_ty), mask=mask)


