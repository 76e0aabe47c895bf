import triton
import triton.language as tl
import triton_dist.language as dl
from triton.language.extra import libdevice
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import *

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
