# Each thread stores an element and loads another thread's: across warps nothing orders the two.
import triton
import triton.language as tl


@triton.jit
def buggy(x_ptr, scratch_ptr, out_ptr):
    i = tl.arange(0, 128)
    tl.store(scratch_ptr + i, tl.load(x_ptr + i))  # !store
    tl.store(out_ptr + i, tl.load(scratch_ptr + 127 - i))  # !load


@triton.jit
def fixed(x_ptr, scratch_ptr, out_ptr):
    i = tl.arange(0, 128)
    tl.store(scratch_ptr + i, tl.load(x_ptr + i))
    tl.debug_barrier()
    tl.store(out_ptr + i, tl.load(scratch_ptr + 127 - i))
