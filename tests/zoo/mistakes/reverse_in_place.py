# A row is turned round in place: a warp may store where another one has still to load.
import triton
import triton.language as tl


@triton.jit
def buggy(x_ptr):
    i = tl.arange(0, 128)
    x = tl.load(x_ptr + 127 - i)  # !load
    tl.store(x_ptr + i, x)  # !store


@triton.jit
def fixed(x_ptr):
    i = tl.arange(0, 128)
    x = tl.load(x_ptr + 127 - i)
    tl.debug_barrier()
    tl.store(x_ptr + i, x)
