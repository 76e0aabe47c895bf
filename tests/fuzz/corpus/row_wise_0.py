import triton
import triton.language as tl
import triton_dist.language as dl
from triton.language.extra import libdevice
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import *

@triton.jit
def softmax(x_ptr, y_ptr, rows, columns, stride_x, stride_y, BLOCK: tl.constexpr):
    """y = exp(x - max(x)) / sum(exp(x - max(x)))"""
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        wide_row = tl.cast(row, tl.int64)
        x = tl.load(x_ptr + wide_row * stride_x + offsets, mask=mask, other=float("-inf")).to(tl.float32)
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
def unpack(words, TYPE: tl.constexpr):
    """The elements with even and with odd index of words of two 16-bit elements, in fp32."""
    even = tl.cast(tl.cast(words, tl.int16), TYPE, bitcast=True).to(tl.float32)
    odd = tl.cast(tl.cast(words >> 16, tl.int16), TYPE, bitcast=True).to(tl.float32)
    return even, odd


