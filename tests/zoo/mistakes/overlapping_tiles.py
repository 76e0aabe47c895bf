# Tiles of 128 at distances of 120: neighbours store the same elements.
import triton
import triton.language as tl


@triton.jit
def buggy(out_ptr):
    block = tl.program_id(0)
    i = tl.arange(0, 128)
    tl.store(out_ptr + 120 * block + i, block + 1 + 0 * i)  # !store


@triton.jit
def fixed(out_ptr):
    block = tl.program_id(0)
    i = tl.arange(0, 128)
    tl.store(out_ptr + 120 * block + i, block + 1 + 0 * i, mask=i < 120)
