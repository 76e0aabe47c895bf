# 100 elements in chunks of 32: the last chunk ends behind the array.
import triton
import triton.language as tl


@triton.jit
def buggy(x_ptr, out_ptr, n):
    i = 32 * tl.program_id(0) + tl.arange(0, 32)
    tl.store(out_ptr + i, 2 * tl.load(x_ptr + i))  # !access


@triton.jit
def fixed(x_ptr, out_ptr, n):
    i = 32 * tl.program_id(0) + tl.arange(0, 32)
    tl.store(out_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)
