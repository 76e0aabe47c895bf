# A row number that is right for one array is used for another: legal memory, but of the next array, not of this one.
import triton
import triton.language as tl


@triton.jit
def buggy(a_ptr, b_ptr, row):
    i = tl.arange(0, 128)
    tl.store(b_ptr + 128 * row + i, 2 * i)
    tl.debug_barrier()
    tl.store(a_ptr + 128 * row + i, i)  # !access


@triton.jit
def fixed(a_ptr, b_ptr, row):
    i = tl.arange(0, 128)
    tl.store(b_ptr + 128 * row + i, 2 * i)
    tl.debug_barrier()
    tl.store(a_ptr + i, i)
