# An index that comes from memory and is not looked at: -1 marks an empty place.
import triton
import triton.language as tl


@triton.jit
def buggy(index_ptr, x_ptr, out_ptr):
    i = tl.arange(0, 128)
    index = tl.load(index_ptr + i)
    tl.store(out_ptr + i, tl.load(x_ptr + index))  # !access


@triton.jit
def fixed(index_ptr, x_ptr, out_ptr):
    i = tl.arange(0, 128)
    index = tl.load(index_ptr + i)
    tl.store(out_ptr + i, tl.load(x_ptr + index, mask=index >= 0, other=0))
