# Each block replaces its part by the sum with the left neighbour, in place: it may read what that block has stored already.
import triton
import triton.language as tl


@triton.jit
def buggy(x_ptr):
    at = 128 * tl.program_id(0) + tl.arange(0, 128)
    left = tl.load(x_ptr + at - 1, mask=at > 0, other=0)  # !load
    x = tl.load(x_ptr + at)
    tl.debug_barrier()
    tl.store(x_ptr + at, x + left)  # !store


@triton.jit
def fixed(x_ptr, y_ptr):
    at = 128 * tl.program_id(0) + tl.arange(0, 128)
    left = tl.load(x_ptr + at - 1, mask=at > 0, other=0)
    tl.store(y_ptr + at, tl.load(x_ptr + at) + left)
